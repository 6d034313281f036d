"""Addresses below /catalogue/."""

from django.urls import path

from imagedb import views

app_name = "imagedb"
urlpatterns = [
    path("", views.gallery, name="gallery"),
    path("images/<uuid:public_id>/", views.image, name="image"),
    path("images/<uuid:public_id>/thumbnail/", views.thumbnail, name="thumbnail"),
    path("images/<uuid:public_id>/file/", views.image_file, name="image-file"),
    path("images/<uuid:public_id>/difference/", views.difference, name="difference"),
    path("collections/", views.collections, name="collections"),
    path("collections/<slug:slug>/", views.collection, name="collection"),
    path("collections/<slug:slug>/<str:version>/", views.collection_version, name="collection-version"),
]
