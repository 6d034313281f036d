"""One visit named by two people at the same moment: nobody goes on as somebody else, whoever is faster."""

import pytest

from studies.models import ParticipantIdentity, Participation, ParticipationKind
from studies.services import entering
from studies.services.participations import SessionOfAnother
from tests import factories, walks
from tests.concurrency.threads import at_once, meeting_after

pytestmark = pytest.mark.django_db(transaction=True)


def given_to(people, results) -> None:
    """Only who began the visit has got it; everybody else was refused."""
    identity = ParticipantIdentity.objects.get()
    for person, result in zip(people, results, strict=True):
        if person == identity.participant_id:
            assert result.pk == identity.participation_id
        else:
            assert isinstance(result, SessionOfAnother)
    assert Participation.objects.count() == 1


def test_a_visit_belongs_to_the_first_of_many():
    study = factories.running_study()
    people = [f"person-{number % 4}" for number in range(12)]
    given_to(
        people, at_once([lambda one=one: walks.enter(study, participant_id=one, session_id="s") for one in people])
    )


@pytest.mark.parametrize("kind", [ParticipationKind.REAL, ParticipationKind.TEST])
def test_who_looked_before_the_other_had_stored_it_is_refused_too(monkeypatch, kind):
    """The look without a lock finds nobody for both; then it is the lock, or the database, that tells them apart."""
    study = factories.running_study()
    monkeypatch.setattr(entering, "_of_session", meeting_after(entering._of_session))
    people = ["anna", "ben"]
    given_to(
        people,
        at_once([lambda one=one: walks.enter(study, kind=kind, participant_id=one, session_id="s") for one in people]),
    )
