"""Uploads in parts over the API, for scripts and for the admin's import page. docs/uploads.md shows how."""

import base64
import binascii
import hashlib
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractUser
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.request import UnreadablePostError
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import exceptions, mixins, permissions, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from imagedb.models.uploads import Upload
from imagedb.selectors.uploads import arrived_parts, open_uploads, own_uploads
from imagedb.services import uploads
from imagedb.upload_parts import StorageFull, UploadConflict, UploadRefused, parts_of, size_of_part
from scooter_site.common.api_errors import DETAIL_ERRORS, LIST_ERRORS, NOT_FOUND, NOT_SIGNED_IN, ErrorSerializer
from scooter_site.common.storage import LINK_SECONDS

MOST_LINKS = 100
# A sender who falls silent, or is slower than this, must not keep one of the web server's few threads.
SILENCE_SECONDS = 20
SLOWEST_BYTES_PER_SECOND = 32 * 1024
SHORTEST_DEADLINE_SECONDS = 60
READ_BYTES = 64 * 1024


class MayImport(permissions.BasePermission):
    """Accounts that may import images may upload them."""

    message = "Your account may not import images. Ask an administrator to let it."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return bool(request.user.is_authenticated and request.user.has_perm("imagedb.add_importbatch"))


class Conflict(exceptions.APIException):
    status_code = status.HTTP_409_CONFLICT


class SenderTooSlow(exceptions.APIException):
    status_code = status.HTTP_408_REQUEST_TIMEOUT
    default_detail = "The part did not come in time. Send it again, over a faster connection if this keeps happening."


class NoRoom(exceptions.APIException):
    status_code = status.HTTP_507_INSUFFICIENT_STORAGE


class StorageAway(exceptions.APIException):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The storage cannot be reached at the moment. Try again in a minute."


class OnlyKnownFields(serializers.Serializer):
    """Refuses fields that it does not have, by name."""

    def to_internal_value(self, data: Any) -> Any:
        values = super().to_internal_value(data)
        if unknown := set(data) - set(self.fields):
            known = ", ".join(self.fields)
            raise serializers.ValidationError({name: [f"Unknown field; known are: {known}."] for name in unknown})
        return values


class NewUploadSerializer(OnlyKnownFields):
    filename = serializers.CharField(
        help_text="The file's own name, ending in .zip, .csv or .jsonl. It is never stored under this name."
    )
    size = serializers.IntegerField(min_value=1, help_text="In bytes.")


class PartNumbersSerializer(OnlyKnownFields):
    numbers = serializers.ListField(
        child=serializers.IntegerField(min_value=1),
        min_length=1,
        max_length=MOST_LINKS,
        help_text=f"Which parts, from 1; at most {MOST_LINKS} at a time.",
    )


class UploadSerializer(serializers.ModelSerializer[Upload]):
    id = serializers.UUIDField(source="public_id", read_only=True)
    part_count = serializers.IntegerField(read_only=True)
    is_direct = serializers.SerializerMethodField(
        help_text="Whether parts go straight to the bucket (no token is sent there) or through the site."
    )

    class Meta:
        model = Upload
        fields = [
            "id",
            "filename",
            "size",
            "part_size",
            "part_count",
            "status",
            "is_direct",
            "created_at",
            "completed_at",
        ]
        read_only_fields = fields

    def get_is_direct(self, upload: Upload) -> bool:
        return parts_of(upload).is_direct


class PartSerializer(serializers.Serializer):
    number = serializers.IntegerField()
    size = serializers.IntegerField(help_text="In bytes.")
    etag = serializers.CharField(help_text="As the bucket gave it; of a part on disk its SHA-256.")


class UploadWithPartsSerializer(UploadSerializer):
    parts = serializers.SerializerMethodField(help_text="The parts that have arrived.")

    class Meta(UploadSerializer.Meta):
        fields = [*UploadSerializer.Meta.fields, "parts"]
        read_only_fields = fields

    @extend_schema_field(PartSerializer(many=True))
    def get_parts(self, upload: Upload) -> Any:
        return PartSerializer(arrived_parts(upload), many=True).data


class PartLinkSerializer(serializers.Serializer):
    number = serializers.IntegerField()
    size = serializers.IntegerField(help_text="The bytes that this part must have.")
    url = serializers.URLField(help_text="PUT the part's bytes here.")
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="A PUT must begin before; null: the link is an address of this site."
    )


class PartLinksSerializer(serializers.Serializer):
    links = PartLinkSerializer(many=True)


BAD_FIELD = OpenApiResponse(
    {"type": "object", "additionalProperties": {}},
    description="A field, header or parameter is unknown or has a bad value: its name, and what to do.",
)
NOT_ALLOWED = OpenApiResponse(ErrorSerializer, description="The account may not import images.")
CONFLICT = OpenApiResponse(ErrorSerializer, description="Not in the state the upload is in; the text says what to do.")
NOT_JSON = OpenApiResponse(ErrorSerializer, description="The body is not sent as application/json.")
TOO_SLOW = OpenApiResponse(ErrorSerializer, description="The part did not come in time. Send it again.")
STORAGE_AWAY = OpenApiResponse(ErrorSerializer, description="The storage cannot be reached. Try again in a minute.")
NO_ROOM = OpenApiResponse(ErrorSerializer, description="The server's disk is full.")
OWN_ERRORS = {400: BAD_FIELD, 401: NOT_SIGNED_IN, 403: NOT_ALLOWED, 404: NOT_FOUND, 503: STORAGE_AWAY}
CONTENT_DIGEST = OpenApiParameter(
    "Content-Digest",
    str,
    OpenApiParameter.HEADER,
    description="`sha-256=:BASE64:` (RFC 9530). If given, a part whose bytes have another digest is refused.",
)


@extend_schema_view(
    list=extend_schema(
        summary="List your open uploads",
        description="Those that still take parts, or that no import has taken yet.",
        responses={200: UploadSerializer(many=True), **LIST_ERRORS, 403: NOT_ALLOWED},
    ),
    retrieve=extend_schema(
        summary="One upload, and which of its parts are there",
        responses={200: UploadWithPartsSerializer, **DETAIL_ERRORS, **OWN_ERRORS},
    ),
)
class UploadViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Large files in parts, for an import. An account sees its own uploads only."""

    queryset = Upload.objects.none()
    serializer_class = UploadSerializer
    permission_classes = [MayImport]
    throttle_scope = "uploads"
    lookup_field = "public_id"
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Upload]:
        if getattr(self, "swagger_fake_view", False):
            return Upload.objects.none()
        return open_uploads(self.request.user) if self.action == "list" else own_uploads(self.request.user)

    def get_serializer_class(self) -> type[serializers.BaseSerializer]:
        return UploadSerializer if self.action == "list" else UploadWithPartsSerializer

    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case UploadRefused():
                name = "Content-Digest" if exc.field == "sha256" else exc.field
                exc = exceptions.ValidationError({name: [str(exc)]})
            case UploadConflict():
                exc = Conflict(str(exc))
            case StorageFull():
                exc = NoRoom(str(exc))
            case _ if isinstance(exc, getattr(Upload().file.storage, "TRANSIENT_ERRORS", ())):
                exc = StorageAway()
        return super().handle_exception(exc)

    @extend_schema(
        summary="Begin an upload",
        description="Announce a file. The answer says how long each part must be (`part_size`; the last may be "
        "shorter) and how many there are.",
        request=NewUploadSerializer,
        responses={
            201: UploadWithPartsSerializer,
            400: BAD_FIELD,
            401: NOT_SIGNED_IN,
            403: NOT_ALLOWED,
            415: NOT_JSON,
            503: STORAGE_AWAY,
        },
    )
    def create(self, request: Request) -> Response:
        wanted = NewUploadSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        upload = uploads.begin_upload(_account(request), **wanted.validated_data)
        return Response(self.get_serializer(upload).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Abandon an upload",
        description="Deletes what has arrived. Harmless when repeated.",
        responses={204: None, **OWN_ERRORS, 409: CONFLICT},
    )
    def destroy(self, request: Request, public_id: UUID) -> Response:
        uploads.abandon_upload(self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Links to send parts to",
        description="PUT each part's bytes to its link. Links to the bucket work for a few minutes, without your "
        "token, and for the announced number of bytes only; links to this site need your token.",
        request=PartNumbersSerializer,
        responses={200: PartLinksSerializer, **OWN_ERRORS, 409: CONFLICT, 415: NOT_JSON},
    )
    @action(detail=True, methods=["post"], url_path="parts", url_name="part-links")
    def part_links(self, request: Request, public_id: UUID) -> Response:
        upload = self.get_object()
        wanted = PartNumbersSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        is_direct = parts_of(upload).is_direct
        expires_at = datetime.now(UTC) + timedelta(seconds=LINK_SECONDS) if is_direct else None
        links = [
            {
                "number": number,
                "size": size_of_part(upload, number),
                "url": uploads.part_url(upload, number) if is_direct else self._site_link(upload, number),
                "expires_at": expires_at,
            }
            for number in wanted.validated_data["numbers"]
        ]
        return Response(PartLinksSerializer({"links": links}).data)

    @extend_schema(
        summary="Send one part",
        description="For uploads that are not direct. The body is the part's bytes as they are. A part that is sent "
        "again replaces the one before.",
        parameters=[CONTENT_DIGEST],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={200: PartSerializer, **OWN_ERRORS, 408: TOO_SLOW, 409: CONFLICT, 507: NO_ROOM},
    )
    @action(detail=True, methods=["put"], url_path="parts/<int:number>", url_name="part")
    def part(self, request: Request, public_id: UUID, number: int) -> Response:
        upload = self.get_object()
        sha256 = _sha256_of(request.headers.get("Content-Digest", ""))
        stored = uploads.store_part(upload, number, _Body(request._request), sha256)
        return Response(PartSerializer(stored).data)

    @extend_schema(
        summary="Complete an upload",
        description="When every part is there. Harmless when repeated. The upload's `id` is then given to an import.",
        request=None,
        responses={200: UploadWithPartsSerializer, **OWN_ERRORS, 409: CONFLICT},
    )
    @action(detail=True, methods=["post"])
    def complete(self, request: Request, public_id: UUID) -> Response:
        return Response(self.get_serializer(uploads.complete_upload(self.get_object())).data)

    def _site_link(self, upload: Upload, number: int) -> str:
        return self.request.build_absolute_uri(reverse("upload-part", args=[upload.public_id, number]))


class _Body:
    """The body of a request, given up when its sender falls silent or is too slow."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        length = int(request.headers.get("Content-Length") or 0)
        self.deadline = time.monotonic() + max(SHORTEST_DEADLINE_SECONDS, length / SLOWEST_BYTES_PER_SECOND)
        self.socket = request.META.get("gunicorn.socket")  # without it, the web server's own limits hold

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes, as DATA_UPLOAD_MAX_MEMORY_SIZE does not limit them; raises SenderTooSlow."""
        if time.monotonic() > self.deadline:
            raise SenderTooSlow
        try:
            if self.socket is not None:
                self.socket.settimeout(SILENCE_SECONDS)
            return self.request.read(min(size, READ_BYTES))
        except UnreadablePostError:
            raise SenderTooSlow from None
        finally:
            if self.socket is not None:
                self.socket.settimeout(None)


def _account(request: Request) -> AbstractUser:
    if not isinstance(request.user, AbstractUser):
        raise exceptions.NotAuthenticated
    return request.user


def _sha256_of(content_digest: str) -> str:
    """The SHA-256, hexadecimal, of a Content-Digest header; empty if it has none."""
    found = re.search(r"\bsha-256=([^,;]*)", content_digest, re.IGNORECASE)
    if not found:
        return ""
    try:
        value = found[1].strip()
        digest = base64.b64decode(value.removeprefix(":").removesuffix(":"), validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise UploadRefused("sha256", "It must be sha-256=:BASE64: with the 32 bytes of a SHA-256 digest.")
    return digest.hex()
