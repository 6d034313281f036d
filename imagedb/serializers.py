"""The catalogue as the API shows it. Internal ids never leave the site."""

from typing import Any

from rest_framework import serializers

from imagedb.models import Attack, Image, ImageClass, Prediction, TargetModel


class AttackSerializer(serializers.ModelSerializer):
    """A method that makes modified images."""

    class Meta:
        model = Attack
        fields = [
            "slug",
            "name",
            "family",
            "description",
            "paper_title",
            "paper_url",
            "code_url",
            "venue",
            "year",
            "is_demo",
        ]


class TargetModelSerializer(serializers.ModelSerializer):
    """A classifier under attack."""

    class Meta:
        model = TargetModel
        fields = ["slug", "name", "architecture", "training", "source", "description", "is_demo"]


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


class ImageSerializer(serializers.ModelSerializer):
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
    verified = serializers.BooleanField(
        source="is_verified",
        read_only=True,
        help_text="Whether a target model's answer is known; for a modified image that of its own target model.",
    )
    file = serializers.HyperlinkedIdentityField(view_name="image-file", lookup_field="public_id")
    thumbnail = serializers.HyperlinkedIdentityField(view_name="image-thumbnail", lookup_field="public_id")

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
            "width",
            "height",
            "original_sha256",
            "original_format",
            "original_bytes",
            "licence",
            "attribution",
            "is_demo",
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
