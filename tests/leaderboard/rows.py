"""Studies with finished participations, made directly: the leaderboard reads them, the flow is tested elsewhere."""

import itertools
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from imagedb.models import Image
from leaderboard.models import Board, Entry
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationKind, Rating, Study, Trial
from tests import factories

_numbers = itertools.count(1)


def study(attack: Any, target_model: Any, **fields: Any) -> Study:
    number = next(_numbers)
    return Study.objects.create(
        **{
            "title": f"Study {number}",
            "slug": f"study-{number}",
            "attack": attack,
            "target_model": target_model,
            **fields,
        }
    )


def finished(study: Study, answers: Iterable[tuple[Image, int]], **fields: Any) -> Participation:
    """A valid participation of ``study`` that gave each image its value, and a check that does not count."""
    participation = Participation.objects.create(
        **{
            "study": study,
            "kind": ParticipationKind.REAL,
            "step": Step.END,
            "outcome": Outcome.COMPLETED,
            "is_valid": True,
            "finished_at": timezone.now(),
            **fields,
        }
    )
    position = 0
    for position, (image, value) in enumerate(answers, start=1):
        trial = Trial.objects.create(participation=participation, position=position, image=image)
        Rating.objects.create(trial=trial, value=value, first_interaction_ms=500)
    check = Trial.objects.create(
        participation=participation, position=position + 1, kind="instructed", instructed_value=99
    )
    Rating.objects.create(trial=check, value=99, first_interaction_ms=500)
    return participation


def entry(**fields: Any) -> Entry:
    """A stored result on the paper's scale; ``difference`` None makes it unscored."""
    board, _ = Board.objects.get_or_create(
        scale_minimum=-100, scale_maximum=100, defaults={"name": "Scale −100 to 100", "slug": "slider"}
    )
    difference = fields.get("difference", 40.0)
    return Entry.objects.create(
        **{
            "board": board,
            "attack": fields.pop("attack", None) or factories.attack(),
            "target_model": fields.pop("target_model", None) or factories.target_model(),
            "participants": 3,
            "ratings": 300,
            "images_modified": 120,
            "images_clean": 130,
            "ratings_modified": 150,
            "ratings_clean": 150,
            "mean_modified": None if difference is None else difference - 10,
            "sd_modified": 30.0,
            "mean_clean": -10.0,
            "sd_clean": 20.0,
            "difference": difference,
            "input_digest": "0" * 64,
            "computed_at": timezone.now(),
            **fields,
        }
    )
