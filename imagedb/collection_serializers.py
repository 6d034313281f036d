"""Collections and their versions as the API shows them."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from imagedb.models import Collection, CollectionVersion, CurationLogEntry

DIFFERENCES_SHOWN = 1000
LOG_ENTRIES_SHOWN = 500


class VersionAddressField(serializers.HyperlinkedIdentityField):
    """Address of something of a version."""

    def get_url(self, obj: Any, view_name: str, request: Any, format: Any) -> str:
        # Django's reverse: REST framework's hands ?format= on, which these addresses may not have.
        address = reverse(view_name, kwargs={"slug": obj.collection.slug, "version": obj.version})
        return request.build_absolute_uri(address)


class FrozenVersionAddressField(VersionAddressField):
    """The same; null for a draft."""

    def get_url(self, obj: Any, view_name: str, request: Any, format: Any) -> Any:
        return super().get_url(obj, view_name, request, format) if obj.is_frozen else None


class VersionReferenceSerializer(serializers.ModelSerializer):
    """A version, as far as it takes to find it."""

    url = VersionAddressField(view_name="collection-version-detail")
    image_count = serializers.IntegerField(source="total_count", read_only=True)

    class Meta:
        model = CollectionVersion
        fields = ["version", "frozen_at", "image_count", "url"]


class CollectionSerializer(serializers.ModelSerializer):
    """A named set of images; what is in it is a matter of versions."""

    target_model: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True, allow_null=True)
    versions = VersionReferenceSerializer(
        source="visible_versions", many=True, read_only=True, help_text="Oldest first; drafts have no frozen_at."
    )

    class Meta:
        model = Collection
        fields = [
            "slug",
            "name",
            "description",
            "target_model",
            "min_confidence",
            "visibility",
            "is_demo",
            "created_at",
            "versions",
        ]


class CollectionVersionSerializer(serializers.ModelSerializer):
    """One state of a collection. A frozen one never changes."""

    collection: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    is_frozen = serializers.BooleanField(read_only=True)
    image_count = serializers.IntegerField(
        source="total_count", read_only=True, help_text="Of all its images, whether you may see them or not."
    )
    manifest = FrozenVersionAddressField(view_name="collection-version-manifest", allow_null=True)
    url = VersionAddressField(view_name="collection-version-detail")

    class Meta:
        model = CollectionVersion
        fields = [
            "collection",
            "version",
            "is_frozen",
            "frozen_at",
            "licence",
            "citation",
            "doi",
            "changelog",
            "image_count",
            "manifest_sha256",
            "manifest",
            "created_at",
            "url",
        ]


class CurationLogEntrySerializer(serializers.ModelSerializer):
    """What somebody did to a version, and why."""

    image = serializers.UUIDField(
        source="image_public_id", read_only=True, allow_null=True, help_text="Null if many were added at once."
    )
    replacement = serializers.UUIDField(
        source="replacement.public_id",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="What it was cropped to or replaced by.",
    )
    decided_by = serializers.SerializerMethodField(help_text="Name of the person; null if no person did it.")

    class Meta:
        model = CurationLogEntry
        fields = ["action", "image", "image_filename", "replacement", "count", "reason", "decided_by", "decided_at"]

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_decided_by(self, entry: CurationLogEntry) -> str | None:
        user = entry.decided_by
        return None if user is None else user.get_full_name() or user.get_username()


class CollectionVersionDetailSerializer(CollectionVersionSerializer):
    """A version with what is in it and how it came to be."""

    clean_count = serializers.IntegerField(source="counts.clean", read_only=True)
    modified_count = serializers.IntegerField(source="counts.modified", read_only=True)
    visible_count = serializers.IntegerField(
        source="counts.visible", read_only=True, help_text="How many of its images you may see."
    )
    curation_log_count = serializers.IntegerField(source="log_count", read_only=True)
    curation_log = serializers.SerializerMethodField(
        help_text=f"The first {LOG_ENTRIES_SHOWN} entries; all of them are at curation_log_url."
    )
    curation_log_url = VersionAddressField(view_name="collection-version-curation-log")

    class Meta(CollectionVersionSerializer.Meta):
        fields = [
            *CollectionVersionSerializer.Meta.fields,
            "clean_count",
            "modified_count",
            "visible_count",
            "curation_log_count",
            "curation_log",
            "curation_log_url",
        ]

    @extend_schema_field(CurationLogEntrySerializer(many=True))
    def get_curation_log(self, version: CollectionVersion) -> Any:
        entries = version.curation_log.select_related("replacement", "decided_by")[:LOG_ENTRIES_SHOWN]
        return CurationLogEntrySerializer(entries, many=True).data


class ReplacementSerializer(serializers.Serializer):
    """An image that took another's place."""

    before = serializers.UUIDField()
    after = serializers.UUIDField()
    action = serializers.ChoiceField(["cropped", "replaced"])
    reason = serializers.CharField()


class DiffSerializer(serializers.Serializer):
    """What is different in a version. Ids of images, in their order."""

    since = serializers.CharField(help_text="The earlier version.")
    version = serializers.CharField()
    added_count = serializers.IntegerField()
    removed_count = serializers.IntegerField()
    replaced_count = serializers.IntegerField()
    unchanged_count = serializers.IntegerField()
    added = serializers.ListField(child=serializers.UUIDField())
    removed = serializers.ListField(child=serializers.UUIDField())
    replaced = ReplacementSerializer(many=True)
