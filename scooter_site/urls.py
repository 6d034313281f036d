"""All addresses of the site."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import include, path

from scooter_site.health import health
from studies.views.webhooks import prolific_webhook


def favicon(request: HttpRequest) -> HttpResponseRedirect:
    """Browsers ask for this address on pages that name no icon."""
    return HttpResponseRedirect(static("favicon.svg"))


urlpatterns = [
    path("s/", include("studies.urls")),  # first, for most requests are a participant's
    path("", include("leaderboard.urls")),
    path("catalogue/", include("imagedb.urls")),
    path("account/", include("scooter_site.accounts.urls")),
    path("api/v1/", include("scooter_site.api")),
    path("admin/", admin.site.urls),
    path("webhooks/prolific/<uuid:key>/", prolific_webhook, name="prolific-webhook"),
    path("health/", health, name="health"),
    path("favicon.ico", favicon),
]

handler400 = "scooter_site.errors.bad_request"
handler403 = "scooter_site.errors.permission_denied"
handler404 = "scooter_site.errors.not_found"
handler500 = "scooter_site.errors.server_error"
