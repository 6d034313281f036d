"""The leaderboard in the API: the stored rows that the page shows."""

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, viewsets
from rest_framework.permissions import AllowAny

from imagedb.models import Attack, TargetModel
from leaderboard import selectors
from leaderboard.models import Board, Entry
from scooter_site.common.api_errors import DETAIL_ERRORS, LIST_ERRORS
from scooter_site.common.filters import BooleanFilter, SlugFilter


class BoardSerializer(serializers.ModelSerializer[Board]):
    """The rating scale that the values of an entry are on."""

    class Meta:
        model = Board
        fields = ["slug", "name", "scale_minimum", "scale_maximum"]


class EntrySerializer(serializers.ModelSerializer[Entry]):
    """The result of one (attack, target model) pair. All values are in points of the board's scale,
    higher meaning "more certain that the image is modified"; null where a value is not defined.
    """

    board = BoardSerializer(source="snapshot.board", read_only=True)
    attack = serializers.CharField(source="attack.slug", read_only=True)
    attack_name = serializers.CharField(source="attack.name", read_only=True)
    target_model = serializers.CharField(source="target_model.slug", read_only=True)
    target_model_name = serializers.CharField(source="target_model.name", read_only=True)
    is_demo = serializers.BooleanField(source="snapshot.board.is_demo", read_only=True)

    class Meta:
        model = Entry
        fields = [
            "id",
            "board",
            "rank",
            "attack",
            "attack_name",
            "target_model",
            "target_model_name",
            "participants",
            "ratings",
            "ratings_modified",
            "ratings_clean",
            "images_modified",
            "images_clean",
            "mean_modified",
            "sd_modified",
            "mean_clean",
            "sd_clean",
            "difference",
            "is_demo",
            "input_digest",
            "computed_at",
        ]


class EntryFilter(django_filters.FilterSet):
    attack = SlugFilter(Attack.objects.all(), help_text="Slug of the attack.")
    target_model = SlugFilter(TargetModel.objects.all(), help_text="Slug of the target model.")
    is_demo = BooleanFilter(
        field_name="snapshot__board__is_demo", help_text="Demonstration data (answers of bots) only, or none of it."
    )

    class Meta:
        model = Entry
        fields = ["attack", "target_model"]


@extend_schema_view(
    list=extend_schema(
        summary="List the results of all pairs", responses={200: EntrySerializer(many=True), **LIST_ERRORS}
    ),
    retrieve=extend_schema(summary="The result of one pair", responses={200: EntrySerializer, **DETAIL_ERRORS}),
)
class EntryViewSet(viewsets.ReadOnlyModelViewSet[Entry]):
    """Results as shown on the leaderboard page. Public."""

    serializer_class = EntrySerializer
    filterset_class = EntryFilter
    permission_classes = [AllowAny]

    def get_queryset(self) -> QuerySet[Entry]:
        return selectors.published_rows()
