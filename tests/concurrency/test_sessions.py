"""The same session twice at the same moment: two tabs, a double click, a repeated request."""

import threading
from collections import Counter
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import pytest
from django.db import IntegrityError
from django.test import Client

from scooter_site.common.prepared import write
from studies import selectors
from studies.flow import Step
from studies.models import (
    ParticipantIdentity,
    Participation,
    ParticipationKind,
    PlateTrial,
    Rating,
    Study,
    TextKind,
    TrialKind,
)
from studies.selectors.items import unanswered_items
from studies.services import answers, entering, life, rating
from studies.services.materials import build_materials
from studies.services.participations import answer_plate, finish_instructions, give_feedback
from tests import factories, walks
from tests.concurrency.threads import at_once, meeting_after
from tests.studies.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)


def failures(results):
    return [result for result in results if isinstance(result, Exception)]


def test_twenty_tabs_are_one_participation():
    study = factories.running_study()
    results = at_once([lambda: walks.enter(study, participant_id="p", session_id="s")] * 20)
    assert failures(results) == []
    assert len({result.pk for result in results}) == 1
    assert Participation.objects.count() == ParticipantIdentity.objects.count() == 1


def test_the_loser_of_a_parallel_insert_gets_the_winners_row(monkeypatch):
    """Both look before either has stored anything: the database, not the look, decides."""
    study = factories.running_study()
    monkeypatch.setattr(entering, "_of_session", meeting_after(entering._of_session))
    results = at_once([lambda: walks.enter(study, session_id="s")] * 2)
    assert failures(results) == []
    assert results[0].pk == results[1].pk
    assert Participation.objects.count() == 1


def test_new_sessions_of_one_person_at_once_leave_one_unfinished():
    """Some arrive while the first one consents: both lock the study and the participation, in the same order."""
    study = factories.running_study()
    first = walks.enter(study, participant_id="p", session_id="s0")
    arrivals = [
        lambda number=number: walks.enter(study, participant_id="p", session_id=f"s{number}") for number in range(1, 6)
    ]
    results = at_once([lambda: walks.consent(first), *arrivals])
    assert failures(results) == []
    outcomes = Counter(Participation.objects.values_list("outcome", flat=True))
    assert outcomes == {"replaced": 5, "": 1}


def test_consenting_ten_times_at_once_gives_one_place_and_one_order():
    study = factories.running_study()
    participation = walks.enter(study)
    results = at_once([lambda: walks.consent(participation)] * 10)
    assert failures(results) == []
    assert {result.step for result in results} == {Step.COLOUR_CHECK}
    assert participation.trials.count() == study.trial_count
    assert participation.plate_trials.count() == study.plate_count
    assert selectors.places_taken(study, ParticipationKind.REAL) == 1


def two_tabs(visitor):
    """Two browsers with the same cookie."""
    other = Visitor(visitor.study, Client())
    other.client.cookies = visitor.client.cookies
    return visitor, other


def test_100_double_submissions_store_one_rating_each_and_agree_on_the_next_item():
    """A double click, or two tabs: every other pair gives two different answers. No answer names a stale item."""
    study = factories.running_study(
        dataset_count=1, clean_per_dataset=48, modified_per_dataset=48, corrupted_check_count=2,
        instructed_check_count=2, attention_failures_allowed=4,
    )  # fmt: skip
    visitor = Visitor(study)
    participation = visitor.at(Step.MAIN)
    tabs = two_tabs(visitor)
    trials = list(participation.trials.select_related("image"))
    assert len(trials) == 100
    expected_failures = 0
    for trial, following in zip(trials, [*trials[1:], None], strict=True):
        right = walks.right_value(trial)
        values = [right, walks.wrong_value(trial) if trial.position % 2 else right]
        results = at_once(
            [
                lambda tab=tab, value=value, trial=trial: tab.rate(trial.token, value)
                for tab, value in zip(tabs, values, strict=True)
            ]
        )
        assert failures(results) == []
        assert [result.status_code for result in results] == [200, 200]
        named = [result.json()["trial"] and result.json()["trial"]["token"] for result in results]
        assert named == [following and str(following.token)] * 2
        assert Rating.objects.filter(trial__participation=participation).count() == trial.position
        assert trial.rating.value in values
        if trial.kind != TrialKind.IMAGE:
            expected_failures += trial.rating.value != right
    participation.refresh_from_db()
    assert participation.step == Step.FEEDBACK
    assert participation.attention_failures == expected_failures


def test_100_people_who_all_submit_twice_at_the_same_moment_lose_and_double_nothing():
    study = factories.running_study(
        plate_count=0, plates_required=0, comprehension_pair_count=0, comprehension_required=0,
        participants_per_dataset=50,
    )  # fmt: skip
    submissions, expected = [], []
    for number in range(100):
        visitor = Visitor(study)
        participation = walks.finish_instructions(visitor.at(Step.INSTRUCTIONS).pk)
        first, second = list(participation.trials.order_by("position")[:2])
        values = [number % 50, number % 50 + (1 if number % 2 else 0)]
        for tab, value in zip(two_tabs(visitor), values, strict=True):
            submissions.append(lambda tab=tab, value=value, token=first.token: tab.rate(token, value))
            expected.append((first, values, str(second.token)))
    results = at_once(submissions)
    assert failures(results) == []
    assert [result.status_code for result in results] == [200] * 200
    for result, (trial, values, following) in zip(results, expected, strict=True):
        assert result.json()["trial"]["token"] == following
        assert trial.rating.value in values
    assert Rating.objects.count() == 100


@pytest.mark.parametrize("is_locked", [False, True], ids=["without the lock", "with the lock"])
def test_a_double_submission_fails_without_the_lock_and_not_with_it(monkeypatch, is_locked):
    participation = walks.to_main(factories.running_study())
    trial = walks.current_trial(participation)
    meeting, locked_with_items = threading.Barrier(2), rating._locked_with_items

    def unlocked_with_items(session):
        found = Participation.objects.select_related("study").get(public_id=session.public_id)
        return found, unanswered_items(found.pk)

    def look_together(session):
        found = (locked_with_items if is_locked else unlocked_with_items)(session)
        with suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=2)
        return found

    monkeypatch.setattr(rating, "_locked_with_items", look_together)
    if not is_locked:
        # On SQLite it is the transaction that keeps others out, on PostgreSQL the lock within it.
        monkeypatch.setattr(rating, "transaction", SimpleNamespace(atomic=nullcontext))
        # Several changes at once are refused without a transaction.
        monkeypatch.setattr(rating, "write", lambda *writes: [write(each) for each in writes])
    results = at_once([lambda: walks.answer(participation, trial.token, 0)] * 2)
    assert [type(result) for result in failures(results)] == ([] if is_locked else [IntegrityError])
    assert Rating.objects.count() == 1


def test_other_double_clicks_are_harmless():
    study = factories.running_study()
    participation = walks.consent(walks.enter(study))
    while (plate := selectors.current_plate(participation)) is not None:
        answer = walks.right_plate_answer(plate)
        results = at_once([lambda plate=plate, answer=answer: answer_plate(participation.pk, plate.token, answer)] * 3)
        assert failures(results) == []
        participation.refresh_from_db()
    assert PlateTrial.objects.filter(answered_at__isnull=False).count() == study.plate_count
    assert failures(at_once([lambda: finish_instructions(participation.pk)] * 3)) == []
    assert participation.pair_trials.count() == study.comprehension_pair_count
    participation.refresh_from_db()
    while (pair := selectors.current_pair(participation)) is not None:
        participation = answers.answer_pair(participation.pk, pair.token, pair.modified_side)
    participation = walks.rate_all(participation)
    results = at_once([lambda: give_feedback(participation.pk, {"comment": "x"})] * 3)
    assert failures(results) == []
    assert Counter(participation.events.values_list("name", flat=True))["ended"] == 1
    assert participation.feedback.count() == 1


def test_what_is_launched_is_what_was_judged_ready(monkeypatch):
    """Somebody takes the consent text away while the study is judged: that has to wait, and then it is too late."""
    study = factories.ready_study()
    judged, changed, judge = threading.Event(), threading.Event(), life.readiness

    def judge_slowly(*asked, **how):
        lines = judge(*asked, **how)
        judged.set()
        changed.wait(timeout=1)
        return lines

    def take_consent_away():
        judged.wait(timeout=30)
        life.update_text(Study.objects.get(pk=study.pk), TextKind.CONSENT, "")
        changed.set()

    monkeypatch.setattr(life, "readiness", judge_slowly)
    launched, refused = at_once([lambda: life.launch(study), take_consent_away])
    assert launched.status == "running"
    assert isinstance(refused, life.StudyStateError)
    assert selectors.study_text(study, TextKind.CONSENT).body


def test_materials_built_by_two_workers_at_once_are_built_once():
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    assert failures(at_once([lambda: build_materials(study.pk)] * 2)) == []
    assert study.datasets.count() == study.dataset_count
    assert life.launch(study).status == "running"
