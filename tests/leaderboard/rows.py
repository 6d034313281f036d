"""Studies with finished participations, made directly: the leaderboard reads them, the flow is tested elsewhere."""

import itertools
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from imagedb.models import Image
from leaderboard.models import Board, Entry
from leaderboard.services.boards import draft_of
from leaderboard.services.publication import publish
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationKind, Rating, Study, Trial
from tests.leaderboard import boards

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


def entry(*, board: Board | None = None, is_demo: bool = False, **fields: Any) -> Entry:
    """A published result on the paper's scale, in a snapshot with those made before; ``difference`` None: unscored."""
    slug = "demo-slider" if is_demo else "slider"
    name = "Demonstration: slider" if is_demo else "Scale −100 to 100"
    found = board or Board.objects.filter(slug=slug).first() or boards.board(name=name, slug=slug, is_demo=is_demo)
    draft = draft_of(found)
    difference = fields.pop("difference", 40.0)
    made = boards.add_entry(draft, difference=difference, **fields)
    snapshot = publish(found)
    return snapshot.entries.get(attack=made.attack, target_model=made.target_model)
