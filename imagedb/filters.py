"""Query parameters of the image list."""

import django_filters
from django.core.validators import RegexValidator
from django.db.models import Exists, OuterRef, QuerySet

from imagedb.models import Attack, Image, ImageKind, Prediction, TargetModel
from scooter_site.common.filters import BooleanFilter, IntegerFilter, SlugFilter


class ImageFilter(django_filters.FilterSet):
    """All conditions must hold."""

    kind = django_filters.ChoiceFilter(choices=ImageKind.choices)
    attack = SlugFilter(Attack.objects.all(), help_text="Slug of the attack.")
    target_model = SlugFilter(
        TargetModel.objects.all(), help_text="Slug of the model that modified images were made against."
    )
    class_index = IntegerFilter(
        field_name="image_class__index", min_value=0, max_value=999, help_text="The true class, 0 to 999."
    )
    synset = django_filters.CharFilter(
        field_name="image_class__synset",
        validators=[RegexValidator(r"\An[0-9]{8}\Z", "Must look like n02123045.")],
        help_text="The true class as a WordNet synset, such as n02123045.",
    )
    source = django_filters.UUIDFilter(
        field_name="visible_source_id", help_text="Id of the clean image that modified images were made from."
    )
    is_demo = BooleanFilter(field_name="is_demo", help_text="Demonstration material.")
    verified = BooleanFilter(
        field_name="is_verified",
        help_text="Whether a target model's answer is known; for a modified image that of its own target model.",
    )
    min_confidence = django_filters.NumberFilter(
        method="keep", min_value=0, max_value=1, help_text="Some prediction has at least this confidence."
    )
    max_confidence = django_filters.NumberFilter(
        method="keep", min_value=0, max_value=1, help_text="Some prediction has at most this confidence."
    )

    class Meta:
        model = Image
        fields: list[str] = []

    def keep(self, queryset: QuerySet, name: str, value: object) -> QuerySet:
        """Nothing yet: both bounds must hold for the same prediction, see ``filter_queryset``."""
        return queryset

    def filter_queryset(self, queryset: QuerySet) -> QuerySet:
        queryset = super().filter_queryset(queryset)
        bounds = {
            lookup: float(self.form.cleaned_data[name])
            for lookup, name in (("confidence__gte", "min_confidence"), ("confidence__lte", "max_confidence"))
            if self.form.cleaned_data[name] is not None
        }
        if bounds:
            queryset = queryset.filter(Exists(Prediction.objects.filter(image=OuterRef("pk"), **bounds)))
        return queryset
