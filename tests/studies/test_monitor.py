"""The live page: numbers that are right, cost the same for few and for many, and are for those who may see studies."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone

from studies.admin.monitor import monitor_context
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationEvent, ParticipationKind, Rating
from studies.selectors import live
from studies.services import life
from studies.services.participations import close_timed_out, decline_consent
from tests import factories, walks
from tests.studies.admin_pages import account, text_of

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def study():
    """Everybody the table of steps tells apart, and a test run that it leaves out."""
    study = factories.running_study(participants_per_dataset=5)
    walks.complete(study)
    walks.complete(study, failed_checks=2)
    walks.rate(walks.to_main(study))
    walks.answer_plates(walks.consent(walks.enter(study)), wrong=2)
    walks.answer_pairs(walks.answer_plates(walks.consent(walks.enter(study))), wrong=1)
    decline_consent(walks.enter(study).pk)
    gone = walks.answer_plates(walks.consent(walks.enter(study)))
    away(gone)
    timed_out = walks.to_main(study)
    away(timed_out)
    close_timed_out(timed_out.pk, timezone.now())
    walks.enter(study)
    walks.complete(study, ParticipationKind.TEST)
    return study


def away(participation):
    seen = timezone.now() - timedelta(hours=2)
    Participation.objects.filter(pk=participation.pk).update(last_seen_at=seen, lease_expires_at=seen)


def lines_of(study):
    lines = live.step_lines(study, live.progress_of_all(study), timezone.now())
    return {line.step: (line.reached, line.passed, line.here, line.screened_out, line.left) for line in lines}


def test_each_step_tells_who_is_there_was_screened_out_or_left(study):
    assert lines_of(study) == {
        Step.CONSENT: (9, 7, 1, 0, 1),
        Step.COLOUR_CHECK: (7, 6, 0, 1, 0),
        Step.INSTRUCTIONS: (6, 5, 0, 0, 1),
        Step.COMPREHENSION: (5, 4, 0, 1, 0),
        Step.MAIN: (4, 2, 1, 0, 1),
        Step.FEEDBACK: (2, 2, 0, 0, 0),
    }


def test_who_is_ended_at_once_was_screened_out_in_the_main_study():
    study = factories.running_study(attention_policy="end_at_once")
    participation = walks.rate_all(walks.to_main(study), failed_checks=2)
    assert participation.outcome == Outcome.ATTENTION_FAILED
    assert lines_of(study)[Step.MAIN][:4] in {(1, 0, 0, 1), (1, 1, 0, 0)}


def test_a_study_without_checks_has_no_lines_for_them():
    study = factories.running_study(
        plate_count=0, plates_required=0, comprehension_pair_count=0, comprehension_required=0
    )
    assert list(lines_of(study)) == [Step.CONSENT, Step.INSTRUCTIONS, Step.MAIN, Step.FEEDBACK]


def test_times_are_medians_and_quartiles_per_step_and_in_total():
    study = factories.running_study(participants_per_dataset=5)
    for minutes in (10, 12, 14, 30):
        participation = walks.complete(study)
        Participation.objects.filter(pk=participation.pk).update(started_at=NOON, consented_at=NOON + MINUTE)
        events = ParticipationEvent.objects.filter(participation=participation)
        events.filter(name="colour_check_judged").update(at=NOON + 2 * MINUTE)
        events.filter(name="instructions_read").update(at=NOON + 4 * MINUTE)
        events.filter(name="comprehension_judged").update(at=NOON + 5 * MINUTE)
        Rating.objects.filter(trial__participation=participation).update(answered_at=NOON + minutes * MINUTE)
        events.filter(name="feedback_given").update(at=NOON + (minutes + 1) * MINUTE)
    everybody = live.progress_of_all(study)
    times = {line.step: line.time for line in live.step_lines(study, everybody, timezone.now())}
    assert {step: time.median / MINUTE for step, time in times.items()} == {
        Step.CONSENT: 1,
        Step.COLOUR_CHECK: 1,
        Step.INSTRUCTIONS: 2,
        Step.COMPREHENSION: 1,
        Step.MAIN: 8,  # of 5, 7, 9 and 25
        Step.FEEDBACK: 1,
    }
    main = times[Step.MAIN]
    assert (main.count, main.lower / MINUTE, main.upper / MINUTE) == (4, 6.5, 13)
    total = live.total_times(everybody)
    assert (total.count, total.lower / MINUTE, total.median / MINUTE, total.upper / MINUTE) == (4, 12.5, 14, 19)


def test_quartiles_of_nothing_and_of_one():
    assert live.quartiles([]) is None
    assert live.quartiles([MINUTE]) == live.Quartiles(1, MINUTE, MINUTE, MINUTE)


@pytest.mark.parametrize(
    ("minutes", "width", "counts"),
    [
        ([], 1, []),
        ([0], 1, [1]),
        ([0, 0.5, 3], 1, [2, 0, 0, 1]),
        ([0, 47.9], 1, [1, *[0] * 46, 1]),
        ([0, 4, 5, 48], 5, [2, 1, *[0] * 7, 1]),
        ([0, 60 * 24 * 30], 1440, [1, *[0] * 29, 1]),
    ],
)
def test_arrivals_fall_into_bars_without_holes(minutes, width, counts):
    found = live.arrivals([NOON + minute * MINUTE for minute in minutes])
    assert (found.minutes, [bar.count for bar in found.bars]) == (width, counts)
    if counts:
        assert found.bars[0].start <= NOON
        assert sum(counts) == len(minutes)


def test_wrong_answers_are_counted_for_each_kind_of_check(study):
    rates = {rate.label: (rate.answered, rate.failed) for rate in live.check_rates(study)}
    plates = [numbers for label, numbers in rates.items() if label.startswith("Colour plate")]
    assert sum(answered for answered, _ in plates) == 3 * 7
    assert sum(failed for _, failed in plates) == 2
    pairs = [numbers for label, numbers in rates.items() if label.startswith("Comprehension pair")]
    assert sum(answered for answered, _ in pairs) == 3 * 5
    assert sum(failed for _, failed in pairs) == 1
    attention = [numbers for label, numbers in rates.items() if label.startswith("Attention check: ")]
    assert sum(failed for _, failed in attention) == 2


def test_pay_is_committed_to_who_ended_and_to_come_for_who_may_still_finish(study):
    pay = monitor_context(study)["pay"]
    # Two full runs, one failed colour check, one failed comprehension check.
    assert pay.committed == 2 * Decimal("1.65") + Decimal("0.13") + Decimal("0.32")
    # Of 10 places one is valid and one went to who failed the attention checks.
    assert pay.to_come == 8 * Decimal("1.65")
    assert isinstance(pay.committed, Decimal)
    life.close(study)
    study.refresh_from_db()
    assert monitor_context(study)["pay"].to_come == Decimal("1.65"), "who is inside can finish"


def test_datasets_say_what_is_valid_running_and_open(study):
    datasets = monitor_context(study)["datasets"]
    assert sum(item["dataset"].valid for item in datasets) == 1
    assert sum(item["dataset"].running for item in datasets) == 1
    assert sum(item["open"] for item in datasets) == 8


def test_the_page_says_all_that(client, researcher, study):
    page = text_of(client.get(reverse("admin:studies_study_monitor", args=[study.pk])))
    assert "Valid participants 1 of 10" in page
    assert "Pay due so far GBP 3.75" in page
    assert "Still to come, at most GBP 13.20" in page
    assert "Main study 4 44 % 1 0 1" in page
    assert "Completed 1" in page
    assert "Failed the attention checks 1" in page
    live_part = client.get(reverse("admin:studies_study_monitor_live", args=[study.pk]))
    assert b"<html" not in live_part.content
    assert "Main study 4 44 % 1 0 1" in text_of(live_part)


def test_an_empty_study_has_a_page(client, researcher):
    page = text_of(client.get(reverse("admin:studies_study_monitor", args=[factories.running_study().pk])))
    assert "Nobody has arrived yet." in page
    assert "No check has been answered yet." in page


@pytest.mark.parametrize("page", ["monitor", "monitor_live"])
def test_who_may_not_see_studies_sees_no_numbers_and_nobody_posts(client, researcher, page):
    address = reverse(f"admin:studies_study_{page}", args=[factories.study().pk])
    assert client.post(address).status_code == 405
    client.force_login(account("studies.view_participation"))
    assert client.get(address).status_code == 403


def test_the_numbers_cost_the_same_queries_for_one_and_for_many(client, researcher, django_assert_num_queries):
    study = factories.running_study(participants_per_dataset=10, dataset_count=3)
    walks.complete(study)
    with django_assert_num_queries(10):
        monitor_context(study)
    for _ in range(6):
        walks.complete(study)
    walks.to_main(study)
    with django_assert_num_queries(10):
        monitor_context(study)
