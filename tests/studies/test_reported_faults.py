"""What went wrong in other people's study software, replayed here through the pages.

Faults that have a file of their own are elsewhere: sessions in test_pages_arriving, untouched scales and repeats in
test_pages_rating, broken links in test_pages_landing, check positions in test_order, races in tests/concurrency.
"""

import re
from collections import Counter
from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from studies import selectors, tasks
from studies.flow import Outcome, Step
from studies.models import CompletionCode, Participation, ParticipationKind, Rating, Trial
from studies.services import rating as rating_service
from studies.services.participations import StudyFull, return_participation
from tests import factories, walks
from tests.studies.visitor import PROLIFIC_LINK, SESSION, Visitor, assert_step, assert_to_run

pytestmark = pytest.mark.django_db


def test_a_returned_session_frees_its_images_and_every_image_is_rated_as_often_as_planned():
    """Returns on the panel went unnoticed: places stayed occupied, and replacements had nowhere to go."""
    study = factories.running_study(
        dataset_count=5, clean_per_dataset=2, modified_per_dataset=2, corrupted_check_count=1,
        instructed_check_count=0, plate_count=0, plates_required=0, comprehension_pair_count=0,
        comprehension_required=0,
    )  # fmt: skip
    assert study.place_count == 10
    first = [walks.consent(walks.enter(study)) for _ in range(10)]
    for participation in first[:3]:
        walks.finish_instructions(participation.pk)
        for _ in range(4):
            walks.rate(Participation.objects.get(pk=participation.pk))
        return_participation(participation.pk)
        assert return_participation(participation.pk).outcome == Outcome.RETURNED
    replacements = [walks.consent(walks.enter(study)) for _ in range(3)]
    with pytest.raises(StudyFull):
        walks.enter(study)
    assert Counter(each.dataset_id for each in replacements) == Counter(each.dataset_id for each in first[:3])
    for participation in first[3:] + replacements:
        walks.give_feedback(walks.rate_all(walks.finish_instructions(participation.pk)).pk, {})
    (ratings,) = selectors.valid_ratings(study.attack_id, study.target_model_id)
    assert set(Counter(ratings.image_ids.tolist()).values()) == {2}
    assert len(set(ratings.image_ids.tolist())) == 20
    assert Rating.objects.filter(trial__participation__outcome=Outcome.RETURNED).count() == 12, "nothing is deleted"


def test_a_submission_returned_after_the_end_is_put_on_record_and_changes_no_page(study):
    done = walks.complete(study)
    assert return_participation(done.pk).outcome == Outcome.COMPLETED
    done.refresh_from_db()
    assert (done.is_valid, done.events.last().name) == (True, "returned_after_the_end")


def test_who_is_screened_out_is_in_progress_nowhere_whatever_they_submit_on_the_panel(prolific_study):
    """Told to return, they submitted with a code of their own; the row stayed in progress, and the study hung."""
    visitor = Visitor(prolific_study)
    walks.answer_plates(visitor.at(Step.COLOUR_CHECK), wrong=1)
    ended = visitor.participation
    assert (ended.step, ended.outcome, ended.lease_expires_at) == (Step.END, Outcome.COLOUR_CHECK_FAILED, None)
    assert selectors.places_left(prolific_study, ParticipationKind.REAL) == prolific_study.place_count
    assert not selectors.unfinished_participations(timezone.now() + timedelta(days=2)).exists()
    for _ in range(2):  # the panel says afterwards that the submission was returned, and says it twice
        assert return_participation(ended.pk).outcome == Outcome.COLOUR_CHECK_FAILED
    assert ended.events.last().name == "returned_after_the_end", "for a person to decide"
    assert ended.completion_code.code in visitor.page().content.decode()


def test_who_never_reached_the_panel_finds_the_same_code_and_link_again(prolific_study):
    """The redirect was blocked, the platform never heard of the submission, and the place was given to another."""
    visitor = Visitor(prolific_study)
    visitor.at(Step.END)
    first = visitor.page().content.decode()
    later = Visitor(prolific_study, Client())
    assert later.land(**PROLIFIC_LINK).status_code == 302
    again = later.page().content.decode()
    link = re.search(r'href="(https://app\.prolific\.com/submissions/complete\?cc=\w+)"', first).group(1)
    assert f'href="{link}"' in again
    assert Participation.objects.get().is_valid, "the place stays taken"


def test_a_reload_after_twenty_ratings_loses_none_of_them():
    """The first save after a reload replaced what had been saved before."""
    study = factories.running_study(clean_per_dataset=12, modified_per_dataset=12)
    visitor = Visitor(study)
    visitor.at(Step.MAIN)
    state = visitor.page().context["data"]
    for value in range(20):
        state = visitor.rate(state["trial"]["token"], value).json()
    state = visitor.page().context["data"]
    assert state["trial"]["position"] == 21
    visitor.rate(state["trial"]["token"], 20)
    stored = Rating.objects.order_by("trial__position").values_list("value", flat=True)
    assert list(stored) == list(range(21))


def test_the_end_page_and_its_code_come_only_when_the_last_rating_is_stored(prolific_study, monkeypatch):
    """The link back to the panel appeared before the upload had ended, and data was cut."""
    code = CompletionCode.objects.get(study=prolific_study, outcome=Outcome.COMPLETED).code
    visitor = Visitor(prolific_study)
    participation = visitor.at(Step.MAIN)
    for _ in range(prolific_study.trial_count - 1):
        walks.rate(participation)
    last = walks.current_trial(participation)
    right = walks.right_value(last)

    def fail(*arguments):
        raise DatabaseError("The database is away.")

    with monkeypatch.context() as patched:
        patched.setattr(rating_service, "move", fail)
        with pytest.raises(DatabaseError):
            visitor.rate(last.token, right)
    assert not Rating.objects.filter(trial=last).exists(), "half a rating was stored"
    for step in (Step.FEEDBACK, Step.END):
        assert_to_run(visitor.post(step.value), prolific_study)
    page = visitor.page()
    assert_step(page, Step.MAIN)
    assert code not in page.content.decode()
    assert visitor.rate(last.token, right).json()["trial"] is None
    assert code not in visitor.page().content.decode()
    visitor.post("feedback")
    assert code in visitor.page().content.decode()


def test_zero_is_an_answer_wherever_it_passes():
    """A start position of 0 was taken for none, and an answer of 0 for no answer."""
    study = factories.running_study(scale_minimum=0, scale_maximum=100, may_go_back=True)
    visitor = Visitor(study)
    visitor.at(Step.MAIN)
    token = visitor.page().context["data"]["trial"]["token"]
    following = visitor.rate(token, 0, start_position=0, first_interaction_ms=0, response_ms=0).json()["trial"]
    rating = Rating.objects.get()
    assert (rating.value, rating.start_position, rating.first_interaction_ms, rating.response_ms) == (0, 0, 0, 0)
    assert following["position"] == 2, "answered, so the next item is current"
    assert visitor.page().context["data"]["trial"]["position"] == 2
    assert Trial.objects.filter(rating__isnull=True).count() == study.trial_count - 1


def test_a_session_that_expires_in_the_middle_keeps_its_answers_and_has_a_clear_end(prolific_study):
    """Answers were gone after a session had timed out."""
    visitor = Visitor(prolific_study)
    participation = visitor.at(Step.MAIN)
    for _ in range(5):
        walks.rate(participation)
    Participation.objects.update(last_seen_at=timezone.now() - timedelta(hours=25))
    tasks.close_timed_out_participations()
    assert Rating.objects.count() == 5
    assert visitor.land(**PROLIFIC_LINK).status_code == 302
    page = visitor.page().content.decode()
    assert f'data-outcome="{Outcome.TIMED_OUT}"' in page
    assert Participation.objects.get().identity.session_id == SESSION


def test_a_code_tells_staff_how_somebody_ended(study):
    """All outcomes had one code, which told nothing when it came back from the panel."""
    outcomes = {}
    outcomes[Outcome.COMPLETED] = walks.complete(study)
    outcomes[Outcome.ATTENTION_FAILED] = walks.complete(study, failed_checks=1)
    outcomes[Outcome.COLOUR_CHECK_FAILED] = walks.answer_plates(walks.consent(walks.enter(study)), wrong=1)
    outcomes[Outcome.COMPREHENSION_FAILED] = walks.answer_pairs(
        walks.answer_plates(walks.consent(walks.enter(study))), wrong=1
    )
    for outcome, participation in outcomes.items():
        code = participation.completion_code.code
        assert CompletionCode.objects.get(study=study, code=code).outcome == outcome
