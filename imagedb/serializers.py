"""The catalogue as the API shows it. Internal ids never leave the site."""

from functools import cached_property
from typing import Any
from uuid import UUID

from django.urls import reverse
from rest_framework import serializers

from imagedb.models import Attack, AttackEvaluation, CollectionVersion, Image, ImageClass, Prediction, TargetModel

NOBODY = str(UUID(int=0))


class AttackEvaluationSerializer(serializers.ModelSerializer):
    """How often an attack fooled a target model when it was tried."""

    target_model: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        model = AttackEvaluation
        fields = ["target_model", "images_attacked", "images_fooling", "citation", "source_url"]


class AttackSerializer(serializers.ModelSerializer):
    """A method that makes modified images."""

    evaluations = AttackEvaluationSerializer(
        many=True, read_only=True, help_text="How often it fooled target models, as stated by who tried it."
    )

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
            "evaluations",
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


class ImageClassSerializer(serializers.ModelSerializer):
    """One of the 1,000 ImageNet classes."""

    class Meta:
        model = ImageClass
        fields = ["index", "synset", "name", "synonyms"]


class ClassReferenceSerializer(serializers.ModelSerializer):
    """A class, as far as it takes to know it."""

    class Meta:
        model = ImageClass
        fields = ["index", "synset", "name"]


class PredictionSerializer(serializers.ModelSerializer):
    """What a target model says about an image."""

    target_model: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    predicted_class = ClassReferenceSerializer(read_only=True)

    class Meta:
        model = Prediction
        fields = ["target_model", "predicted_class", "confidence"]


class CollectionReferenceSerializer(serializers.ModelSerializer):
    """A version of a collection that has the image."""

    collection: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True)

    class Meta:
        model = CollectionVersion
        fields = ["collection", "version"]


class ImageSerializer(serializers.ModelSerializer):
    """An image of the catalogue."""

    # Takes rows of imagedb.selectors.image_rows, which are made of whole pages at once. The fields here say what is in
    # them, to the schema and to CSV; only the addresses are added.

    id = serializers.UUIDField(read_only=True)
    source = serializers.UUIDField(  # type: ignore[assignment]  # shadows Field.source, as its metaclass allows
        read_only=True,
        allow_null=True,
        help_text="Id of the clean image that this one was made from; null for a clean image, and where the source "
        "is not visible to you.",
    )
    attack: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True, allow_null=True)
    target_model: serializers.Field = serializers.SlugRelatedField(slug_field="slug", read_only=True, allow_null=True)
    predictions = PredictionSerializer(many=True, read_only=True)
    collections = CollectionReferenceSerializer(many=True, read_only=True, help_text="Those that you may see.")
    file = serializers.URLField(read_only=True)
    thumbnail = serializers.URLField(read_only=True)

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
        # Empty where nothing was measured. (What cannot be edited is not taken for one that may be left blank.)
        extra_kwargs = {"comparison": {"allow_blank": True}}

    def get_fields(self) -> dict[str, Any]:
        # "class" is the field's word and Python's too, so that it cannot be declared above.
        declared = super().get_fields()
        fields = {name: declared.pop(name) for name in ("id", "kind")}
        fields["class"] = ClassReferenceSerializer(source="image_class", read_only=True)
        return {**fields, **declared}

    def to_representation(self, instance: dict[str, Any]) -> dict[str, Any]:
        addresses = {name: pattern.replace(NOBODY, instance["id"]) for name, pattern in self._addresses.items()}
        row = {**instance, **addresses}
        return {name: row[name] for name in self.fields.keys()}  # noqa: SIM118  # as the stubs have it

    @cached_property
    def _addresses(self) -> dict[str, str]:
        """The addresses of an image that there is not: those of others differ in the id only."""
        to_whole = self.context["request"].build_absolute_uri
        return {
            name: to_whole(reverse(view, kwargs={"public_id": NOBODY}))
            for name, view in (("file", "image-file"), ("thumbnail", "image-thumbnail"))
        }


class FileParametersSerializer(serializers.Serializer):
    """Query parameters of an image's file."""

    rendition = serializers.BooleanField(
        default=False,
        help_text="The image as participants see it: PNG, upright, sRGB, no metadata; instead of the original bytes.",
    )
