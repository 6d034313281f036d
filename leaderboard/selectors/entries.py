"""Entries as anybody may see them.

Who may see an image can change at any time, while a snapshot never does. So the pairs that nobody may see (any more)
are left out whenever entries are read, and the ranks of the others close up.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.files import FieldFile

from imagedb.models import Attack, TargetModel
from leaderboard.kept import kept
from leaderboard.models import Entry, Snapshot
from leaderboard.selectors.boards import published_snapshots
from leaderboard.selectors.rows import AnyEntry, Row, is_hidden, read_rows
from leaderboard.statistics.comparison import Estimate
from leaderboard.statistics.placing import Place, Scored, place_all

# What lists of entries leave in the database.
HEAVY_FIELDS = ("details", "rank_probabilities")


def visible_entries(snapshot: Snapshot) -> list[Row]:
    """The entries of a snapshot that anybody may see, in the order of the board: the most imperceptible first.

    Entries of equal rank, and those without one, which come last, stand in the order of names. One query, however
    many, and one more where there are external results.
    """
    return _visible(read_rows({snapshot.pk: snapshot}))


def input_files(snapshot: Snapshot) -> list[FieldFile]:
    """The stored ratings of the same entries, in the same order."""
    ids = [entry.pk for entry in visible_entries(snapshot)]
    stored = Entry.objects.only("inputs").in_bulk(ids)
    return [stored[pk].inputs for pk in ids]


def published_entries() -> list[Row]:
    """The same in the newest snapshot of every public board, one board after the other."""
    return _on_newest_snapshots({})


def published_rows() -> QuerySet[Entry]:
    """The rows of these as they are stored: with the ranks of the time when the snapshot was published."""
    rows = Entry.objects.filter(snapshot__in=published_snapshots().order_by()).exclude(is_hidden())
    return rows.select_related("snapshot__board", "attack", "target_model", "external_result").defer(*HEAVY_FIELDS)


def entries_of_attack(attack: Attack) -> list[Row]:
    """The same of one attack, in the newest snapshot of every public board."""
    return [entry for entry in _on_newest_snapshots({"attack": attack}) if entry.attack_id == attack.pk]


def entries_of_target_model(target_model: TargetModel) -> list[Row]:
    """The same of one target model."""
    found = _on_newest_snapshots({"target_model": target_model})
    return [entry for entry in found if entry.target_model_id == target_model.pk]


def entry_details(entry: Row) -> dict[str, Any]:
    """What the page of one entry shows besides the row (docs/leaderboard.md names its parts). One query."""
    details: dict[str, Any] = Entry.objects.values_list("details", flat=True).get(pk=entry.pk)
    return details


def placed(entries: Sequence[AnyEntry], *, ranks_few_raters: bool, minimum_participants: int, seed: int) -> list[Place]:
    """Where each of these entries of one board stands among the others, whatever order they are given in."""
    # What is drawn for a pair hangs on its place in the list.
    order = sorted(range(len(entries)), key=lambda place: (entries[place].attack_id, entries[place].target_model_id))
    scored = [_scored(entries[place], 0 if ranks_few_raters else minimum_participants) for place in order]
    places = dict(zip(order, place_all(scored, seed=seed), strict=True))
    return [places[place] for place in range(len(entries))]


def _scored(entry: AnyEntry, minimum_participants: int) -> Scored | None:
    if entry.difference is None or entry.standard_error is None or entry.degrees_of_freedom is None:
        return None
    estimate = Estimate(entry.difference, entry.standard_error, entry.degrees_of_freedom)
    p_value = 1.0 if entry.p_value is None else entry.p_value
    return Scored(estimate, p_value, is_ranked=entry.participants >= minimum_participants)


def apply_place(entry: AnyEntry, place: Place) -> None:
    """Put an entry, in memory, where it stands."""
    entry.holm_p_value = place.holm_p_value
    entry.rank = place.rank
    entry.rank_low, entry.rank_high = place.rank_interval or (None, None)


def _on_newest_snapshots(of: dict[str, Any]) -> list[Row]:
    newest = published_snapshots()
    with_any = newest.filter(pk__in=Entry.objects.filter(**of).values("snapshot")) if of else newest
    snapshots = {snapshot.pk: snapshot for snapshot in with_any}
    rows_of: dict[int, list[Row]] = {pk: [] for pk in snapshots}
    for entry in read_rows(snapshots):
        rows_of[entry.snapshot.pk].append(entry)
    return [entry for rows in rows_of.values() for entry in _visible(rows)]


def _visible(entries: Sequence[Row]) -> list[Row]:
    """Those of one snapshot's entries that are not hidden, with the ranks they have among themselves, in order."""
    visible = [entry for entry in entries if not entry.is_hidden]
    if visible and len(visible) < len(entries):
        for entry, place in zip(visible, _close_up(visible), strict=True):
            apply_place(entry, place)
    return sorted(visible, key=in_order)


def in_order(entry: AnyEntry) -> tuple[bool, bool, float, str, str]:
    """Sorts entries as a board shows them: of those without a rank, too, what could not be estimated comes last."""
    names = (entry.attack.name.casefold(), entry.target_model.name.casefold())
    return (entry.rank is None, entry.difference is None, abs(entry.difference or 0), *names)


def _close_up(entries: Sequence[Row]) -> list[Place]:
    """Places among what is left of a snapshot. They never change for the same entries, and so are kept."""
    snapshot = entries[0].snapshot

    def compute() -> list[Place]:
        return placed(
            entries,
            ranks_few_raters=snapshot.rules["ranks_few_raters"],
            minimum_participants=snapshot.rules["minimum_participants"],
            seed=snapshot.seed,
        )

    return kept(snapshot, entries, "places", compute=compute)
