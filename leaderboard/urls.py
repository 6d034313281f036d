"""The public pages: home, leaderboard, and what is known of attacks and target models."""

from django.urls import path

from leaderboard import views

urlpatterns = [
    path("", views.home, name="home"),
    path("leaderboard/", views.leaderboard, name="leaderboard"),
    path("attacks/", views.attacks, name="attacks"),
    path("attacks/<slug:slug>/", views.attack, name="attack"),
    path("target-models/", views.target_models, name="target-models"),
    path("target-models/<slug:slug>/", views.target_model, name="target-model"),
]
