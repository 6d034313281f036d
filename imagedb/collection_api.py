"""The API of collections. Everybody may read it; the selectors decide which collections and versions a reader sees."""

from itertools import islice
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from imagedb import files
from imagedb.api import IF_NONE_MATCH, NOT_MODIFIED, CatalogueViewSet, list_schema
from imagedb.collection_serializers import (
    DIFFERENCES_SHOWN,
    CollectionSerializer,
    CollectionVersionDetailSerializer,
    CollectionVersionSerializer,
    CurationLogEntrySerializer,
    DiffSerializer,
)
from imagedb.models import Collection, CollectionVersion, CurationLogEntry, Visibility
from imagedb.selectors.collections import diff_versions, version_counts, visible_collections, visible_versions
from scooter_site.common.api_errors import DETAIL_ERRORS
from scooter_site.common.filters import PAGING_PARAMETERS
from scooter_site.common.negotiation import AnyAccept
from scooter_site.common.storage import CONTENT_TYPES
from scooter_site.common.throttling import LISTS

MANIFEST_CACHE_SECONDS = 3600
SLUG = OpenApiParameter("slug", str, OpenApiParameter.PATH, description="Slug of the collection.")
VERSION = OpenApiParameter("version", str, OpenApiParameter.PATH, description="For example 1.0.")
SINCE = "since"


@extend_schema_view(
    list=list_schema("List collections", CollectionSerializer),
    retrieve=extend_schema(summary="One collection", responses={200: CollectionSerializer, **DETAIL_ERRORS}),
)
class CollectionViewSet(CatalogueViewSet):
    """Named sets of images that others can cite."""

    queryset = Collection.objects.all()
    serializer_class = CollectionSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"
    throttle_scope = LISTS

    def get_queryset(self) -> QuerySet[Collection]:
        if getattr(self, "swagger_fake_view", False):
            return Collection.objects.none()
        user = self.request.user
        versions = Prefetch("versions", visible_versions(user).order_by("pk"), to_attr="visible_versions")
        return visible_collections(user).select_related("target_model").prefetch_related(versions)


@extend_schema_view(
    list=list_schema("List versions of a collection", CollectionVersionSerializer, DETAIL_ERRORS),
    retrieve=extend_schema(
        summary="One version of a collection",
        parameters=[SLUG, VERSION],
        responses={200: CollectionVersionDetailSerializer, **DETAIL_ERRORS},
    ),
)
@extend_schema(parameters=[SLUG])
class CollectionVersionViewSet(CatalogueViewSet):
    """Versions of a collection: frozen ones never change; drafts are for those who may change them."""

    queryset = CollectionVersion.objects.all()
    serializer_class = CollectionVersionSerializer
    lookup_field = "version"
    lookup_value_converter = "str"
    detail_parameters = {"diff": (SINCE,), "curation_log": tuple(PAGING_PARAMETERS)}
    throttle_scope = LISTS

    def get_queryset(self) -> QuerySet[CollectionVersion]:
        if getattr(self, "swagger_fake_view", False):
            return CollectionVersion.objects.none()
        collection = get_object_or_404(visible_collections(self.request.user), slug=self.kwargs["slug"])
        return visible_versions(self.request.user).filter(collection=collection)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A version with its curation log and how many images there are of each kind."""
        version: Any = self.get_object()
        version.counts = version_counts(version, request.user)
        version.log_count = version.curation_log.count()
        context = self.get_serializer_context()
        return Response(CollectionVersionDetailSerializer(version, context=context).data)

    @extend_schema(
        summary="Manifest of a frozen version",
        description="One line of JSON per image, in a canonical form: its SHA-256 digest is the version's "
        "`manifest_sha256`. docs/collections.md says what the keys mean and how to recompute it.",
        parameters=[SLUG, VERSION, IF_NONE_MATCH],
        responses={
            (200, CONTENT_TYPES[".jsonl"]): OpenApiTypes.BINARY,
            (206, CONTENT_TYPES[".jsonl"]): OpenApiTypes.BINARY,
            304: NOT_MODIFIED,
            416: OpenApiResponse(description="The range begins after the end of the file."),
            **DETAIL_ERRORS,
        },
    )
    @action(detail=True, content_negotiation_class=AnyAccept, throttle_scope="files")
    def manifest(self, request: Request, slug: str, version: str) -> HttpResponse:
        """Send the stored manifest."""
        found = self.get_object()
        if not found.is_frozen:
            raise NotFound("This version is a draft: it has no manifest until it is frozen.")
        return files.serve(
            found.manifest,
            cache_seconds=MANIFEST_CACHE_SECONDS,
            request=request._request,
            etag=found.manifest_sha256,
            filename=f"{slug}-{version}-manifest.jsonl",
            is_public=found.collection.visibility == Visibility.PUBLIC,
            as_attachment=True,
        )

    @extend_schema(
        summary="Curation log of a version",
        parameters=[SLUG, VERSION],
        responses={200: CurationLogEntrySerializer(many=True), **DETAIL_ERRORS},
    )
    @action(detail=True, url_path="curation-log", url_name="curation-log")
    def curation_log(self, request: Request, slug: str, version: str) -> Response:
        """What was added, cropped, replaced or removed, why and by whom, in pages."""
        entries = CurationLogEntry.objects.filter(version=self.get_object()).select_related("replacement", "decided_by")
        page = self.paginate_queryset(entries)
        serializer = CurationLogEntrySerializer(page, many=True, context=self.get_serializer_context())
        return self.get_paginated_response(serializer.data)

    @extend_schema(
        summary="What is different from an earlier version",
        description=f"Counts, and the first {DIFFERENCES_SHOWN:,} images of each list; the manifests have them all.",
        parameters=[
            SLUG,
            VERSION,
            OpenApiParameter(SINCE, str, description="The earlier version; without it, the one before this."),
        ],
        responses={200: DiffSerializer, **DETAIL_ERRORS},
    )
    @action(detail=True)
    def diff(self, request: Request, slug: str, version: str) -> Response:
        """Compare with an earlier version of the collection."""
        after = self.get_object()
        before = self._earlier(after, request.query_params.get(SINCE))
        difference = diff_versions(before, after)
        shown = {
            name: list(islice(getattr(difference, name), DIFFERENCES_SHOWN))
            for name in ("added", "removed", "replaced")
        }
        counts = {f"{name}_count": len(getattr(difference, name)) for name in shown}
        unchanged = {"unchanged_count": difference.unchanged_count}
        return Response(
            DiffSerializer({"since": before.version, "version": after.version, **counts, **unchanged, **shown}).data
        )

    def _earlier(self, after: CollectionVersion, since: str | None) -> CollectionVersion:
        versions = self.get_queryset()
        if since is not None:
            # PostgreSQL refuses to compare with text that it cannot store.
            before = None if "\0" in since else versions.filter(version=since).first()
        else:
            before = versions.filter(pk__lt=after.pk).order_by("-pk").first()
        if before is None:
            known = ", ".join(versions.values_list("version", flat=True))
            text = f"The collection has no version {since!r}." if since else "There is no earlier version."
            raise ValidationError({SINCE: [f"{text} Known: {known}."]})
        return before
