"""From draft to snapshot: what is published never changes, and can be retracted."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from leaderboard.models import Board, Entry, PublicationPolicy, Snapshot, SnapshotStatus
from leaderboard.results import Rules, code_version
from leaderboard.selectors import visible_entries
from leaderboard.selectors.changes import Change, by_pair, changes
from leaderboard.selectors.entries import apply_place, in_order, placed
from leaderboard.selectors.rows import is_hidden
from leaderboard.services.boards import lock_drafts

# Between two snapshots of real results that are published at once, so that there are at most 24 a day to cite.
LEAST_PAUSE = timedelta(hours=1)


class NothingToPublish(Exception):
    """The draft has no entry that anybody may see, or nothing has changed; the message says which."""


class OutdatedDraft(Exception):
    """The draft has entries that do not follow from the rules and the program that a snapshot would name."""


def draft_entries(draft: Snapshot) -> list[Entry]:
    """The entries that publishing the draft now would publish, placed among each other, in order.

    Pairs that nobody may see are left out: they must not even leave a gap.
    """
    entries = list(
        Entry.objects.filter(snapshot=draft)
        .exclude(is_hidden())
        .select_related("attack", "target_model", "external_result")
        .order_by("id")
    )
    board = draft.board
    places = placed(
        entries,
        ranks_few_raters=board.ranks_few_raters,
        minimum_participants=board.minimum_participants,
        seed=draft.seed,
    )
    for entry, place in zip(entries, places, strict=True):
        entry.snapshot = draft
        apply_place(entry, place)
        entry.rank_probabilities = list(place.probabilities)
    return sorted(entries, key=in_order)


def pending_changes(board: Board) -> list[Change]:
    """What publishing the draft now would change for visitors."""
    draft = board.snapshots.filter(status=SnapshotStatus.DRAFT).select_related("board").first()
    newest = newest_snapshot(board)
    before = visible_entries(newest) if newest else []
    after = draft_entries(draft) if draft else []
    return changes(by_pair(before), by_pair(after))


def newest_snapshot(board: Board) -> Snapshot | None:
    """The newest snapshot that was published and not retracted, whether or not the board is public."""
    found = board.snapshots.filter(status=SnapshotStatus.PUBLISHED).order_by("-number")
    return found.select_related("board").first()


def draft_state(board: Board) -> str:
    """What is told apart when somebody looks at a draft and then publishes it: the last number, and the digest."""
    draft = board.snapshots.filter(status=SnapshotStatus.DRAFT).first()
    if draft is None:
        return ""
    draft.board = board
    return _state(_last_snapshot(board), snapshot_digest(board.rules, draft.seed, draft_entries(draft)))


def publish(
    board: Board,
    *,
    by: Any = None,
    note: str = "",
    only_if_changed: bool = False,
    pause: timedelta = timedelta(0),
    seen: str | None = None,
) -> Snapshot:
    """Copy the draft to a new snapshot, which never changes again. Raises NothingToPublish or OutdatedDraft.

    ``by``: the account that decided it; None is the board's policy. ``only_if_changed``: since the last snapshot,
    which may be retracted, or else the retraction would be undone. ``pause``: the least time since the last one.
    ``seen``: the ``draft_state`` that a person decided about; another one is not published.
    """
    with transaction.atomic():
        # The lock lets one publish at a time, and keeps the board's rules as they are.
        board = Board.objects.select_for_update().get(pk=board.pk)
        draft = board.snapshots.filter(status=SnapshotStatus.DRAFT).first()
        if draft is None:
            raise NothingToPublish(f"The board “{board}” has no results yet.")
        lock_drafts([draft])
        draft.board = board
        entries = draft_entries(draft)
        if not entries:
            raise NothingToPublish(f"The draft of “{board}” has no entry that anybody may see.")
        rules = board.rules
        last = _last_snapshot(board)
        digest = snapshot_digest(rules, draft.seed, entries)
        if seen is not None and seen != _state(last, digest):
            raise OutdatedDraft(f"“{board}” has changed since you looked at its draft. Look again, and publish then.")
        if last is not None and only_if_changed and _is_as_published(last, rules, entries):
            raise NothingToPublish(f"Nothing on “{board}” has changed since its newest snapshot.")
        if last is not None and last.published_at is not None and timezone.now() < last.published_at + pause:
            raise NothingToPublish(f"The newest snapshot of “{board}” is younger than {pause}.")
        _check_origin(board, draft, entries)
        snapshot = Snapshot.objects.create(
            board=board,
            number=(last.number or 0) + 1 if last else 1,
            status=SnapshotStatus.PUBLISHED,
            rules=rules,
            seed=draft.seed,
            data_cutoff=max((entry.data_cutoff for entry in entries if entry.data_cutoff), default=None),
            code_version=code_version(),
            input_digest=digest,
            entry_count=len(entries),
            published_at=timezone.now(),
            published_by=by,
            note=note,
        )
        for entry in entries:
            entry.pk, entry.snapshot = None, snapshot
            entry._state.adding = True
        Entry.objects.bulk_create(entries)
        return snapshot


def publish_by_policy(board: Board, policy: str) -> Snapshot | None:
    """Publish what has changed, if the board has this policy; what must wait is published by a later call."""
    if board.publication_policy != policy:
        return None
    # A demonstration shows at once what happens, and nobody cites it.
    pauses = policy == PublicationPolicy.AT_ONCE and not board.is_demo
    try:
        return publish(board, only_if_changed=True, pause=LEAST_PAUSE if pauses else timedelta(0))
    except (NothingToPublish, OutdatedDraft):
        return None


def retract(snapshot: Snapshot, *, by: Any, reason: str) -> Snapshot:
    """Take a snapshot back: it stays readable, says that it was retracted and why, and is nobody's newest any more."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why the snapshot is retracted; everybody can read it."})
    with transaction.atomic():
        snapshot = Snapshot.objects.select_for_update(of=("self",)).select_related("board").get(pk=snapshot.pk)
        if snapshot.status != SnapshotStatus.PUBLISHED:
            raise ValidationError(f"{snapshot} is {snapshot.get_status_display().lower()}: nothing to retract.")
        snapshot.status, snapshot.retraction_reason = SnapshotStatus.RETRACTED, reason.strip()
        snapshot.retracted_at, snapshot.retracted_by = timezone.now(), by
        snapshot.save(update_fields=["status", "retraction_reason", "retracted_at", "retracted_by"])
        return snapshot


def snapshot_digest(rules: dict[str, Any], seed: int, entries: list[Entry]) -> str:
    """SHA-256, as 64 hexadecimal digits, over everything that the entries follow from.

    The first line is rules and seed as JSON with sorted keys and no spaces; then one line per entry, sorted: slugs of
    attack and target model, and the digest of its inputs, joined by commas. Line feeds between them, UTF-8.
    """
    first = json.dumps({"rules": rules, "seed": seed}, sort_keys=True, separators=(",", ":"))
    lines = sorted(f"{entry.attack.slug},{entry.target_model.slug},{entry.input_digest}" for entry in entries)
    return hashlib.sha256("\n".join([first, *lines]).encode()).hexdigest()


def _last_snapshot(board: Board) -> Snapshot | None:
    """The one of the highest number, retracted or not."""
    return board.snapshots.exclude(number=None).order_by("-number").first()


def _state(last: Snapshot | None, digest: str) -> str:
    return f"{last.number if last else 0}-{digest}"


def _is_as_published(last: Snapshot, rules: dict[str, Any], entries: Sequence[Entry]) -> bool:
    return last.rules == rules and not changes(by_pair(visible_entries(last)), by_pair(entries))


def _check_origin(board: Board, draft: Snapshot, entries: Sequence[Entry]) -> None:
    """A snapshot names rules, seed and program: its entries must follow from these, or nobody could verify it."""
    origin = {"rules": asdict(Rules.of(board.rules)), "seed": draft.seed, "selection": board.selection}
    target_models = set(board.target_models.values_list("pk", flat=True))
    outdated = [
        str(entry)
        for entry in entries
        if {name: entry.details.get(name) for name in origin} != origin
        or entry.code_version != code_version()
        or (target_models and entry.target_model_id not in target_models)
    ]
    if outdated:
        named = ", ".join(outdated[:3]) + (", …" if len(outdated) > 3 else "")
        raise OutdatedDraft(
            f"The board's rules or the program have changed since {len(outdated)} of {len(entries)} results of the "
            f"draft were computed: {named}. Recompute all, wait until none is waiting, and publish then."
        )
