"""Answers of real people are never taken for demonstration data."""

import pytest

from scooter_site.demo import removal
from studies.models import Participation, ParticipationKind, Study
from tests import factories, walks

pytestmark = pytest.mark.django_db


def test_real_answers_in_a_study_marked_as_demonstration_stop_the_removal():
    study = factories.running_study(is_demo=True, slug="copied-from-the-demo")
    walks.complete(study, ParticipationKind.REAL)
    with pytest.raises(removal.StillInUse, match=r"copied-from-the-demo\) is marked as a demonstration"):
        removal.remove()
    assert Participation.objects.count() == 1
    Study.objects.update(is_demo=False)
    removal.remove()
    assert Participation.objects.count() == 1


@pytest.mark.parametrize(
    ("slug", "kind"), [("demo", ParticipationKind.REAL), ("other", ParticipationKind.TEST)], ids=["open demo", "bots"]
)
def test_visitors_of_the_demonstration_and_bots_stop_nothing(slug, kind):
    walks.complete(factories.running_study(is_demo=True, slug=slug), kind)
    removal.remove()
    assert not Study.objects.exists()
