"""Addresses of the participant's pages. None of them holds an id of a person."""

from django.urls import path

from studies import views

app_name = "studies"

urlpatterns = [  # the most frequent first
    path("<slug:slug>/rate/", views.rate, name="rate"),
    path("<slug:slug>/images/<slug:kind>/<uuid:token>/", views.image, name="image"),
    path("<slug:slug>/run/", views.run, name="run"),
    path("<slug:slug>/", views.landing, name="landing"),
    path("<slug:slug>/back/", views.back, name="back"),
    path("<slug:slug>/heartbeat/", views.heartbeat, name="heartbeat"),
    path("<slug:slug>/contact/", views.contact, name="contact"),
    path("<slug:slug>/preview/", views.preview, name="preview"),
    path("<slug:slug>/preview/text/<slug:kind>/", views.text_preview, name="preview-text"),
    path("<slug:slug>/preview/jump/", views.preview_jump, name="preview-jump"),
    path("<slug:slug>/preview/leave/", views.preview_leave, name="preview-leave"),
]
