"""Results computed from the valid ratings of a pair, and kept in the drafts of the boards that they belong to."""

import hashlib
import logging
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from imagedb.models import Attack, AttackEvaluation, TargetModel
from leaderboard.inputs import InputRating, Inputs
from leaderboard.models import Board, Entry, ExternalResult, Flag, Recomputation, Snapshot, SnapshotStatus
from leaderboard.results import Result, Rules, code_version, compute, stated_success_rate
from leaderboard.selectors.freshness import as_covered
from leaderboard.services.boards import boards_for, draft_of, lock_drafts, stored_board
from leaderboard.services.external import external_inputs, refusals
from scooter_site.common.stored_files import delete_files_after_commit
from studies.selectors import PairState, ScaleRatings, pair_facts, pair_states, valid_ratings

logger = logging.getLogger(__name__)

# So often a result is computed outside the lock; if ratings keep coming in meanwhile, the next time is inside it.
ATTEMPTS_WITHOUT_LOCK = 3
# Source images attacked, and how many of them fooled the target model.
Attempts = tuple[int | None, int | None]
NOT_STATED: Attempts = (None, None)


@dataclass(frozen=True)
class Source:
    """The ratings of a pair on one board, and where they are from."""

    board: Board
    inputs: Inputs
    facts: dict[str, Any]  # of the studies: what does not follow from the ratings
    data_cutoff: datetime | None
    external: ExternalResult | None = None
    attempts: Attempts = NOT_STATED  # an external result comes with a rate of its own

    @property
    def details(self) -> dict[str, Any]:
        """What an entry's details have that does not follow from the ratings."""
        return {"studies": self.facts, "selection": self.board.selection}


@dataclass(frozen=True)
class Computed:
    """What is to be stored for one board. ``result`` None: it is there already, from the same ratings and rules."""

    source: Source
    result: Result | None


def recompute_pair(attack_id: int, target_model_id: int) -> list[Board]:
    """Bring the drafts' results of one pair up to date. Returns the boards where something has changed.

    Ratings are read and results computed outside a transaction, and stored in a short one, if what they were read from
    is still how things are; else they are read again. So an older result never overwrites a newer one, nobody waits
    while numbers are computed, and a worker that is killed leaves the row that was there. Safe to run twice or in
    parallel: the same ratings give the same row. An entry whose last valid rating went away is deleted. A pair that is
    not in the catalogue has nothing to compute.
    """
    pair = Attack.objects.filter(pk=attack_id).first(), TargetModel.objects.filter(pk=target_model_id).first()
    attack, target_model = pair
    if attack is None or target_model is None:
        logger.info("Attack %s or target model %s is gone: nothing to compute", attack_id, target_model_id)
        return []
    row, _ = Recomputation.objects.get_or_create(attack=attack, target_model=target_model)
    for _ in range(ATTEMPTS_WITHOUT_LOCK):
        request = _take(row)
        state, attempts = current_state(attack_id, target_model_id), stated_attempts(attack_id, target_model_id)
        results = _compute(attack, target_model, state, attempts)
        with transaction.atomic():
            lock_pair(row)
            is_same = current_state(attack_id, target_model_id) == state
            if is_same and stated_attempts(attack_id, target_model_id) == attempts:
                return _store(results, row, request, state)
    logger.info("Ratings of attack %s keep coming in: computing while others wait", attack_id)
    # Committed before the lock: who asks meanwhile must see that this request was begun with.
    request = _take(row)
    with transaction.atomic():
        lock_pair(row)
        state, attempts = current_state(attack_id, target_model_id), stated_attempts(attack_id, target_model_id)
        return _store(_compute(attack, target_model, state, attempts), row, request, state)


def current_state(attack_id: int, target_model_id: int) -> list[PairState]:
    """What tells cheaply whether the valid ratings of a pair are still the same."""
    return pair_states(attack_id=attack_id, target_model_id=target_model_id)


def stated_attempts(attack_id: int, target_model_id: int) -> Attempts:
    """What the catalogue states of the pair's attempts."""
    stated = AttackEvaluation.objects.filter(attack=attack_id, target_model=target_model_id)
    return stated.values_list("images_attacked", "images_fooling").first() or NOT_STATED


def lock_pair(row: Recomputation) -> Recomputation:
    """Let one store results of a pair at a time: between a look at the state and the commit nobody else."""
    return Recomputation.objects.select_for_update(no_key=True).get(pk=row.pk)


def note_failure(attack_id: int, target_model_id: int, error: Exception) -> None:
    """Keep why a run failed, for the admin to show; beat gives up after a few."""
    with transaction.atomic():
        row = (
            Recomputation.objects.select_for_update(no_key=True)
            .filter(attack_id=attack_id, target_model_id=target_model_id)
            .first()
        )
        if row is not None:
            row.failures += 1
            row.problem = f"{type(error).__name__}: {error}"
            row.save(update_fields=["failures", "problem"])


def _take(row: Recomputation) -> datetime | None:
    """Mark the waiting request as begun with, before anything is read: a later change makes another one."""
    request = Recomputation.objects.values_list("requested_at", flat=True).get(pk=row.pk)
    if request is not None:
        Recomputation.objects.filter(pk=row.pk, requested_at=request).update(taken=request)
    return request


def _compute(attack: Attack, target_model: TargetModel, states: list[PairState], attempts: Attempts) -> list[Computed]:
    computed = []
    for source in _sources(attack, target_model, states, attempts):
        draft = Snapshot.objects.filter(board=source.board.pk, status=SnapshotStatus.DRAFT).first()
        stored = None
        if draft is not None:
            stored = draft.entries.filter(attack=attack, target_model=target_model).first()
        rules = Rules.of(source.board.rules)
        seed = draft.seed if draft else 0
        is_there = stored is not None and (
            stored.input_digest == source.inputs.digest
            and stored.code_version == code_version()
            and stored.details.get("rules") == asdict(rules)
            and stored.details.get("seed") == seed
            and (stored.images_attacked, stored.images_fooling) == source.attempts
        )
        computed.append(Computed(source, None if is_there else compute(source.inputs, rules, seed=seed)))
    return computed


def _sources(attack: Attack, target_model: TargetModel, states: list[PairState], attempts: Attempts) -> list[Source]:
    """The boards that the pair is on. Ratings of studies here go before an external result of the same pair."""
    found: dict[str, Source] = {}
    by_protocol: dict[str, list[ScaleRatings]] = {}
    for minimum, maximum, is_demo in sorted(
        {(state.scale_minimum, state.scale_maximum, state.is_demo) for state in states if state.participations}
    ):
        for board in boards_for(
            scale_minimum=minimum, scale_maximum=maximum, is_demo=is_demo, target_model_id=target_model.pk
        ):
            if board.protocol not in by_protocol:
                by_protocol[board.protocol] = valid_ratings(attack.pk, target_model.pk, board.protocol)
            for ratings in by_protocol[board.protocol]:
                if (ratings.scale_minimum, ratings.scale_maximum, ratings.is_demo) != (minimum, maximum, is_demo):
                    continue
                inputs = _inputs(attack, target_model, ratings, board)
                if inputs.ratings:
                    found[board.slug] = Source(
                        board=board,
                        inputs=inputs,
                        attempts=attempts,
                        facts=pair_facts(
                            attack.pk,
                            target_model.pk,
                            scale_minimum=minimum,
                            scale_maximum=maximum,
                            is_demo=is_demo,
                            protocol=board.protocol,
                        ),
                        data_cutoff=max(
                            state.changed_at
                            for state in states
                            if (state.scale_minimum, state.scale_maximum, state.is_demo) == (minimum, maximum, is_demo)
                            and board.protocol in ("", state.protocol)
                        ),
                    )
    for external in ExternalResult.objects.filter(
        attack=attack, target_model=target_model, withdrawn_at=None
    ).select_related("board"):
        if external.board.slug not in found and not refusals(external.board, target_model):
            found[external.board.slug] = Source(
                board=external.board, inputs=external_inputs(external), facts={}, data_cutoff=None, external=external
            )
    return list(found.values())


def _inputs(attack: Attack, target_model: TargetModel, ratings: ScaleRatings, board: Board) -> Inputs:
    images = ratings.images
    return Inputs.of(
        attack.slug,
        target_model.slug,
        (
            InputRating(
                participant=str(participant),
                image=str(images[image].public_id),
                is_modified=images[image].is_modified,
                value=value,
                source=str(images[image].source_public_id or ""),
                misleads=images[image].misleads if images[image].is_modified else None,
            )
            for participant, image, value in zip(
                ratings.participation_public_ids, ratings.image_ids.tolist(), ratings.values.tolist(), strict=True
            )
            if not (board.verified_images_only and images[image].is_modified and not images[image].misleads)
        ),
    )


def _store(
    results: list[Computed], row: Recomputation, request: datetime | None, state: list[PairState]
) -> list[Board]:
    """In the transaction that holds the lock. The request goes, unless another one came in."""
    drafts = [draft_of(stored_board(result.source.board)) for result in results]
    in_drafts = Entry.objects.filter(
        snapshot__status=SnapshotStatus.DRAFT, attack_id=row.attack_id, target_model_id=row.target_model_id
    )
    lock_drafts([*drafts, *Snapshot.objects.filter(entries__in=in_drafts)])
    entries, changed = [], []
    for result, draft in zip(results, drafts, strict=True):
        entry, is_changed = _store_entry(result, row, draft)
        entries.append(entry.pk)
        if is_changed:
            changed.append(entry.snapshot.board)
    gone = in_drafts.exclude(pk__in=entries)
    changed += [entry.snapshot.board for entry in gone.select_related("snapshot__board")]
    gone.delete()
    Recomputation.objects.filter(pk=row.pk).update(
        covered=as_covered(state), failures=0, problem="", runs=F("runs") + 1
    )
    Recomputation.objects.filter(pk=row.pk, requested_at=request).update(requested_at=None)
    return changed


def _store_entry(computed: Computed, row: Recomputation, draft: Snapshot) -> tuple[Entry, bool]:
    source, result = computed.source, computed.result
    of_pair = {"snapshot": draft, "attack_id": row.attack_id, "target_model_id": row.target_model_id}
    entry = Entry.objects.filter(**of_pair).first()
    if result is None and entry is not None:
        details = {**entry.details, **source.details}
        is_changed = entry.details != details or entry.data_cutoff != source.data_cutoff
        entry.details, entry.data_cutoff = details, source.data_cutoff
        if is_changed:
            entry.save(update_fields=["details", "data_cutoff"])
        return entry, is_changed
    if result is None:
        # It was there when the result was looked for, and somebody took the draft away.
        result = compute(source.inputs, Rules.of(draft.board.rules), seed=draft.seed)
    if entry is None:
        entry = Entry(**of_pair)
    else:
        delete_files_after_commit([entry.inputs])
    entry.images_attacked, entry.images_fooling = source.attempts
    values = result.values | stated_success_rate(*source.attempts)
    for name, value in values.items():
        setattr(entry, name, value)
    if source.external is not None:
        entry.flags = [*entry.flags, Flag.EXTERNAL.value]
        entry.attack_success_rate = source.external.attack_success_rate
    content = source.inputs.as_gzip()
    entry.inputs.save("inputs.csv.gz", ContentFile(content), save=False)
    entry.external_result = source.external
    entry.details = {**result.details, **source.details}
    entry.inputs_sha256, entry.inputs_bytes = hashlib.sha256(content).hexdigest(), len(content)
    entry.input_digest = source.inputs.digest
    entry.code_version = code_version()
    entry.data_cutoff = source.data_cutoff
    entry.computed_at = timezone.now()
    entry.save()
    return entry, True
