"""What changed between two snapshots of a board."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.models import Snapshot
from leaderboard.selectors.entries import visible_entries
from leaderboard.selectors.rows import AnyEntry


@dataclass(frozen=True)
class Change:
    """A pair in two snapshots, in at least one of which it is."""

    older: AnyEntry | None
    newer: AnyEntry | None

    @property
    def entry(self) -> AnyEntry:
        """The newer one, if there is one; it names the pair."""
        found = self.newer or self.older
        if found is None:
            raise ValueError("a change has at least one entry")
        return found

    @property
    def kind(self) -> str:
        """added, removed, or changed: other ratings or attempts, or another result of the same ones."""
        if self.older is None:
            return "added"
        return "removed" if self.newer is None else "changed"


def changes_between(older: Snapshot | None, newer: Snapshot) -> list[Change]:
    """The pairs that differ, in the order of the newer snapshot; those that are gone come last.

    Without an older snapshot everything is added. Only what anybody may see. Two queries.
    """
    return changes(by_pair(visible_entries(older)) if older else {}, by_pair(visible_entries(newer)))


def changes(before: dict[tuple[int, int], AnyEntry], after: dict[tuple[int, int], AnyEntry]) -> list[Change]:
    """The same for entries by pair."""
    found = [
        Change(before.get(pair), entry)
        for pair, entry in after.items()
        if pair not in before or is_different(before[pair], entry)
    ]
    return found + [Change(entry, None) for pair, entry in before.items() if pair not in after]


def is_different(older: AnyEntry, newer: AnyEntry) -> bool:
    """Whether ratings, result, verdict or what is stated of the model's side differ.

    A rank that moved because of others is no change of the pair.
    """
    return _compared(older) != _compared(newer)


def _compared(entry: AnyEntry) -> tuple[Any, ...]:
    model_side = entry.attack_success_rate, entry.images_attacked, entry.images_fooling
    return entry.input_digest, entry.difference, entry.standard_error, entry.verdict, *model_side


def by_pair(entries: Sequence[AnyEntry]) -> dict[tuple[int, int], AnyEntry]:
    """The entries by the pairs that they are of."""
    return {(entry.attack_id, entry.target_model_id): entry for entry in entries}
