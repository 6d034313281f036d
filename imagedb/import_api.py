"""Imports over the API: ask for one, follow it, cancel it, and fetch what became of its rows. See docs/import.md."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from imagedb.models import ImportBatch, Visibility
from imagedb.models.imports import ImportSource
from imagedb.selectors.imports import handled_count, own_imports, rows_csv
from imagedb.services import importing
from imagedb.upload_api import BAD_FIELD, NOT_ALLOWED, NOT_JSON, MayImport, OnlyKnownFields
from scooter_site.common.api_errors import DETAIL_ERRORS, LIST_ERRORS, NOT_SIGNED_IN


def _length_of(field: str) -> int | None:
    return getattr(ImportBatch._meta.get_field(field), "max_length", None)


class NewImportSerializer(OnlyKnownFields):
    upload = serializers.UUIDField(
        required=False,
        help_text="Id of an upload of yours that is complete: a ZIP with the images and a manifest. With `prefix`, a "
        "manifest for the images there.",
    )
    prefix = serializers.CharField(
        required=False,
        max_length=_length_of("location"),
        help_text="Take the images from the bucket below this prefix, such as `incoming/my-set/`.",
    )
    manifest = serializers.CharField(
        required=False,
        max_length=_length_of("source_name"),
        help_text="With `prefix`: the manifest's name below it. Only needed if there are several CSV or JSONL files "
        "there and none is named manifest.",
    )
    visibility = serializers.ChoiceField(Visibility.choices, default=Visibility.REGISTERED)
    group = serializers.CharField(
        required=False,
        max_length=Group._meta.get_field("name").max_length,
        help_text="Name of the group of yours that the images are to belong to; left out, they belong to none.",
    )
    licence = serializers.CharField(default="", allow_blank=True, max_length=_length_of("licence"))
    attribution = serializers.CharField(default="", allow_blank=True, max_length=_length_of("attribution"))
    dry_run = serializers.BooleanField(
        default=False, help_text="Check every row and decode every image, but import nothing."
    )


class ImportSerializer(serializers.ModelSerializer[ImportBatch]):
    id = serializers.UUIDField(source="public_id", read_only=True)
    prefix = serializers.SerializerMethodField(help_text="Where in the bucket the images are; empty for an archive.")
    group = serializers.SlugRelatedField[Group](slug_field="name", read_only=True, allow_null=True)
    dry_run = serializers.BooleanField(source="is_dry_run", read_only=True)
    is_cancel_requested = serializers.SerializerMethodField(
        help_text="Whether it is to stop, or has been stopped. Workers finish the rows they are at."
    )
    handled_count = serializers.SerializerMethodField(help_text="Rows that are through, of `row_count`.")
    imported_count = serializers.IntegerField(help_text="After a dry run: rows that would be imported.")
    notes = serializers.SerializerMethodField(help_text="What was created, changed or skipped on the way.")

    class Meta:
        model = ImportBatch
        fields = [
            "id",
            "source_name",
            "prefix",
            "visibility",
            "group",
            "licence",
            "attribution",
            "dry_run",
            "status",
            "is_cancel_requested",
            "error",
            "row_count",
            "handled_count",
            "imported_count",
            "already_there_count",
            "failed_count",
            "notes",
            "created_at",
            "started_at",
            "finished_at",
        ]
        read_only_fields = fields

    def get_prefix(self, batch: ImportBatch) -> str:
        return batch.location if batch.source == ImportSource.PREFIX else ""

    def get_is_cancel_requested(self, batch: ImportBatch) -> bool:
        return batch.cancel_requested_at is not None

    def get_handled_count(self, batch: ImportBatch) -> int:
        return handled_count(batch)

    def get_notes(self, batch: ImportBatch) -> list[str]:
        return batch.notes.splitlines()


OWN_ERRORS = {**DETAIL_ERRORS, 403: NOT_ALLOWED}


@extend_schema_view(
    list=extend_schema(
        summary="List your imports", responses={200: ImportSerializer(many=True), **LIST_ERRORS, 403: NOT_ALLOWED}
    ),
    retrieve=extend_schema(summary="One import, and how far it is", responses={200: ImportSerializer, **OWN_ERRORS}),
)
class ImportViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Imports of images with a manifest, done by background workers. An account sees its own only."""

    queryset = ImportBatch.objects.none()
    serializer_class = ImportSerializer
    permission_classes = [MayImport]
    lookup_field = "public_id"
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[ImportBatch]:
        if getattr(self, "swagger_fake_view", False):
            return ImportBatch.objects.none()
        return own_imports(_account(self.request)).select_related("group")

    @extend_schema(
        summary="Ask for an import",
        description="Of an upload (see `uploads`) or of files that are in the bucket already. Workers begin within "
        "seconds; follow it at its own address until `status` is `done`, `failed` or `cancelled`.",
        request=NewImportSerializer,
        responses={201: ImportSerializer, 400: BAD_FIELD, 401: NOT_SIGNED_IN, 403: NOT_ALLOWED, 415: NOT_JSON},
    )
    def create(self, request: Request) -> Response:
        serializer = NewImportSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        wanted: dict[str, Any] = serializer.validated_data
        batch = ImportBatch(
            visibility=wanted["visibility"],
            group=_own_group(_account(request), wanted.get("group")),
            licence=wanted["licence"],
            attribution=wanted["attribution"],
            is_dry_run=wanted["dry_run"],
        )
        try:
            importing.request_new_import(
                _account(request),
                batch,
                upload=wanted.get("upload"),
                prefix=wanted.get("prefix", ""),
                manifest=wanted.get("manifest", ""),
            )
        except importing.ImportRefused as refusal:
            raise exceptions.ValidationError({refusal.field: [str(refusal)]}) from refusal
        batch.refresh_from_db()
        return Response(self.get_serializer(batch).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Cancel an import",
        description="Workers finish the rows they are at and stop. What is in the catalogue by then stays. Harmless "
        "when repeated, or when the import is over.",
        request=None,
        responses={200: ImportSerializer, **OWN_ERRORS},
    )
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, public_id: UUID) -> Response:
        batch = self.get_object()
        importing.cancel_import(batch)
        batch.refresh_from_db()
        return Response(self.get_serializer(batch).data)

    @extend_schema(
        operation_id="imports_rows",
        summary="What became of every row, as CSV",
        description="Columns: row (as a spreadsheet counts), filename, kind, result (`waiting`, `imported`, "
        "`would_be_imported`, `already_there`, `failed`), message, image (its id), sha256.",
        responses={(200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="All rows."), **OWN_ERRORS},
    )
    def rows(self, request: Request, public_id: UUID) -> StreamingHttpResponse:
        batch = self.get_object()
        return StreamingHttpResponse(
            rows_csv(batch),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="import-{batch.public_id}-rows.csv"'},
        )


def _own_group(user: User, name: str | None) -> Group | None:
    if name is None:
        return None
    groups = importing.own_groups(user)
    group = groups.filter(name=name).first()
    if group is None:
        known = ", ".join(groups.order_by("name").values_list("name", flat=True))
        raise exceptions.ValidationError({"group": [f"This is no group of yours. Yours: {known or 'none'}."]})
    return group


def _account(request: Request) -> User:
    if not isinstance(request.user, User):
        raise exceptions.NotAuthenticated
    return request.user
