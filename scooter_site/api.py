"""The one API router: every endpoint below /api/v1/."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.routers import APIRootView, DefaultRouter

from imagedb.api import AttackViewSet, ImageClassViewSet, ImageViewSet, TargetModelViewSet
from imagedb.archive_api import CollectionVersionArchiveView, ImageArchiveView
from imagedb.collection_api import CollectionVersionViewSet, CollectionViewSet
from imagedb.import_api import ImportViewSet
from imagedb.upload_api import UploadViewSet
from leaderboard.api import BoardViewSet, EntryViewSet, SnapshotViewSet
from scooter_site.common.negotiation import AnyAccept


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
router.register("collections", CollectionViewSet, basename="collection")
router.register("collections/<slug:slug>/versions", CollectionVersionViewSet, basename="collection-version")
router.register("target-models", TargetModelViewSet, basename="target-model")
router.register("imports", ImportViewSet, basename="import")
router.register("uploads", UploadViewSet, basename="upload")
router.register("leaderboard", EntryViewSet, basename="leaderboard-entry")
router.register("boards", BoardViewSet, basename="board")
router.register("boards/<slug:slug>/snapshots", SnapshotViewSet, basename="board-snapshot")

urlpatterns = [
    path("images/archive/", ImageArchiveView.as_view(), name="image-archive"),
    path(
        "collections/<slug:slug>/versions/<str:version>/archive/",
        CollectionVersionArchiveView.as_view(),
        name="collection-version-archive",
    ),
    path(
        "imports/<uuid:public_id>/rows.csv",
        ImportViewSet.as_view({"get": "rows"}, detail=True, content_negotiation_class=AnyAccept),
        name="import-rows",
    ),
    *router.urls,
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    # The split view loads its script from an address of its own, so that the page needs no inline script.
    path(
        "docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="leaderboard/api_docs.html"),
        name="api-docs",
    ),
]
