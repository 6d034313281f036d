"""The one API router: every endpoint below /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.routers import APIRootView, DefaultRouter

from imagedb.api import AttackViewSet, ImageClassViewSet, ImageViewSet, TargetModelViewSet
from leaderboard.api import EntryViewSet


class RootView(APIRootView):
    """The addresses of all endpoints. Public."""

    permission_classes = [AllowAny]
    schema = None


class Router(DefaultRouter):
    APIRootView = RootView
    include_format_suffixes = False


router = Router(use_regex_path=False)
router.register("images", ImageViewSet, basename="image")
router.register("classes", ImageClassViewSet, basename="image-class")
router.register("attacks", AttackViewSet, basename="attack")
router.register("target-models", TargetModelViewSet, basename="target-model")
router.register("leaderboard", EntryViewSet, basename="leaderboard-entry")

urlpatterns = [
    *router.urls,
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    # The split view loads its script from an address of its own, so that the page needs no inline script.
    path(
        "docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="leaderboard/api_docs.html"),
        name="api-docs",
    ),
]
