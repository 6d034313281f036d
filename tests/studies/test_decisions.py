"""Decisions about whether ratings count: what they change, what they leave, and when they are refused."""

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from studies import selectors
from studies.flow import Outcome
from studies.models import Decision, Participation, StudyStatus, Verdict
from studies.pay import amount_due
from studies.selectors.quality import decisions_about, standing_decision, study_quality
from studies.services import life
from studies.services.decisions import DecisionRefused, decide
from studies.services.participations import give_feedback
from tests import factories, walks
from tests.studies.participations import REAL, TEST

pytestmark = pytest.mark.django_db


@pytest.fixture
def author():
    return User.objects.create_user("ada")


def newest(participation):
    decision = Decision.objects.filter(participation=participation).last()
    return decision.pk if decision else None


def decided(participation, verdict, author, reason="Seen in the data", **fields):
    decision = decide(
        participation.pk, verdict, reason=reason, author=author, **{"seen": newest(participation)} | fields
    )
    participation.refresh_from_db()
    return decision


def places(study):
    return [row.valid for row in selectors.monitor(study).datasets], selectors.places_left(study, REAL)


# --- What a decision does -------------------------------------------------------------------------------------


def test_excluding_takes_the_ratings_out_and_leaves_code_outcome_and_pay(
    study, author, heard, django_capture_on_commit_callbacks
):
    participation = walks.complete(study)
    before = Participation.objects.values().get()
    ended_at = participation.validity_changed_at
    with django_capture_on_commit_callbacks(execute=True):
        decision = decided(participation, Verdict.EXCLUDE, author, "Answered in two seconds each")
    assert heard == [(study.attack_id, study.target_model_id)]
    assert participation.validity_changed_at > ended_at
    after = Participation.objects.values().get()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"is_valid", "validity_changed_at"}
    assert (participation.outcome, participation.completion_code.outcome) == (Outcome.COMPLETED, Outcome.COMPLETED)
    assert str(amount_due(Outcome(participation.outcome), study.rates)) == "1.65"
    assert selectors.valid_ratings(study.attack_id, study.target_model_id) == []
    decision.refresh_from_db()
    assert (decision.verdict, decision.reason, decision.author) == ("exclude", "Answered in two seconds each", author)
    assert (decision.counted_before, decision.counts_after, decision.undoes) == (True, False, None)
    assert {finding["rule"]: finding["value"] for finding in decision.findings}["no_difference"] == 100
    assert participation.events.last().detail == {"verdict": "exclude", "ratings_count": False}


def test_exclusion_frees_the_place_for_somebody_else_and_undoing_takes_one_beyond_the_plan(study, author):
    everybody = [walks.complete(study) for _ in range(study.place_count)]
    assert places(study) == ([2, 2], 0)
    decided(everybody[0], Verdict.EXCLUDE, author)
    assert places(study)[1] == 1
    replacement = walks.complete(study)
    assert replacement.dataset_id == everybody[0].dataset_id
    assert places(study) == ([2, 2], 0)
    decided(everybody[0], Verdict.UNDO, author)
    assert everybody[0].is_valid
    valid, left = places(study)
    assert (sorted(valid), left) == ([2, 3], 0)


def test_who_failed_the_checks_can_be_included_with_the_ratings_and_taken_out_again(
    study, author, heard, django_capture_on_commit_callbacks
):
    participation = walks.complete(study, failed_checks=1)
    assert (participation.outcome, participation.is_valid) == (Outcome.ATTENTION_FAILED, False)
    code = participation.completion_code
    with django_capture_on_commit_callbacks(execute=True):
        decided(participation, Verdict.INCLUDE, author, "The instructed item was shown in the wrong language")
    assert participation.is_valid
    assert len(selectors.valid_ratings(study.attack_id, study.target_model_id)[0].values) == 6
    with django_capture_on_commit_callbacks(execute=True):
        decided(participation, Verdict.UNDO, author)
    assert not participation.is_valid
    assert len(heard) == 2
    assert (participation.outcome, participation.completion_code) == (Outcome.ATTENTION_FAILED, code)


def test_undoing_goes_back_one_decision_at_a_time_and_keeps_every_row(study, author):
    participation = walks.complete(study)
    first = decided(participation, Verdict.EXCLUDE, author)
    second = decided(participation, Verdict.INCLUDE, author)
    undo_second = decided(participation, Verdict.UNDO, author)
    assert (undo_second.undoes, participation.is_valid) == (second, False)
    assert standing_decision(decisions_about(participation)) == first
    undo_first = decided(participation, Verdict.UNDO, author)
    assert (undo_first.undoes, participation.is_valid) == (first, True)
    assert standing_decision(decisions_about(participation)) is None
    with pytest.raises(DecisionRefused, match="no decision to undo"):
        decided(participation, Verdict.UNDO, author)
    assert [row.verdict for row in decisions_about(participation)] == ["exclude", "include", "undo", "undo"]


def test_a_decision_is_never_changed(study, author):
    decision = decided(walks.complete(study), Verdict.EXCLUDE, author)
    decision.reason = "Another one"
    with pytest.raises(ValueError, match="never changed"):
        decision.save()
    with pytest.raises(IntegrityError, match="decision_has_a_reason"), transaction.atomic():
        Decision.objects.filter(pk=decision.pk).update(reason="")


# --- The study's policy ---------------------------------------------------------------------------------------


def test_the_policy_excludes_by_the_attention_rule_alone_and_says_so(study):
    passed, failed = walks.complete(study), walks.complete(study, failed_checks=1)
    assert decisions_about(passed) == []
    (decision,) = decisions_about(failed)
    assert (decision.verdict, decision.author, decision.counts_after) == ("exclude", None, False)
    assert decision.reason == "Failed attention checks: 1 (threshold 0)"
    assert failed.events.filter(name="decided").get().detail["by"] == "policy"


def test_what_the_policy_decided_can_be_undone(study, author):
    failed = walks.complete(study, failed_checks=1)
    decided(failed, Verdict.UNDO, author)
    assert failed.is_valid


def test_another_rule_may_exclude_by_the_policy_and_the_place_is_free_again():
    study = factories.running_study(fast_median_rule="exclude", fast_median_seconds="2")
    participation = walks.complete(study)
    assert (participation.outcome, participation.is_valid) == (Outcome.COMPLETED, False)
    assert participation.completion_code.outcome == Outcome.COMPLETED
    assert participation.validity_changed_at is None
    assert decisions_about(participation)[0].reason == "Too fast, median: 1.5 s (threshold 2 s)"
    assert selectors.places_left(study, REAL) == study.place_count


def test_a_policy_that_only_flags_failed_checks_lets_the_ratings_count():
    study = factories.running_study(attention_rule="flag")
    participation = walks.complete(study, failed_checks=1)
    assert (participation.outcome, participation.is_valid) == (Outcome.ATTENTION_FAILED, True)
    assert [finding.rule for finding in study_quality(study)[0].flagged] == ["attention"]


def test_who_was_stopped_at_a_failed_check_left_answers_out_and_never_counts(author):
    study = factories.running_study(attention_rule="flag", attention_policy="end_at_once")
    participation = walks.to_main(study)
    while not participation.outcome:
        trial = walks.current_trial(participation)
        participation = walks.rate(participation, walks.wrong_value(trial) if trial.kind != "image" else None)
    assert (participation.outcome, participation.is_valid) == (Outcome.ATTENTION_FAILED, False)
    with pytest.raises(DecisionRefused, match="left answers out"):
        decided(participation, Verdict.INCLUDE, author)


# --- Each person counts once ----------------------------------------------------------------------------------


def test_who_was_excluded_does_not_count_by_a_second_session(study, author):
    first, second = (walks.to_main(study, participant_id=name, session_id=name) for name in ("p", "q"))
    second.identity.participant_id = "p"  # as older data have it; the pages let nobody in twice
    second.identity.save()
    first = give_feedback(walks.rate_all(first).pk, {})
    decided(first, Verdict.EXCLUDE, author)
    second = give_feedback(walks.rate_all(second).pk, {})
    assert (second.outcome, second.is_valid) == (Outcome.COMPLETED, False)
    decided(second, Verdict.INCLUDE, author)
    with pytest.raises(DecisionRefused, match="counts once"):
        decided(first, Verdict.UNDO, author)
    decided(second, Verdict.UNDO, author)
    decided(first, Verdict.UNDO, author)
    with pytest.raises(DecisionRefused, match=f"participation {str(first.public_id)[:8]}"):
        decided(second, Verdict.INCLUDE, author)
    assert Participation.objects.filter(is_valid=True).count() == 1


# --- What is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "fields", "message"),
    [
        ("exclude", {"reason": "  "}, "Say why"),
        ("exclude", {"reason": "x" * 2001}, "at most 2000"),
        ("include", {}, "count already"),
        ("undo", {}, "no decision to undo"),
        ("forget", {}, "no decision 'forget'"),
        ("exclude", {"seen": 4711}, "no such decision"),
    ],
)
def test_what_cannot_be_decided_changes_nothing(study, author, verdict, fields, message):
    participation = walks.complete(study)
    before = Participation.objects.values().get()
    with pytest.raises(DecisionRefused, match=message):
        decided(participation, verdict, author, **fields)
    assert Participation.objects.values().get() == before
    assert not Decision.objects.exists()


def test_excluding_twice_is_refused_with_what_was_decided(study, author):
    participation = walks.complete(study)
    decided(participation, Verdict.EXCLUDE, author, "Too fast")
    with pytest.raises(DecisionRefused, match="excluded by ada, because “Too fast”"):
        decided(participation, Verdict.EXCLUDE, author, seen=None)
    with pytest.raises(DecisionRefused, match="do not count already"):
        decided(participation, Verdict.EXCLUDE, author)


def test_only_finished_participations_that_count_are_decided_about(study, author):
    running, test = walks.to_main(study), walks.complete(study, TEST)
    failed = walks.answer_plates(walks.consent(walks.enter(study)), wrong=1)
    for participation, message in [(running, "not finished"), (test, "never count"), (failed, "left answers out")]:
        with pytest.raises(DecisionRefused, match=message):
            decided(participation, Verdict.EXCLUDE, author)


def test_an_archived_study_is_left_as_it_is(study, author):
    participation = walks.complete(study)
    life.close(study)
    decided(participation, Verdict.EXCLUDE, author)
    life.archive(study)
    assert study.status == StudyStatus.ARCHIVED
    with pytest.raises(DecisionRefused, match="archived"):
        decided(participation, Verdict.UNDO, author)


def test_copies_take_the_policy_over_and_a_launched_study_keeps_it(study):
    study = factories.running_study(focus_rule="exclude", focus_percent="35")
    copy = life.copy_study(study)
    assert (copy.focus_rule, copy.quality_policy) == ("exclude", study.quality_policy)
    with pytest.raises(life.StudyStateError, match="focus_percent"):
        life.change_settings(study, focus_percent=10)
