"""The catalogue's API. Everybody may read it; the selector decides which images a reader sees."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from imagedb import files
from imagedb.filters import ImageFilter
from imagedb.models import Attack, Image, ImageClass, TargetModel
from imagedb.selectors import images_with_details, visible_images
from imagedb.serializers import (
    AttackSerializer,
    FileParametersSerializer,
    ImageClassSerializer,
    ImageSerializer,
    TargetModelSerializer,
)
from scooter_site.common.api_errors import DETAIL_ERRORS, LIST_ERRORS

NOT_MODIFIED = OpenApiResponse(description="You have it already (If-None-Match).")
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="ETag of the file you have."
)
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif", "image/tiff")


class AnyAccept(BaseContentNegotiation):
    """Files are sent as they are and errors as JSON, whatever the client says it would like."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class CatalogueViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Read-only, for everybody; a token adds what its account may see."""

    permission_classes = [AllowAny]


@extend_schema_view(
    list=extend_schema(summary="List images", responses={200: ImageSerializer(many=True), **LIST_ERRORS}),
    retrieve=extend_schema(summary="One image", responses={200: ImageSerializer, **DETAIL_ERRORS}),
)
class ImageViewSet(CatalogueViewSet):
    """Clean images and adversarial examples.

    Anybody sees public images; an account's token (header `Authorization: Token ...`) adds those open to accounts.
    """

    queryset = Image.objects.all()
    serializer_class = ImageSerializer
    filterset_class = ImageFilter
    lookup_field = "public_id"
    lookup_value_converter = "uuid"
    detail_parameters = {"file": ("rendition",)}

    def get_queryset(self) -> QuerySet:
        if getattr(self, "swagger_fake_view", False):
            return Image.objects.none()
        if self.action in {"file", "thumbnail"}:
            return visible_images(self.request.user)
        return images_with_details(self.request.user)

    @extend_schema(
        summary="Download an image",
        description="The original file, byte for byte as it was imported. Where files are kept in an object storage, "
        "the answer is a redirect to a link that works for a few minutes.",
        parameters=[FileParametersSerializer, IF_NONE_MATCH],
        responses={
            **{(200, content_type): OpenApiTypes.BINARY for content_type in IMAGE_TYPES},
            302: OpenApiResponse(description="Follow the link without your token."),
            304: NOT_MODIFIED,
            **DETAIL_ERRORS,
        },
    )
    @action(detail=True, content_negotiation_class=AnyAccept)
    def file(self, request: Request, public_id: str) -> HttpResponse:
        """Send the original, or with ``?rendition=true`` the PNG that participants see."""
        image = self.get_object()
        parameters = FileParametersSerializer(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        send = files.serve_rendition if parameters.validated_data["rendition"] else files.serve_original
        return send(_plain(request), image, by_link=True)

    @extend_schema(
        summary="Thumbnail of an image",
        description="At most 256 pixels on the longer side.",
        parameters=[IF_NONE_MATCH],
        responses={
            **{(200, content_type): OpenApiTypes.BINARY for content_type in ("image/jpeg", "image/png")},
            304: NOT_MODIFIED,
            **DETAIL_ERRORS,
        },
    )
    @action(detail=True, content_negotiation_class=AnyAccept)
    def thumbnail(self, request: Request, public_id: str) -> HttpResponse:
        """Send the thumbnail."""
        return files.serve_thumbnail(_plain(request), self.get_object())


@extend_schema_view(
    list=extend_schema(summary="List attacks", responses={200: AttackSerializer(many=True), **LIST_ERRORS}),
    retrieve=extend_schema(summary="One attack", responses={200: AttackSerializer, **DETAIL_ERRORS}),
)
class AttackViewSet(CatalogueViewSet):
    """Methods that make modified images."""

    queryset = Attack.objects.all()
    serializer_class = AttackSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"


@extend_schema_view(
    list=extend_schema(summary="List target models", responses={200: TargetModelSerializer(many=True), **LIST_ERRORS}),
    retrieve=extend_schema(summary="One target model", responses={200: TargetModelSerializer, **DETAIL_ERRORS}),
)
class TargetModelViewSet(CatalogueViewSet):
    """Classifiers under attack."""

    queryset = TargetModel.objects.all()
    serializer_class = TargetModelSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"


@extend_schema_view(
    list=extend_schema(summary="List classes", responses={200: ImageClassSerializer(many=True), **LIST_ERRORS}),
    retrieve=extend_schema(summary="One class", responses={200: ImageClassSerializer, **DETAIL_ERRORS}),
)
class ImageClassViewSet(CatalogueViewSet):
    """The 1,000 ImageNet classes, by index."""

    queryset = ImageClass.objects.all()
    serializer_class = ImageClassSerializer
    lookup_field = "index"
    lookup_value_converter = "int"


def _plain(request: Request) -> HttpRequest:
    return request._request
