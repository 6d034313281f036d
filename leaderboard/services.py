"""What writes the leaderboard's rows: results computed from the valid ratings of a pair."""

import hashlib
import logging

from django.db import transaction
from django.utils import timezone

from imagedb.models import Attack, TargetModel
from leaderboard.models import Board, Entry
from leaderboard.statistics.descriptives import describe
from studies.selectors import ScaleRatings, valid_ratings

logger = logging.getLogger(__name__)


def recompute_entry(attack_id: int, target_model_id: int) -> None:
    """Bring the stored results of one pair up to date: one entry per rating scale that has valid ratings.

    Safe to run twice or in parallel: the same ratings give the same row. An entry whose last valid rating went away is
    deleted. A pair that is not in the catalogue has nothing to compute.
    """
    with transaction.atomic():
        attack = lock_attack(attack_id)
        target_model = TargetModel.objects.filter(pk=target_model_id).first()
        if attack is None or target_model is None:
            logger.info("No attack %s or no target model %s: nothing to recompute", attack_id, target_model_id)
            return
        current = [_store(ratings, attack, target_model).pk for ratings in valid_ratings(attack_id, target_model_id)]
        Entry.objects.filter(attack=attack, target_model=target_model).exclude(pk__in=current).delete()


def lock_attack(attack_id: int) -> Attack | None:
    """Let one recomputation of an attack's pairs in at a time.

    Whoever comes second waits here, before reading, and so does not overwrite newer numbers with older ones. The lock
    does not keep others from adding rows that refer to the attack.
    """
    return Attack.objects.select_for_update(no_key=True).filter(pk=attack_id).first()


def _store(ratings: ScaleRatings, attack: Attack, target_model: TargetModel) -> Entry:
    result = describe(ratings.values, ratings.is_modified, ratings.participation_ids, ratings.image_ids)
    entry, _ = Entry.objects.update_or_create(
        board=_board(ratings.scale_minimum, ratings.scale_maximum),
        attack=attack,
        target_model=target_model,
        defaults={
            "participants": result.participants,
            "ratings": result.ratings,
            "images_modified": result.modified.images,
            "images_clean": result.clean.images,
            "ratings_modified": result.modified.ratings,
            "ratings_clean": result.clean.ratings,
            "mean_modified": result.modified.mean,
            "sd_modified": result.modified.sd,
            "mean_clean": result.clean.mean,
            "sd_clean": result.clean.sd,
            "difference": result.difference,
            "is_demo": attack.is_demo or target_model.is_demo or ratings.is_demo,
            "input_digest": input_digest(ratings),
            "computed_at": timezone.now(),
        },
    )
    return entry


def _board(minimum: int, maximum: int) -> Board:
    """The board of a scale; the first result on a scale makes it. An admin may rename it later."""
    name = f"Scale {minimum} to {maximum}".replace("-", "\N{MINUS SIGN}")
    slug = f"scale-{minimum}-to-{maximum}".replace("--", "-minus-")
    board, _ = Board.objects.get_or_create(
        scale_minimum=minimum, scale_maximum=maximum, defaults={"name": name, "slug": slug}
    )
    return board


def input_digest(ratings: ScaleRatings) -> str:
    """SHA-256 over the ratings that go into an entry, whatever their order.

    One line per rating, sorted: participation id, image id, 1 for modified or 0 for clean, oriented value.
    """
    rows = zip(
        ratings.participation_ids.tolist(),
        ratings.image_ids.tolist(),
        ratings.is_modified.astype(int).tolist(),
        ratings.values.tolist(),
        strict=True,
    )
    lines = "\n".join(",".join(map(str, row)) for row in sorted(rows))
    return hashlib.sha256(lines.encode()).hexdigest()
