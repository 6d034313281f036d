"""All addresses of the site."""

from django.contrib import admin
from django.urls import include, path

from scooter_site.health import health

urlpatterns = [
    path("", include("leaderboard.urls")),
    path("s/", include("studies.urls")),
    path("catalogue/", include("imagedb.urls")),
    path("api/v1/", include("scooter_site.api")),
    path("admin/", admin.site.urls),
    path("health/", health, name="health"),
]
