"""Entries as pages and files show them: plain values, which come three times as fast as instances of the model."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from django.db.models import Q, QuerySet

from imagedb.models import AttackFamily
from imagedb.selectors.visibility import is_private_pair
from leaderboard.models import Entry, ExternalResult, Snapshot
from leaderboard.models.entry import Readable
from scooter_site.common.prepared import PreparedQuery

FAMILY_LABELS = {value: str(label) for value, label in AttackFamily.choices}


class AttackName(NamedTuple):
    """What a board says of an attack."""

    slug: str
    name: str
    family: str
    year: int | None

    @property
    def family_label(self) -> str:
        """The family as people read it."""
        return FAMILY_LABELS[self.family]


class TargetModelName(NamedTuple):
    """What a board says of a target model."""

    slug: str
    name: str


@dataclass(slots=True)
class Values:
    """The stored values of an entry, as files give them: not rounded, None where they are not defined."""

    rank: int | None
    rank_low: int | None
    rank_high: int | None
    verdict: str
    difference: float | None
    standard_error: float | None
    degrees_of_freedom: float | None
    ci90_low: float | None
    ci90_high: float | None
    ci95_low: float | None
    ci95_high: float | None
    p_lower: float | None
    p_upper: float | None
    holm_p_value: float | None
    supported_bound: float | None
    attack_success_rate: float | None
    images_attacked: int | None
    images_fooling: int | None
    fools_unnoticed: float | None
    participants: int
    ratings: int
    ratings_modified: int
    ratings_clean: int
    images_modified: int
    images_clean: int
    images_unverified: int
    mean_modified: float | None
    sd_modified: float | None
    mean_clean: float | None
    sd_clean: float | None
    mean_difference: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    accuracy_modified: float | None
    accuracy_clean: float | None
    d_prime: float | None
    icc_single: float | None
    icc_mean: float | None
    krippendorff_alpha: float | None
    split_half: float | None
    flags: list[str]
    input_digest: str
    computed_at: datetime


VALUES = tuple(field.name for field in fields(Values))


@dataclass(slots=True)
class Row(Values, Readable):
    """An entry of a snapshot, without what only its own page shows; ``rank`` is that among the visible ones."""

    pk: int
    code_version: str
    is_hidden: bool
    attack_id: int
    target_model_id: int
    snapshot: Snapshot
    external_result: ExternalResult | None
    attack: AttackName
    target_model: TargetModelName


# For what can be said of both, of what is published and of a draft.
AnyEntry: TypeAlias = Entry | Row

# Columns behind the values; the order is that of Row's own fields.
_KEYS = ("pk", "code_version", "is_hidden", "attack_id", "target_model_id", "snapshot_id", "external_result_id")
_NAMES = (
    *(f"attack__{name}" for name in AttackName._fields),
    *(f"target_model__{name}" for name in TargetModelName._fields),
)


def is_hidden() -> Q:
    """Entries that must not be seen: of a pair that is private, or from an external result that was withdrawn."""
    return Q(external_result__withdrawn_at__isnull=False) | (Q(external_result__isnull=True) & is_private_pair())


def _rows() -> QuerySet[Entry, Any]:
    return Entry.objects.annotate(is_hidden=is_hidden()).order_by("id").values_list(*VALUES, *_KEYS, *_NAMES)


# What a board's page asks: with 60 columns Django and PostgreSQL would need as long for planning it as for running it.
_ROWS_OF_ONE = PreparedQuery(lambda snapshot: _rows().filter(snapshot=snapshot), 2**40)


def read_rows(snapshots: Mapping[int, Snapshot]) -> list[Row]:
    """The rows of these snapshots, hidden ones too.

    One query; one more if there are external results among them.
    """
    is_one = len(snapshots) == 1
    found: list[Any] = _ROWS_OF_ONE.rows(*snapshots) if is_one else list(_rows().filter(snapshot__in=snapshots))
    names = len(VALUES) + len(_KEYS)
    model_names = names + len(AttackName._fields)
    external_ids = {line[names - 1] for line in found} - {None}
    externals = ExternalResult.objects.in_bulk(external_ids) if external_ids else {}
    rows = []
    for line in found:
        *values, snapshot_id, external_id = line[:names]
        attack, target_model = AttackName(*line[names:model_names]), TargetModelName(*line[model_names:])
        values += [snapshots[snapshot_id], externals.get(external_id), attack, target_model]
        rows.append(Row(*values))
    return rows
