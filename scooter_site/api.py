"""The one API router: every endpoint below /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from imagedb.api import AttackViewSet, ImageClassViewSet, ImageViewSet, TargetModelViewSet
from leaderboard.api import EntryViewSet

router = DefaultRouter(use_regex_path=False)
router.register("images", ImageViewSet, basename="image")
router.register("classes", ImageClassViewSet, basename="image-class")
router.register("attacks", AttackViewSet, basename="attack")
router.register("target-models", TargetModelViewSet, basename="target-model")
router.register("leaderboard", EntryViewSet, basename="leaderboard-entry")

urlpatterns = [
    *router.urls,
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    # The split view loads its script from an address of its own, so that the page needs no inline script.
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
]
