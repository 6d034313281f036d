"""The leaderboard in the API: published snapshots of boards, as the pages show them."""

from collections.abc import Iterable
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, viewsets
from rest_framework.permissions import AllowAny

from imagedb.models import Attack, AttackFamily, TargetModel
from leaderboard import selectors
from leaderboard.board_table import entry_address
from leaderboard.models import Board, Entry, EntryVerdict, Flag, Snapshot
from leaderboard.selectors.history import rows_of_all_snapshots
from leaderboard.selectors.rows import VALUES, Row
from scooter_site.common.api_errors import DETAIL_ERRORS, LIST_ERRORS
from scooter_site.common.filters import BooleanFilter, IntegerFilter, SlugFilter


class BoardSerializer(serializers.ModelSerializer[Board]):
    """What is compared: one rating scale, and the bounds within which a difference counts as none."""

    equivalence_bound = serializers.FloatField(
        source="bound", read_only=True, help_text="In points, to each side, as from now on; snapshots have their own."
    )

    class Meta:
        model = Board
        fields = ["slug", "name", "description", "scale_minimum", "scale_maximum", "equivalence_bound", "is_demo"]


class SnapshotSerializer(serializers.ModelSerializer[Snapshot]):
    """A board as it was published. It never changes; it can be retracted, with a reason."""

    board = serializers.SlugField(source="board.slug", read_only=True)

    class Meta:
        model = Snapshot
        fields = [
            "board",
            "number",
            "status",
            "published_at",
            "data_cutoff",
            "code_version",
            "seed",
            "input_digest",
            "rules",
            "note",
            "retracted_at",
            "retraction_reason",
        ]


class BoardOfEntrySerializer(serializers.ModelSerializer[Board]):
    """Which board an entry is on. The bounds that it was tested against are those of its snapshot."""

    class Meta:
        model = Board
        fields = ["slug", "name", "description", "scale_minimum", "scale_maximum", "is_demo"]


class SnapshotOfEntrySerializer(serializers.ModelSerializer[Snapshot]):
    """Which snapshot an entry is from, and what its verdict follows from."""

    equivalence_bound = serializers.FloatField(source="bound", read_only=True, help_text="In points, to each side.")
    alpha = serializers.FloatField(read_only=True, help_text="Level of each of the two one-sided tests.")

    class Meta:
        model = Snapshot
        fields = ["number", "status", "published_at", "input_digest", "equivalence_bound", "alpha"]


class EntrySerializer(serializers.ModelSerializer[Entry]):
    """The result of one (attack, target model) pair in a snapshot. All values are in points of the board's scale,
    higher meaning "more certain that the image is modified"; null where a value is not defined.
    """

    board = BoardOfEntrySerializer(source="snapshot.board", read_only=True)
    snapshot = SnapshotOfEntrySerializer(read_only=True)
    attack = serializers.CharField(source="attack.slug", read_only=True)
    attack_name = serializers.CharField(source="attack.name", read_only=True)
    family = serializers.ChoiceField(source="attack.family", choices=AttackFamily.choices, read_only=True)
    year = serializers.IntegerField(source="attack.year", read_only=True, allow_null=True)
    target_model = serializers.CharField(source="target_model.slug", read_only=True)
    target_model_name = serializers.CharField(source="target_model.name", read_only=True)
    is_demo = serializers.BooleanField(source="snapshot.board.is_demo", read_only=True)
    flags = serializers.ListField(child=serializers.ChoiceField(choices=Flag.choices), read_only=True)
    external_citation = serializers.SerializerMethodField(
        help_text="Of a result that was collected elsewhere; null for the site's own."
    )
    page = serializers.SerializerMethodField(help_text="Permanent address of the entry's page.")

    class Meta:
        model = Entry
        fields = [
            "id",
            "board",
            "snapshot",
            "attack",
            "attack_name",
            "family",
            "year",
            "target_model",
            "target_model_name",
            *VALUES,
            "is_demo",
            "external_citation",
            "page",
        ]

    def to_representation(self, instance: Entry) -> dict[str, Any]:
        self.context["places"].apply_to(instance)
        return super().to_representation(instance)

    @extend_schema_field({"type": "string", "nullable": True})
    def get_external_citation(self, entry: Entry) -> str | None:
        return entry.external_result.citation if entry.external_result else None

    @extend_schema_field(OpenApiTypes.URI)
    def get_page(self, entry: Entry) -> str:
        return self.context["request"].build_absolute_uri(entry_address(entry))


class Places:
    """Ranks among what can be seen. Those stored are the ranks at the time of publication."""

    FIELDS = ("rank", "rank_low", "rank_high", "holm_p_value")

    def __init__(self, entries: Iterable[Row] = ()) -> None:
        self._snapshots: set[int] = set()
        self._entries: dict[int, Row] = {}
        self._add(entries)

    def apply_to(self, entry: Entry) -> None:
        """Give an entry the place that pages show; one query for each snapshot not met before."""
        if entry.snapshot_id not in self._snapshots:
            self._add(selectors.visible_entries(entry.snapshot))
        for name in self.FIELDS:
            setattr(entry, name, getattr(self._entries[entry.pk], name))

    def _add(self, entries: Iterable[Row]) -> None:
        for entry in entries:
            self._snapshots.add(entry.snapshot.pk)
            self._entries[entry.pk] = entry


class EntryFilter(django_filters.FilterSet):
    board = SlugFilter(
        Board.objects.filter(is_public=True), field_name="snapshot__board", help_text="Slug of the board."
    )
    snapshot = IntegerFilter(
        field_name="snapshot__number", help_text="Number of a snapshot on its board; without it, the newest ones."
    )
    attack = SlugFilter(Attack.objects.all(), help_text="Slug of the attack.")
    target_model = SlugFilter(TargetModel.objects.all(), help_text="Slug of the target model.")
    family = django_filters.ChoiceFilter(field_name="attack__family", choices=AttackFamily.choices)
    verdict = django_filters.ChoiceFilter(choices=EntryVerdict.choices)
    year = IntegerFilter(field_name="attack__year", help_text="Year of the attack.")
    min_raters = IntegerFilter(field_name="participants", lookup_expr="gte", help_text="Participants, at least.")
    is_demo = BooleanFilter(
        field_name="snapshot__board__is_demo", help_text="Demonstration data (answers of bots) only, or none of it."
    )

    class Meta:
        model = Entry
        fields: list[str] = []


@extend_schema_view(
    list=extend_schema(
        summary="List the results of all pairs", responses={200: EntrySerializer(many=True), **LIST_ERRORS}
    ),
    retrieve=extend_schema(summary="The result of one pair", responses={200: EntrySerializer, **DETAIL_ERRORS}),
)
class EntryViewSet(viewsets.ReadOnlyModelViewSet[Entry]):
    """Results as shown on the leaderboard's pages: of the newest snapshot of every board, or of the one asked for.
    Public.
    """

    serializer_class = EntrySerializer
    filterset_class = EntryFilter
    permission_classes = [AllowAny]

    def get_queryset(self) -> QuerySet[Entry]:
        if self.detail or "snapshot" in self.request.query_params:
            return rows_of_all_snapshots()
        return selectors.published_rows()

    def get_serializer_context(self) -> dict[str, Any]:
        is_of_newest = not (self.detail or "snapshot" in self.request.query_params)
        known = selectors.published_entries() if is_of_newest and self.request.method else ()
        return {**super().get_serializer_context(), "places": Places(known)}


@extend_schema_view(
    list=extend_schema(summary="List boards", responses={200: BoardSerializer(many=True), **LIST_ERRORS}),
    retrieve=extend_schema(summary="One board", responses={200: BoardSerializer, **DETAIL_ERRORS}),
)
class BoardViewSet(viewsets.ReadOnlyModelViewSet[Board]):
    """Boards: what is compared with what. Public."""

    serializer_class = BoardSerializer
    permission_classes = [AllowAny]
    lookup_field = "slug"

    def get_queryset(self) -> QuerySet[Board]:
        return selectors.public_boards()


BOARD_PARAMETER = OpenApiParameter("slug", OpenApiTypes.STR, OpenApiParameter.PATH, description="Slug of the board.")


@extend_schema_view(
    list=extend_schema(
        summary="List the snapshots of a board",
        parameters=[BOARD_PARAMETER],
        responses={200: SnapshotSerializer(many=True), **LIST_ERRORS, **DETAIL_ERRORS},
    ),
    retrieve=extend_schema(
        summary="One snapshot of a board",
        parameters=[BOARD_PARAMETER],
        responses={200: SnapshotSerializer, **DETAIL_ERRORS},
    ),
)
class SnapshotViewSet(viewsets.ReadOnlyModelViewSet[Snapshot]):
    """What was ever published of a board; retracted snapshots say so. Public."""

    serializer_class = SnapshotSerializer
    permission_classes = [AllowAny]
    lookup_field = "number"
    lookup_value_converter = "int"
    queryset = Snapshot.objects.none()

    def get_queryset(self) -> QuerySet[Snapshot]:
        return selectors.snapshots_of(get_object_or_404(selectors.public_boards(), slug=self.kwargs["slug"]))
