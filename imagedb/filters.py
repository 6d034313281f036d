"""Query parameters of the image list."""

from typing import Any
from uuid import UUID

import django_filters
from django.contrib.auth.models import AnonymousUser
from django.core.validators import RegexValidator
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters import NumberFilter
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError

from imagedb.models import (
    Attack,
    AttackFamily,
    CollectionImage,
    Comparison,
    Image,
    ImageClass,
    ImageKind,
    Prediction,
    TargetModel,
    Visibility,
)
from imagedb.selectors import visible_images
from imagedb.selectors.collections import visible_collections, visible_versions
from imagedb.selectors.ids_first import ids_first
from imagedb.selectors.search import search_images
from scooter_site.common.filters import BooleanFilter, IntegerFilter, SlugFilter

DISTANCES = ("linf", "l2", "changed_share", "ssim", "ciede2000")
RANGES = (*DISTANCES, "confidence")
# Conditions that only modified images can meet.
OF_MODIFIED_ONLY = (
    {"attack", "family", "target_model", "source", "comparison"}
    | {f"min_{distance}" for distance in DISTANCES}
    | {f"max_{distance}" for distance in DISTANCES}
)


def _range_end(
    filter_class: type[NumberFilter], of: str, lookup: str, what: str, method: str | None = None, **bounds: int
) -> Any:
    """One end of a range, with what values there are also in the schema."""
    end = filter_class(
        of,
        lookup,
        help_text=f"At {'least' if lookup == 'gte' else 'most'} this {what}.",
        method=method,
        **{f"{side}_value": value for side, value in bounds.items()},
    )
    kind = "integer" if filter_class is IntegerFilter else "number"
    return extend_schema_field({"type": kind, **{f"{side}imum": value for side, value in bounds.items()}})(end)


class ImageFilter(django_filters.FilterSet):
    """All conditions must hold. Takes the images that the reader may see."""

    kind = django_filters.ChoiceFilter(choices=ImageKind.choices)
    attack = SlugFilter(Attack.objects.all(), help_text="Slug of the attack.")
    family = django_filters.ChoiceFilter(
        choices=AttackFamily.choices, method="of_family", help_text="Family of the attack."
    )
    target_model = SlugFilter(
        TargetModel.objects.all(), help_text="Slug of the model that modified images were made against."
    )
    class_index = IntegerFilter(min_value=0, max_value=999, method="of_class", help_text="The true class, 0 to 999.")
    synset = django_filters.CharFilter(
        validators=[RegexValidator(r"\An[0-9]{8}\Z", "Must look like n02123045.")],
        method="of_synset",
        help_text="The true class as a WordNet synset, such as n02123045.",
    )
    source = extend_schema_field(OpenApiTypes.UUID)(
        django_filters.UUIDFilter(
            method="of_source", help_text="Id of the clean image that modified images were made from."
        )
    )
    collection = django_filters.CharFilter(method="keep", help_text="Slug of a collection; in any of its versions.")
    version = django_filters.CharFilter(
        method="keep", help_text="In this version of the collection, such as 1.0. Needs the parameter collection."
    )
    visibility = django_filters.ChoiceFilter(
        choices=[(value, value) for value in Visibility.values], help_text="Who may see the image."
    )
    is_demo = BooleanFilter(help_text="Demonstration material.")
    verified = BooleanFilter(
        help_text="Whether a target model's answer is known; for a modified image that of its own target model.",
    )
    min_confidence = _range_end(
        NumberFilter, "confidence", "gte", "confidence of some prediction", min=0, max=1, method="keep"
    )
    max_confidence = _range_end(
        NumberFilter,
        "confidence",
        "lte",
        "confidence of some prediction; with min_confidence: of the same one",
        min=0,
        max=1,
        method="keep",
    )
    comparison = django_filters.ChoiceFilter(
        choices=[(value, value) for value in Comparison.values], help_text="How the distances were measured."
    )
    min_linf = _range_end(IntegerFilter, "linf", "gte", "L-infinity distance, of 255 levels", min=0, max=255)
    max_linf = _range_end(IntegerFilter, "linf", "lte", "L-infinity distance, of 255 levels", min=0, max=255)
    min_l2 = _range_end(NumberFilter, "l2", "gte", "L2 distance", min=0)
    max_l2 = _range_end(NumberFilter, "l2", "lte", "L2 distance", min=0)
    min_changed_share = _range_end(NumberFilter, "changed_share", "gte", "share of changed pixels", min=0, max=1)
    max_changed_share = _range_end(NumberFilter, "changed_share", "lte", "share of changed pixels", min=0, max=1)
    min_ssim = _range_end(NumberFilter, "ssim", "gte", "structural similarity", min=-1, max=1)
    max_ssim = _range_end(NumberFilter, "ssim", "lte", "structural similarity", min=-1, max=1)
    min_ciede2000 = _range_end(NumberFilter, "ciede2000", "gte", "mean CIEDE2000", min=0)
    max_ciede2000 = _range_end(NumberFilter, "ciede2000", "lte", "mean CIEDE2000", min=0)
    search = django_filters.CharFilter(
        method="keep",
        max_length=200,
        help_text="Words that must all be found: in the class's names or synset, the attack's name, description or "
        "paper, the target model's name, the file's name, or the attribution. A word finds words that begin with it.",
    )

    class Meta:
        model = Image
        fields: list[str] = []

    def __init__(self, data: Any = None, *args: Any, **options: Any) -> None:
        # A request gives few of the filters; making the others anew for each takes longer than reading the page.
        self.base_filters = {name: every for name, every in self.all_filters().items() if name in (data or ())}
        super().__init__(data, *args, **options)

    @classmethod
    def all_filters(cls) -> dict[str, django_filters.Filter]:
        """The filters by name."""
        filters: dict[str, django_filters.Filter] = cls.base_filters  # type: ignore[misc]  # set by the metaclass
        return filters

    def keep(self, queryset: QuerySet, name: str, value: object) -> QuerySet:
        """Nothing yet: it takes several parameters together, see ``filter_queryset``."""
        return queryset

    def of_family(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        attacks = list(Attack.objects.filter(family=value).values_list("pk", flat=True))
        if not attacks:
            return queryset.none()
        target_model = self.form.cleaned_data.get("target_model")  # by both there are fewer ids to look up
        narrowed = {"target_model": target_model} if target_model else {}
        return queryset.filter(ids_first(Q(attack__in=attacks, **narrowed)))

    def of_class(self, queryset: QuerySet, name: str, value: int) -> QuerySet:
        return queryset.filter(image_class=_key(ImageClass.objects.filter(index=value)))

    def of_synset(self, queryset: QuerySet, name: str, value: str) -> QuerySet:
        return queryset.filter(image_class=_key(ImageClass.objects.filter(synset=value)))

    def of_source(self, queryset: QuerySet, name: str, value: UUID) -> QuerySet:
        return queryset.filter(source=_key(visible_images(self._user).filter(public_id=value)))

    @property
    def _user(self) -> Any:
        return self.request.user if self.request is not None else AnonymousUser()

    def filter_queryset(self, queryset: QuerySet) -> QuerySet:
        given = {name: value for name, value in self.form.cleaned_data.items() if value not in (None, "")}
        self._refuse_empty_ranges(given)
        versions = self._versions(given)
        queryset = super().filter_queryset(queryset)
        if OF_MODIFIED_ONLY & given.keys():
            if given.get("kind") == ImageKind.CLEAN:
                return queryset.none()
            queryset = queryset.filter(kind=ImageKind.MODIFIED)
        if versions is not None:
            queryset = queryset.filter(
                Exists(CollectionImage.objects.filter(image=OuterRef("pk"), version__in=versions))
            )
        bounds = {
            f"confidence__{lookup}": float(given[name])
            for lookup, name in (("gte", "min_confidence"), ("lte", "max_confidence"))
            if name in given
        }
        if bounds:
            queryset = queryset.filter(Exists(Prediction.objects.filter(image=OuterRef("pk"), **bounds)))
        if "search" in given:
            queryset = search_images(queryset, given["search"])
        return queryset

    def _refuse_empty_ranges(self, given: dict[str, Any]) -> None:
        problems = {
            f"min_{name}": [f"Greater than max_{name}: no image could meet both."]
            for name in RANGES
            if f"min_{name}" in given and f"max_{name}" in given and given[f"min_{name}"] > given[f"max_{name}"]
        }
        if problems:
            raise ValidationError(problems)

    def _versions(self, given: dict[str, Any]) -> list[int] | None:
        """The versions of collections that are asked for; None if none are."""
        if "collection" not in given:
            if "version" in given:
                raise ValidationError({"version": ["Say which collection's: it needs the parameter collection."]})
            return None
        slug, wanted = given["collection"], given.get("version")
        if not visible_collections(self._user).filter(slug=slug).exists():
            raise ValidationError({"collection": ["No collection has this slug."]})
        versions = dict(
            visible_versions(self._user).filter(collection__slug=slug).order_by().values_list("version", "pk")
        )
        if wanted is None:
            return list(versions.values())
        if wanted not in versions:
            raise ValidationError({"version": [f"The collection has no version {wanted!r}."]})
        return [versions[wanted]]


def _key(rows: QuerySet) -> int:
    """The id of the only row, 0 if there is none: by a constant the planner finds the right index."""
    return rows.values_list("pk", flat=True).first() or 0
