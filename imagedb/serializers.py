"""The catalogue as the API shows it. Internal ids never leave the site."""

from typing import Any
from uuid import UUID

from django.urls import reverse
from rest_framework import serializers

from imagedb.models import Attack, CollectionVersion, Image, ImageClass, Prediction, TargetModel
from scooter_site.common.quick_serializer import QuickSerializer

NOBODY = str(UUID(int=0))


class AttackSerializer(serializers.ModelSerializer):
    """A method that makes modified images."""

    class Meta:
        model = Attack
        fields = [
            "slug",
            "name",
            "family",
            "description",
            "threat_model",
            "is_targeted",
            "parameters",
            "paper_title",
            "paper_url",
            "code_url",
            "bibtex",
            "venue",
            "year",
            "is_demo",
        ]


class TargetModelSerializer(serializers.ModelSerializer):
    """A classifier under attack."""

    class Meta:
        model = TargetModel
        fields = [
            "slug",
            "name",
            "architecture",
            "training",
            "source",
            "weights_reference",
            "preprocessing",
            "dataset",
            "clean_accuracy",
            "description",
            "is_demo",
        ]


class ImageClassSerializer(QuickSerializer):
    """One of the 1,000 ImageNet classes."""

    class Meta:
        model = ImageClass
        fields = ["index", "synset", "name", "synonyms"]


class ClassReferenceSerializer(QuickSerializer):
    """A class, as far as it takes to know it."""

    class Meta:
        model = ImageClass
        fields = ["index", "synset", "name"]


class PredictionSerializer(QuickSerializer):
    """What a target model says about an image."""

    target_model: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    predicted_class = ClassReferenceSerializer(read_only=True)

    class Meta:
        model = Prediction
        fields = ["target_model", "predicted_class", "confidence"]


class CollectionReferenceSerializer(QuickSerializer):
    """A version of a collection that has the image."""

    collection: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        model = CollectionVersion
        fields = ["collection", "version"]


class AddressField(serializers.HyperlinkedIdentityField):
    """The whole address of something else of an image; without the ``format`` that the list was asked for in."""

    def to_representation(self, value: Any) -> str:
        return self._pattern.replace(NOBODY, str(value.public_id))

    @property
    def _pattern(self) -> str:
        """The address of an image that there is not: a list looks up once what differs in the id only."""
        found = self.context.setdefault("patterns", {})
        if self.view_name not in found:
            address = reverse(self.view_name, kwargs={"public_id": NOBODY})
            found[self.view_name] = self.context["request"].build_absolute_uri(address)
        return found[self.view_name]


class ImageSerializer(QuickSerializer):
    """An image of the catalogue."""

    id = serializers.UUIDField(source="public_id", read_only=True)
    source = serializers.UUIDField(  # type: ignore[assignment]  # shadows Field.source, as its metaclass allows
        source="visible_source_id",
        read_only=True,
        allow_null=True,
        help_text="Id of the clean image that this one was made from; null for a clean image, and where the source "
        "is not visible to you.",
    )
    attack: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True, allow_null=True)
    target_model: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True, allow_null=True)
    predictions = PredictionSerializer(many=True, read_only=True)
    collections = CollectionReferenceSerializer(
        source="visible_versions", many=True, read_only=True, help_text="Those that you may see."
    )
    file = AddressField(view_name="image-file", lookup_field="public_id")
    thumbnail = AddressField(view_name="image-thumbnail", lookup_field="public_id")

    class Meta:
        model = Image
        fields = [
            "id",
            "kind",
            "source",
            "attack",
            "target_model",
            "predictions",
            "verified",
            "comparison",
            "linf",
            "l2",
            "changed_share",
            "ssim",
            "ciede2000",
            "width",
            "height",
            "original_filename",
            "original_sha256",
            "original_bytes",
            "original_format",
            "original_mode",
            "original_profile",
            "rendition_sha256",
            "rendition_bytes",
            "collections",
            "visibility",
            "licence",
            "attribution",
            "is_demo",
            "created_at",
            "file",
            "thumbnail",
        ]

    def get_fields(self) -> dict[str, Any]:
        # "class" is the field's word and Python's too, so that it cannot be declared above.
        declared = super().get_fields()
        fields = {name: declared.pop(name) for name in ("id", "kind")}
        fields["class"] = ClassReferenceSerializer(source="image_class", read_only=True)
        return {**fields, **declared}


class FileParametersSerializer(serializers.Serializer):
    """Query parameters of an image's file."""

    rendition = serializers.BooleanField(
        default=False,
        help_text="The image as participants see it: PNG, upright, sRGB, no metadata; instead of the original bytes.",
    )
