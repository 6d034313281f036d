"""Addresses below /catalogue/."""

from django.urls import path

from imagedb import views

app_name = "imagedb"
urlpatterns = [
    path("images/<uuid:public_id>/thumbnail/", views.thumbnail, name="thumbnail"),
    path("images/<uuid:public_id>/file/", views.image_file, name="image-file"),
]
