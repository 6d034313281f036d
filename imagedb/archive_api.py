"""Archives of images: any filtered set, and any version of a collection."""

from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from imagedb.archive_download import FORMATS, archive_response, take_slot
from imagedb.archives import ArchiveType, plan_archive
from imagedb.archives.readme import readme
from imagedb.filters import ImageFilter
from imagedb.models import CollectionVersion, Image
from imagedb.selectors import visible_images
from imagedb.selectors.archives import archived_images, images_and_sources
from imagedb.selectors.collections import images_of_version, visible_versions
from scooter_site.common.api_errors import DETAIL_ERRORS, ErrorSerializer
from scooter_site.common.filters import StrictFilterBackend, refuse_unclear_parameters
from scooter_site.common.negotiation import AnyAccept

PARTS = ("original", "rendition")


class ArchiveParametersSerializer(serializers.Serializer):
    """Query parameters that say what an archive is like."""

    archive_type = serializers.ChoiceField(
        [kind.value for kind in ArchiveType],
        default=ArchiveType.ZIP.value,
        help_text="`zip`: folders by class, attack and target model. `webdataset`: a tar with one sample per image.",
    )
    files = serializers.ChoiceField(
        PARTS,
        default="original",
        help_text="`original`: as imported. `rendition`: PNG as participants see it, upright, sRGB, no metadata.",
    )
    sources = serializers.BooleanField(
        default=False,
        help_text="Add the clean images that adversarial examples were made from, where they are not among the images "
        "anyway. With them the archive can be imported elsewhere.",
    )


ARCHIVE_PARAMETERS = set(ArchiveParametersSerializer().fields)


class ArchiveFilterBackend(StrictFilterBackend):
    """The filters of the list of images, and the parameters of archives; there are no pages."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        filterset_class = self.get_filterset_class(view, queryset)
        refuse_unclear_parameters(request, set(filterset_class.base_filters) | ARCHIVE_PARAMETERS)
        return DjangoFilterBackend.filter_queryset(self, request, queryset, view)


def header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)


BINARY = {(status, kind.content_type): OpenApiTypes.BINARY for status in (200, 206) for kind in FORMATS.values()}
archive_schema = partial(
    extend_schema,
    parameters=[
        ArchiveParametersSerializer,
        header("Range", "One range of bytes, to resume a download: `bytes=1000-`."),
        header("If-Range", "ETag of the part you have: if the archive is another by now, it is sent as a whole."),
        header("If-Match", "ETag of the part you have: if the archive is another by now, the answer is 412."),
        header("If-None-Match", "ETag of the archive you have."),
    ],
    responses={
        **BINARY,
        304: OpenApiResponse(description="You have it already (If-None-Match)."),
        **DETAIL_ERRORS,
        412: OpenApiResponse(ErrorSerializer, description="The images have changed (If-Match)."),
        416: OpenApiResponse(ErrorSerializer, description="The range begins after the end of the archive."),
        503: OpenApiResponse(ErrorSerializer, description="Too many downloads at the moment; see Retry-After."),
    },
)


class ArchiveView(GenericAPIView):
    """What archives of images have in common."""

    permission_classes = [AllowAny]
    content_negotiation_class = AnyAccept
    throttle_scope = "files"
    pagination_class = None
    queryset = Image.objects.none()

    def send(
        self,
        request: Request,
        images: QuerySet[Image],
        *,
        name: str,
        title: str,
        details: list[str],
        nothing: str,
        total: int | None = None,
        preferred_model: str = "",
    ) -> HttpResponseBase:
        """Answer with an archive of ``images``, which must be visible to the user.

        ``nothing`` is the error where there are none; ``total`` is how many there would be if the user saw them all.
        """
        serializer = ArchiveParametersSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        parameters = serializer.validated_data
        archive_type, part = ArchiveType(parameters["archive_type"]), parameters["files"]
        if parameters["sources"]:
            images = images_and_sources(images, request.user)

        def text(count: int) -> str:
            hidden = f" of {total:,}; the others are not open to the account that asked" if total else ""
            return readme(title, details, f"{count:,}{hidden if total != count else ''}", archive_type, part)

        with ExitStack() as resources:
            take_slot(resources)
            rows = archived_images(images, request.user, part=part)
            first = next(rows, None)
            if first is None:
                raise NotFound(nothing)
            layout = plan_archive(chain([first], rows), archive_type, readme=text, preferred_model=preferred_model)
            resources.callback(layout.close)
            return archive_response(request, layout, resources, archive_type, name)


class ImageArchiveView(ArchiveView):
    """One archive of all images that fit the filters."""

    filter_backends = [ArchiveFilterBackend]
    filterset_class = ImageFilter

    @archive_schema(
        summary="Download images as an archive",
        description="All images that fit the filters, with a manifest and SHA-256 digests, as one file. Its length is "
        "known from the start, and any part of it can be asked for, so that an interrupted download can be resumed.",
        filters=True,
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Send the archive."""
        images = self.filter_queryset(visible_images(request.user))
        filters = sorted(
            (name, value) for name, value in request.query_params.items() if name in ImageFilter.all_filters()
        )
        return self.send(
            request,
            images,
            name="scooter-images",
            title="Images from Scooter",
            details=[f"Filters: {urlencode(filters) or 'none'}"],
            nothing="No image that you may see fits these filters.",
        )


class CollectionVersionArchiveView(ArchiveView):
    """One archive of a version of a collection."""

    filter_backends = []

    @archive_schema(
        summary="Download a version of a collection as an archive",
        description="Its images as far as you may see them, with licence and citation, a manifest and SHA-256 "
        "digests, as one file. A frozen version gives the same bytes every time to whoever may see all its images.",
    )
    def get(self, request: Request, slug: str, version: str) -> HttpResponseBase:
        """Send the archive."""
        refuse_unclear_parameters(request, ARCHIVE_PARAMETERS)
        found: Any = get_object_or_404(visible_versions(request.user), collection__slug=slug, version=version)
        model = found.collection.target_model
        return self.send(
            request,
            images_of_version(found, request.user),
            name=f"{slug}-{version}",
            title=str(found),
            details=_about_version(found),
            nothing="You may see none of its images. Images for registered accounts need the account's token, and "
            "the ImageNet terms accepted on its account page.",
            total=found.total_count,
            preferred_model=model.slug if model else "",
        )


def _about_version(version: CollectionVersion) -> list[str]:
    """What README.txt says of a version, as far as it is known."""
    digest = f"The collection's own manifest has the SHA-256 digest {version.manifest_sha256}."
    facts = [
        version.collection.description,
        version.licence and f"Licence of the collection: {version.licence}",
        version.citation and f"To cite it:\n\n{version.citation}",
        version.doi and f"DOI: {version.doi}",
        version.changelog and f"Changes:\n\n{version.changelog}",
        f"Frozen on {version.frozen_at:%Y-%m-%d}. {digest}" if version.frozen_at else "A draft: it may change.",
    ]
    return [fact.strip() for fact in facts if fact]
