"""The page about one participant: timeline with gaps, checks, every rating with its times, and no panel ids."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from scooter_site.common.admin_tools import change_url
from studies.admin.event_words import event_in_words
from studies.admin.participation_report import in_words, report
from studies.models import ParticipationEvent, Rating, RatingChange, TrialKind
from studies.services.messages import send_message
from tests import factories, walks
from tests.studies.admin_pages import text_of

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def spread_out(participation, gap_after=2):
    """Give every event 5 s and every rating 5 s after the one before, with 10 minutes after rating ``gap_after``."""
    at = NOON
    for event in ParticipationEvent.objects.filter(participation=participation).exclude(name="ended").order_by("id"):
        ParticipationEvent.objects.filter(pk=event.pk).update(at=at)
        at += timedelta(seconds=5)
    ratings = Rating.objects.filter(trial__participation=participation).order_by("trial__position")
    for number, rating in enumerate(ratings, start=1):
        Rating.objects.filter(pk=rating.pk).update(answered_at=at)
        at += timedelta(minutes=10) if number == gap_after else timedelta(seconds=5)


def test_the_timeline_has_events_runs_of_ratings_and_gaps(client, researcher):
    participation = walks.to_main(factories.running_study())
    for _ in range(4):
        participation = walks.rate(participation)
    spread_out(participation)
    lines = report(participation)["timeline"]
    words = [line.get("words") for line in lines]
    assert words[:4] == ["Entered", "Consented", "Colour plate 1 answered", "Colour plate 2 answered"]
    assert words[-4:] == ["Comprehension check, try 1: 3 of 3 right", None, None, None]
    assert [line.get("ratings") or line.get("gap") for line in lines[-3:]] == [2, "10 min 00 s", 2]
    page = text_of(client.get(change_url(participation)))
    assert re.search(r"Mar 2026 12:\d\d:\d\d 2 items rated until 12:\d\d:\d\d Nothing for 10 min 00 s 1 Mar 2026", page)


@pytest.mark.parametrize(
    ("name", "detail", "words"),
    [
        ("entered", {}, "Entered"),
        ("returned_on_the_panel", {}, "Returned on the panel"),
        ("colour_check_judged", {"right": 0, "of": 5}, "Colour check: 0 of 5 right"),
        ("pair_answered", {"attempt": 1, "position": 2}, "Pair 2 answered, in try 1"),
        ("feedback_given", {"items": 0}, "Feedback given: 0 answered"),
        ("came_back", {"step": "main"}, "Came back, at: Main study"),
        ("ended", {"outcome": "completed"}, "Ended: Completed"),
        ("began_again", {"after": "timed_out"}, "Began again, after: Timed out"),
        (
            "decided",
            {"verdict": "exclude", "ratings_count": False, "by": "policy"},
            "Excluded, by the study's rules: the ratings do not count",
        ),
        ("decided", {"verdict": "undo", "ratings_count": True}, "Undone: the ratings count"),
        (
            "submission_settled",
            {"reason": "no_code", "decision": "request_return", "by": "mary"},
            "Submission decided by mary: Submitted without a code. Ask to return",
        ),
        ("submission_unsettled", {"decision": "approve"}, "Decision taken back: Approve: pay the full reward"),
        ("payment_bonus", {"amount_minor": 5}, "Payment (bonus): GBP 0.05"),
        ("something_of_later", {"at_once": 0}, "Something of later: at once 0"),
    ],
)
def test_what_happened_is_told_in_plain_words(name, detail, words):
    assert event_in_words(ParticipationEvent(name=name, detail=detail), "GBP") == words


def test_every_rating_has_its_times_and_each_check_its_result(client, researcher):
    study = factories.running_study()
    participation = walks.rate_all(walks.to_main(study), failed_checks=1)
    rated = participation.trials.get(position=3)
    Rating.objects.filter(trial=rated).update(
        value=-37,
        response_ms=4321,
        first_interaction_ms=1200,
        last_interaction_ms=3900,
        visible_ms=4100,
        focus_losses=2,
        shown_width=640,
        shown_height=480,
        answered_at=NOON,
    )
    RatingChange.objects.create(rating=rated.rating, value=12, answered_at=NOON)
    page = text_of(client.get(change_url(participation)))
    check = "" if rated.kind == TrialKind.IMAGE else "(passed|failed) "
    assert re.search(rf"-37 \(before: 12\) {check}12:00:00 1\.2 3\.9 4\.3 4\.1 2 640 × 480", page)
    assert "Window left 2 times" in page
    for line in report(participation)["trials"]:
        assert (line["passed"] is None) == (line["trial"].kind == TrialKind.IMAGE)
    first_check = participation.trials.exclude(kind=TrialKind.IMAGE).order_by("position").first()
    assert first_check.position in report(participation)["failed_checks"] or first_check == rated
    assert "failed" in page
    assert "Attention check: corrupted image" in page
    assert "Attention check: instructed response" in page


def test_messages_are_beside_what_happened(client, researcher):
    participation = walks.to_main(factories.running_study())
    send_message(participation.pk, "The slider does not move.")
    page = text_of(client.get(change_url(participation)))
    assert "Main study Open The slider does not move." in page


def test_no_panel_ids_without_the_permission(client, viewer, researcher):
    participation = walks.complete(factories.running_study(), participant_id="panel-person", session_id="panel-session")
    for user in (viewer, researcher):
        client.force_login(user)
        page = client.get(change_url(participation)).content.decode()
        assert str(participation.public_id) in page
        assert "panel-person" not in page
        assert "panel-session" not in page


def test_the_page_costs_the_same_for_a_short_and_a_long_run(client, researcher, django_assert_max_num_queries):
    def queries(participation):
        with django_assert_max_num_queries(60) as captured:
            assert client.get(change_url(participation)).status_code == 200
        return len(captured)

    short = walks.rate(walks.to_main(factories.running_study()))
    long = walks.rate_all(walks.to_main(factories.running_study(clean_per_dataset=8, modified_per_dataset=8)))
    assert queries(short) == queries(long)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 min 00 s"), (65, "1 min 05 s"), (3599, "59 min 59 s"), (90_000, "25 h 00 min")]
)
def test_spans_in_words(seconds, words):
    assert in_words(timedelta(seconds=seconds)) == words
