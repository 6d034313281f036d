"""The items of the main study as its page needs them: where a participant is, what follows, what was answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from scooter_site.common.prepared import PreparedQuery
from studies.models import Trial

# Items beyond the current one that the browser may fetch ahead, and go on with while it is offline.
LOOK_AHEAD = 3


@dataclass(frozen=True, slots=True)
class Item:
    """A trial with its answer, None as long as there is none."""

    trial_id: int
    token: UUID
    position: int
    kind: str
    image_id: int | None
    stimulus_id: int | None
    instructed_value: int | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    answer: int | None = None

    @property
    def has_image(self) -> bool:
        """Whether there is an image to show; of some checks there are words alone."""
        return self.image_id is not None or self.stimulus_id is not None


_COLUMNS = (
    "id", "token", "position", "kind", "image_id", "stimulus_id", "instructed_value", "parameters", "rating__value",
)  # fmt: skip


def unanswered_items(participation_id: int) -> list[Item]:
    """The current item, the first unanswered one, and the LOOK_AHEAD + 1 after it; none when all are answered."""
    return [Item(*row) for row in _UNANSWERED.rows(participation_id)]


def items_from(participation_id: int, position: int) -> list[Item]:
    """The item at ``position`` and the LOOK_AHEAD after it, answered or not. One query."""
    return _items(Trial.objects.filter(participation=participation_id, position__gte=position), 1 + LOOK_AHEAD)


def item_of_token(participation_id: int, token: UUID) -> Item | None:
    """The participant's item with this token, wherever it is. One query."""
    return next(iter(_items(Trial.objects.filter(participation=participation_id, token=token), 1)), None)


def _unanswered(**whose: Any) -> QuerySet[Trial, Any]:
    trials = Trial.objects.filter(rating__isnull=True, **whose)
    return trials.order_by("position").values_list(*_COLUMNS)[: 2 + LOOK_AHEAD]


_UNANSWERED = PreparedQuery(lambda participation_id: _unanswered(participation=participation_id), 2**40)
# The rows of ``unanswered_items`` for the public id of a participation: of every answer.
UNANSWERED_OF_SESSION = PreparedQuery(lambda public_id: _unanswered(participation__public_id=public_id), UUID(int=1))


def _items(trials: QuerySet[Trial], limit: int) -> list[Item]:
    return [Item(*row) for row in trials.order_by("position").values_list(*_COLUMNS)[:limit]]
