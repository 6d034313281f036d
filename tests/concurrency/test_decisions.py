"""Two people decide at the same moment, or a decision meets an end: each person counts at most once."""

import threading
from contextlib import nullcontext, suppress
from functools import partial
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User

from studies.models import Decision, Participation, Verdict
from studies.services import decisions
from studies.services.decisions import DecisionRefused, decide
from studies.services.participations import give_feedback
from tests import factories, walks
from tests.concurrency.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def authors():
    return [User.objects.create_user(name) for name in ("ada", "grace")]


def test_of_two_who_exclude_at_once_one_does_and_the_other_is_told(authors):
    participation = walks.complete(factories.running_study())
    results = at_once(
        [
            partial(decide, participation.pk, Verdict.EXCLUDE, reason=f"Seen by {author}", author=author, seen=None)
            for author in authors
        ]
    )
    (made,) = (result for result in results if isinstance(result, Decision))
    (refused,) = (result for result in results if isinstance(result, DecisionRefused))
    assert f"excluded by {made.author}, because “Seen by {made.author}”" in str(refused)
    assert Decision.objects.count() == 1
    assert not Participation.objects.get().is_valid


@pytest.mark.parametrize("is_locked", [False, True], ids=["without the lock", "with the lock"])
def test_both_decide_without_the_lock_and_one_with_it(monkeypatch, authors, is_locked):
    participation = walks.complete(factories.running_study())
    meeting = threading.Barrier(2)
    measure = decisions.quality_findings

    def meet_before_deciding(participation):
        """Both have looked before either decides, if nothing holds one of them back."""
        with suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=2)
        return measure(participation)

    monkeypatch.setattr(decisions, "quality_findings", meet_before_deciding)
    if not is_locked:
        # On SQLite it is the transaction that keeps others out, on PostgreSQL the locks within it.
        monkeypatch.setattr(decisions, "transaction", SimpleNamespace(atomic=nullcontext))
        monkeypatch.setattr(decisions, "_locked", lambda pk: Participation.objects.select_related("study").get(pk=pk))
    results = at_once(
        [
            partial(decide, participation.pk, Verdict.EXCLUDE, reason="Seen", author=author, seen=None)
            for author in authors
        ]
    )
    expected = ["Decision", "DecisionRefused" if is_locked else "Decision"]
    assert sorted(type(result).__name__ for result in results) == expected


def two_sessions_of_one_person(study):
    first, second = (walks.to_main(study, participant_id=name, session_id=name) for name in ("p", "q"))
    second.identity.participant_id = "p"
    second.identity.save()
    return walks.rate_all(first), walks.rate_all(second)


def test_two_sessions_of_one_person_cannot_both_be_included_at_once(authors):
    first, second = (
        give_feedback(participation.pk, {})
        for participation in two_sessions_of_one_person(factories.running_study(attention_rule="off"))
    )
    decide(first.pk, Verdict.EXCLUDE, reason="To begin with", author=authors[0], seen=None)
    seen = Decision.objects.get().pk
    results = at_once(
        [
            partial(decide, first.pk, Verdict.INCLUDE, reason="The first", author=authors[0], seen=seen),
            partial(decide, second.pk, Verdict.INCLUDE, reason="The second", author=authors[1], seen=None),
        ]
    )
    assert sorted(type(result).__name__ for result in results) == ["Decision", "DecisionRefused"]
    assert Participation.objects.filter(is_valid=True).count() == 1


def test_one_session_is_included_while_the_other_ends(authors):
    first, second = two_sessions_of_one_person(factories.running_study())
    first = give_feedback(first.pk, {})
    decide(first.pk, Verdict.EXCLUDE, reason="To begin with", author=authors[0], seen=None)
    seen = Decision.objects.get().pk
    results = at_once(
        [
            partial(decide, first.pk, Verdict.INCLUDE, reason="After all", author=authors[0], seen=seen),
            partial(give_feedback, second.pk, {}),
        ]
    )
    assert [result for result in results if isinstance(result, Exception)] == []
    assert Participation.objects.get(is_valid=True) == first
