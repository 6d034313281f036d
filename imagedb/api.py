"""The catalogue's API. Everybody may read it; the selector decides which images a reader sees."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from imagedb import files
from imagedb.filters import ImageFilter
from imagedb.models import Attack, Image, ImageClass, TargetModel
from imagedb.selectors import visible_images
from imagedb.selectors.evaluations import public_evaluations
from imagedb.selectors.image_rows import image_rows
from imagedb.serializers import (
    AttackSerializer,
    FileParametersSerializer,
    ImageClassSerializer,
    ImageSerializer,
    TargetModelSerializer,
)
from scooter_site.common.api_errors import DETAIL_ERRORS, LIST_ERRORS
from scooter_site.common.negotiation import AnyAccept
from scooter_site.common.renderers import CSVRenderer, JSONLinesRenderer
from scooter_site.common.throttling import LISTS

NOT_MODIFIED = OpenApiResponse(description="You have it already (If-None-Match).")
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="ETag of the file you have."
)
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif", "image/tiff")


class CatalogueViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Read-only, for everybody; a token adds what its account may see."""

    permission_classes = [AllowAny]

    def get_renderers(self) -> list[BaseRenderer]:
        renderers = super().get_renderers()
        return [*renderers, CSVRenderer(), JSONLinesRenderer()] if self.action == "list" else renderers


def list_schema(summary: str, serializer: type[serializers.Serializer], errors: dict[int, Any] = LIST_ERRORS) -> Any:
    """How the schema describes a list: one page of it, in three formats."""
    text = OpenApiTypes.STR
    return extend_schema(
        summary=summary,
        parameters=[
            OpenApiParameter(
                "Link",
                str,
                OpenApiParameter.HEADER,
                response=[200],
                description='Addresses of the next and the previous page: `<...>; rel="next"`. Missing where there are '
                "none.",
            )
        ],
        responses={
            (200, JSONRenderer.media_type): serializer(many=True),
            (200, CSVRenderer.media_type): text,
            (200, JSONLinesRenderer.media_type): text,
            **errors,
        },
    )


@extend_schema_view(
    list=list_schema("List images", ImageSerializer),
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
    throttle_scope = LISTS

    def get_queryset(self) -> QuerySet:
        if getattr(self, "swagger_fake_view", False):
            return Image.objects.none()
        self.visible = visible_images(self.request.user)
        return self.visible

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """The page, found by ids alone; what describes its images is read for these few."""
        return self._rows([image.pk for image in super().paginate_queryset(queryset.only("pk")) or ()])

    def retrieve(self, request: Request, public_id: str) -> Response:
        """One image."""
        rows = self._rows([self.get_object().pk])
        if not rows:  # deleted a moment ago
            raise Http404
        return Response(self.get_serializer(rows[0]).data)

    def _rows(self, keys: list[int]) -> list[dict[str, Any]]:
        return image_rows(self.request.user, self.visible, keys)

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
    @action(detail=True, content_negotiation_class=AnyAccept, throttle_scope="files")
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
    @action(detail=True, content_negotiation_class=AnyAccept, throttle_scope="files")
    def thumbnail(self, request: Request, public_id: str) -> HttpResponse:
        """Send the thumbnail."""
        return files.serve_thumbnail(_plain(request), self.get_object())


@extend_schema_view(
    list=list_schema("List attacks", AttackSerializer),
    retrieve=extend_schema(summary="One attack", responses={200: AttackSerializer, **DETAIL_ERRORS}),
)
class AttackViewSet(CatalogueViewSet):
    """Methods that make modified images."""

    queryset = Attack.objects.prefetch_related(Prefetch("evaluations", public_evaluations()))
    serializer_class = AttackSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"


@extend_schema_view(
    list=list_schema("List target models", TargetModelSerializer),
    retrieve=extend_schema(summary="One target model", responses={200: TargetModelSerializer, **DETAIL_ERRORS}),
)
class TargetModelViewSet(CatalogueViewSet):
    """Classifiers under attack."""

    queryset = TargetModel.objects.all()
    serializer_class = TargetModelSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"


@extend_schema_view(
    list=list_schema("List classes", ImageClassSerializer),
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
