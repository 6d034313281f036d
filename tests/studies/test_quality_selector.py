"""What the rules say about whole studies: live, right, and quick however many people there are."""

import gc
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from imagedb.models import Image
from studies.flow import Outcome, Step
from studies.models import Dataset, Participation, Rating, Trial
from studies.quality import Rule
from studies.selectors.quality import participation_quality, study_quality
from tests import factories, walks
from tests.studies.participations import PREVIEW, TEST

pytestmark = pytest.mark.django_db


def values(quality):
    return {finding.rule: finding.value for finding in quality.findings}


def test_the_values_are_those_of_the_stored_answers_in_the_order_shown():
    study = factories.running_study("field")
    participation = walks.complete(study, failed_checks=1)
    Rating.objects.filter(trial=participation.trials.filter(kind="image").first()).update(
        response_ms=400, focus_losses=2
    )
    (quality,) = study_quality(study)
    assert quality.participation == participation
    measured = values(quality)
    assert measured[Rule.ATTENTION] == 1
    assert measured[Rule.FAST_MEDIAN] == 1.5
    assert measured[Rule.FAST_SHARE] == pytest.approx(100 / 6)
    assert measured[Rule.FOCUS] == pytest.approx(100 / 8)
    assert measured[Rule.LONG_STRING] == 0
    assert measured[Rule.NO_DIFFERENCE] == 100
    assert quality.decision.author is None
    assert participation_quality(participation).findings == quality.findings


def test_they_are_live(study):
    participation = walks.to_main(study)
    assert values(study_quality(study)[0])[Rule.VARIANCE] is None
    while participation.step == Step.MAIN:
        participation = walks.rate(participation, -7)
    measured = values(study_quality(study)[0])
    assert (measured[Rule.VARIANCE], measured[Rule.LONG_STRING], measured[Rule.ATTENTION]) == (0, 100, 2)


def test_times_that_the_server_has_not_seen_pass_do_not_count(study):
    """A program can answer at once, claim any times, and wait elsewhere: here 8 times 1.5 s within 4 s."""
    participation = walks.complete(study)
    last_answer = Rating.objects.latest("answered_at").answered_at
    participation.trials.filter(position=1).update(first_shown_at=last_answer - timedelta(seconds=4))
    Participation.objects.update(last_seen_at=last_answer + timedelta(hours=1))
    for quality in (study_quality(study)[0], participation_quality(participation)):
        assert values(quality)[Rule.FAST_MEDIAN] == pytest.approx(0.5)
        assert values(quality)[Rule.FAST_SHARE] == 100
        assert {finding.rule for finding in quality.flagged} == {Rule.FAST_MEDIAN, Rule.FAST_SHARE}
    # The bots of test runs and demonstrations are known to make them up.
    Participation.objects.update(kind="test")
    assert values(participation_quality(Participation.objects.get()))[Rule.FAST_MEDIAN] == 1.5


def test_test_runs_and_previews_are_left_out_and_demonstrations_have_their_bots(study):
    walks.to_main(study, TEST)
    walks.to_main(study, PREVIEW)
    walks.enter(study)
    assert study_quality(study) == []
    study.is_demo = True
    study.save(update_fields=["is_demo"])
    assert len(study_quality(study)) == 1


def many(study, count, trials_each):
    """Participations with ratings, written directly: what is measured is the reading."""
    now = timezone.now()
    dataset = Dataset.objects.filter(study=study).first()
    images = list(Image.objects.all()[:trials_each])
    assert len(images) == trials_each
    people = Participation.objects.bulk_create(
        Participation(
            study=study, dataset=dataset, step=Step.END, outcome=Outcome.COMPLETED, finished_at=now, is_valid=True
        )
        for _ in range(count)
    )
    trials = Trial.objects.bulk_create(
        (
            Trial(participation=person, position=position, image=image)
            for person in people
            for position, image in enumerate(images, start=1)
        ),
        batch_size=2000,
    )
    Rating.objects.bulk_create(
        (
            Rating(
                trial=trial,
                value=trial.position % 200 - 100,
                response_ms=2000,
                first_interaction_ms=500,
                focus_losses=0,
            )
            for trial in trials
        ),
        batch_size=2000,
    )


def test_a_whole_study_takes_four_queries_however_many_people(study, django_assert_num_queries):
    many(study, 2, 6)
    with django_assert_num_queries(4):
        assert len(study_quality(study)) == 2
    many(study, 10, 6)
    with django_assert_num_queries(4):
        assert len(study_quality(study)) == 12


def seconds(call) -> float:
    """Processor time of the quickest of five calls, without the collector, which reads the whole process's objects."""
    gc.disable()
    try:
        return min(_timed(call) for _ in range(5))
    finally:
        gc.enable()


def _timed(call) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def test_the_time_grows_with_the_number_of_people_and_not_faster():
    # The bar in seconds, for 690 people, is measured by bench/study_exports.py: a test runs on any machine.
    study = factories.running_study(dataset_count=9, clean_per_dataset=6, modified_per_dataset=6)
    many(study, 20, 106)
    few = seconds(lambda: study_quality(study))
    many(study, 180, 106)
    assert len(study_quality(study)) == 200
    assert seconds(lambda: study_quality(study)) < 25 * few
