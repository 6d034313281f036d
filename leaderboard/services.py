"""What writes the leaderboard's rows: results computed from the valid ratings of a pair."""

import hashlib
import logging
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from imagedb.models import Attack, TargetModel
from leaderboard.models import Board, Entry
from leaderboard.statistics.descriptives import Descriptives, describe
from leaderboard.statistics.ratings import Ratings
from studies.selectors import PairState, ScaleRatings, pair_states, valid_ratings

logger = logging.getLogger(__name__)


# So often a result is computed outside the lock; if ratings keep coming in meanwhile, the next time is inside it.
ATTEMPTS_WITHOUT_LOCK = 3


@dataclass(frozen=True)
class Result:
    """What the ratings of a pair on one scale come to, before it is stored."""

    ratings: ScaleRatings
    descriptives: Descriptives
    input_digest: str


def recompute_entry(attack_id: int, target_model_id: int) -> None:
    """Bring the stored results of one pair up to date: one entry per rating scale that has valid ratings.

    Ratings are read and described outside a transaction, and stored in a short one, if what they were read from is
    still how things are; else they are read again. So an older result never overwrites a newer one, and nobody waits
    while numbers are computed. Safe to run twice or in parallel: the same ratings give the same row. An entry whose
    last valid rating went away is deleted. A pair that is not in the catalogue has nothing to compute.
    """
    for _ in range(ATTEMPTS_WITHOUT_LOCK):
        state = current_state(attack_id, target_model_id)
        results = _compute(attack_id, target_model_id)
        with transaction.atomic():
            attack = lock_attack(attack_id)
            if current_state(attack_id, target_model_id) == state:
                _store(results, attack, target_model_id)
                return
    logger.info("Ratings for attack %s keep coming in: computing while others wait", attack_id)
    with transaction.atomic():
        attack = lock_attack(attack_id)
        _store(_compute(attack_id, target_model_id), attack, target_model_id)


def current_state(attack_id: int, target_model_id: int) -> list[PairState]:
    """What tells cheaply whether the valid ratings of a pair are still the same."""
    return pair_states(attack_id=attack_id, target_model_id=target_model_id)


def lock_attack(attack_id: int) -> Attack | None:
    """Let one store results of an attack's pairs at a time: between a look at the state and the commit nobody else.

    The lock does not keep others from adding rows that refer to the attack.
    """
    return Attack.objects.select_for_update(no_key=True).filter(pk=attack_id).first()


def _compute(attack_id: int, target_model_id: int) -> list[Result]:
    return [
        Result(
            ratings=ratings,
            descriptives=describe(
                Ratings.from_columns(ratings.values, ratings.is_modified, ratings.participation_ids, ratings.image_ids)
            ),
            input_digest=input_digest(ratings),
        )
        for ratings in valid_ratings(attack_id, target_model_id)
    ]


def _store(results: list[Result], attack: Attack | None, target_model_id: int) -> None:
    target_model = TargetModel.objects.filter(pk=target_model_id).first()
    if attack is None or target_model is None:
        logger.info("The attack or target model %s is gone: nothing to store", target_model_id)
        return
    current = [store_entry(result, attack, target_model).pk for result in results]
    Entry.objects.filter(attack=attack, target_model=target_model).exclude(pk__in=current).delete()


def store_entry(result: Result, attack: Attack, target_model: TargetModel) -> Entry:
    """Write one entry, and the board of its scale if it is the first there."""
    ratings, found = result.ratings, result.descriptives
    board = board_of_scale(ratings.scale_minimum, ratings.scale_maximum)
    entry, _ = Entry.objects.update_or_create(
        board=board,
        attack=attack,
        target_model=target_model,
        defaults={
            "participants": found.participants,
            "ratings": found.ratings,
            "images_modified": found.modified.images,
            "images_clean": found.clean.images,
            "ratings_modified": found.modified.ratings,
            "ratings_clean": found.clean.ratings,
            "mean_modified": found.modified.mean,
            "sd_modified": found.modified.sd,
            "mean_clean": found.clean.mean,
            "sd_clean": found.clean.sd,
            "difference": found.difference,
            "is_demo": attack.is_demo or target_model.is_demo or ratings.is_demo,
            "input_digest": result.input_digest,
            "computed_at": timezone.now(),
        },
    )
    return entry


def board_of_scale(minimum: int, maximum: int) -> Board:
    """The board of a scale; the first result on a scale makes it. An admin may rename it later."""
    name = f"Scale {minimum} to {maximum}".replace("-", "\N{MINUS SIGN}")
    slug = f"scale-{minimum}-to-{maximum}".replace("--", "-minus-")
    board, _ = Board.objects.get_or_create(
        scale_minimum=minimum, scale_maximum=maximum, defaults={"name": name, "slug": slug}
    )
    return board


def input_digest(ratings: ScaleRatings) -> str:
    """SHA-256, as 64 hexadecimal digits, over the ratings that go into an entry; can be recomputed from an export.

    One line per valid rating of an image (no attention checks): the participation's public id, the image's public id
    (both in lower case with hyphens), 1 for a modified or 0 for a clean image, and the value as a whole number oriented
    "higher = more modified", joined by commas without spaces. The lines are sorted by their characters' code points,
    joined by line feeds (none at the end), and encoded as UTF-8.
    """
    rows = zip(
        ratings.participation_public_ids,
        ratings.image_public_ids,
        ratings.is_modified.astype(int).tolist(),
        ratings.values.tolist(),
        strict=True,
    )
    lines = sorted(
        f"{participation},{image},{is_modified},{value}" for participation, image, is_modified, value in rows
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
