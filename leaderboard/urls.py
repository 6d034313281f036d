"""The public pages: home and leaderboard."""

from django.urls import path

from leaderboard import views

urlpatterns = [
    path("", views.home, name="home"),
    path("leaderboard/", views.leaderboard, name="leaderboard"),
]
