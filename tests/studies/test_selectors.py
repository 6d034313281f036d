"""What a participant may see, and the ratings that count."""

import numpy as np
import pytest

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationKind, Stimulus, StimulusPurpose, Study, TrialKind
from studies.selectors.counting import countable, counts
from studies.selectors.pictures import picture_in_sight
from studies.services.participations import (
    answer_pair,
    answer_plate,
    decline_consent,
    finish_instructions,
    give_feedback,
)
from tests import factories, walks

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return factories.running_study()


# --- What a participant may see -------------------------------------------------------------------------------


def test_nothing_is_current_outside_its_step(study):
    participation = walks.enter(study)
    found = [selectors.current_plate(participation), selectors.current_pair(participation)]
    found += [walks.current_trial(participation)]
    assert found == [None, None, None]
    assert selectors.progress(participation) == selectors.Progress(done=0, total=0)


def test_images_may_be_seen_up_to_three_items_ahead(study):
    participation = walks.to_main(study)
    second = with_second_pictures(participation)
    while participation.step == Step.MAIN:
        current = walks.current_trial(participation)
        trials = list(participation.trials.all())
        for trial in trials:
            may_see = trial.position <= current.position + 3
            assert sent(participation, trial) == (file_of(trial) if may_see else None)
            assert sent(participation, trial, "trial-second") == (second if may_see else None)
        assert selectors.progress(participation) == selectors.Progress(current.position - 1, study.trial_count)
        participation = walks.rate(participation)
    assert not any(sent(participation, trial, kind) for trial in trials for kind in TRIAL_PICTURES)


TRIAL_PICTURES = ("trial", "trial-second")


def with_second_pictures(participation):
    """Have every item show another image beside its own; gives that image's file."""
    image = participation.study.attack.images.first()
    participation.trials.update(parameters={"second_image": image.pk})
    return image.rendition.storage, image.rendition.name


def sent(participation, trial, kind="trial"):
    picture = picture_in_sight(kind, participation.public_id, participation.study.slug, trial.token)
    return picture and (picture.storage, picture.name)


def file_of(trial):
    shown = trial.image.rendition if trial.image else trial.stimulus.file if trial.stimulus else None
    return shown and (shown.storage, shown.name)


def test_images_are_for_their_own_participant_in_the_main_study_only(study):
    participation, other = walks.to_main(study), walks.to_main(study)
    early = walks.consent(walks.enter(study))
    for each in (other, early):
        with_second_pictures(each)
    with_picture = other.trials.exclude(kind="instructed").first()
    for kind in TRIAL_PICTURES:
        assert sent(other, with_picture, kind)
        assert not sent(participation, with_picture, kind)
        assert not picture_in_sight(kind, other.public_id, "another-study", with_picture.token)
        assert not sent(early, early.trials.exclude(kind="instructed").first(), kind)


def test_pictures_of_checks_are_for_their_own_participant_and_for_the_one_to_answer_now(study):
    """Whatever is asked for at whatever step: the plate, pair or example that is on the screen, and nothing else."""
    participation, other = walks.enter(study), walks.to_main(study)
    seen = set()
    while participation.step != Step.MAIN:
        expected = on_screen(participation)
        asked = {
            *(("plate", trial.token) for trial in participation.plate_trials.all()),
            *((side, trial.token) for trial in participation.pair_trials.all() for side in ("pair-left", "pair-right")),
            *(("example", example.token) for example in examples(study)),
        }
        assert expected.keys() <= asked
        for kind, token in asked:
            picture = picture_in_sight(kind, participation.public_id, study.slug, token)
            assert (picture and (picture.storage, picture.name)) == expected.get((kind, token)), (
                kind,
                participation.step,
            )
            assert not picture_in_sight(kind, other.public_id, study.slug, token)
            assert not picture_in_sight(kind, participation.public_id, "another-study", token)
            assert not picture_in_sight("trial", participation.public_id, study.slug, token)
        seen |= {kind for kind, _ in expected}
        participation = onward(participation)
    assert seen == {"plate", "pair-left", "pair-right", "example"}
    assert not picture_in_sight("no-such-kind", other.public_id, study.slug, other.trials.first().token)


def test_pictures_of_an_earlier_attempt_at_the_pairs_are_past():
    study = factories.running_study(comprehension_tries=2)
    participation = walks.answer_pairs(walks.answer_plates(walks.consent(walks.enter(study))), wrong=99)
    assert (participation.step, participation.comprehension_attempt) == (Step.INSTRUCTIONS, 2)
    participation = finish_instructions(participation.pk)
    for pair in participation.pair_trials.all():
        is_current = pair == selectors.current_pair(participation)
        assert is_current == bool(picture_in_sight("pair-left", participation.public_id, study.slug, pair.token))
    assert selectors.current_pair(participation).attempt == 2


def onward(participation):
    """One answer further, before the main study."""
    match participation.step:
        case Step.CONSENT:
            return walks.consent(participation)
        case Step.COLOUR_CHECK:
            plate = selectors.current_plate(participation)
            return answer_plate(participation.pk, plate.token, walks.right_plate_answer(plate))
        case Step.INSTRUCTIONS:
            return finish_instructions(participation.pk)
        case Step.COMPREHENSION:
            pair = selectors.current_pair(participation)
            return answer_pair(participation.pk, pair.token, pair.modified_side)


def on_screen(participation):
    """The files that the participant's page shows, by kind of address and token."""
    files = {}
    if plate := selectors.current_plate(participation):
        files["plate", plate.token] = plate.plate.file
    if pair := selectors.current_pair(participation):
        is_left = pair.modified_side == "left"
        files["pair-left", pair.token] = (pair.modified_stimulus if is_left else pair.clean_stimulus).file
        files["pair-right", pair.token] = (pair.clean_stimulus if is_left else pair.modified_stimulus).file
    if participation.step == Step.INSTRUCTIONS:
        files |= {("example", example.token): example.file for example in examples(participation.study)}
    return {key: (file.storage, file.name) for key, file in files.items()}


def examples(study):
    return Stimulus.objects.filter(study=study, purpose=StimulusPurpose.EXAMPLE)


# --- Ratings that count ---------------------------------------------------------------------------------------


def test_ratings_count_once_valid_and_only_of_images(study):
    walks.complete(study)
    walks.complete(study, failed_checks=1)
    walks.complete(study, ParticipationKind.TEST)
    walks.rate(walks.to_main(study))
    (ratings,) = selectors.valid_ratings(study.attack_id, study.target_model_id)
    assert (ratings.scale_minimum, ratings.scale_maximum, ratings.is_demo) == (-100, 100, False)
    assert len(ratings.values) == 6
    assert len(set(ratings.participation_ids)) == 1
    assert list(ratings.values) == [100 if modified else -100 for modified in ratings.is_modified]
    assert ratings.is_modified.sum() == 3
    changed = Participation.objects.filter(validity_changed_at__isnull=False)
    assert {(each.kind, each.is_valid, each.validity_changed_at == each.finished_at) for each in changed} == {
        ("real", True, True),
        ("test", True, True),
    }


def test_orientation_is_higher_for_modified_whatever_the_direction():
    study = factories.running_study("field")
    participation = walks.to_main(study)
    given = {}
    for value in [2, 1, 0, -1, -2, -2, 0, 0]:
        trial = walks.current_trial(participation)
        if trial.kind == TrialKind.IMAGE:
            given[trial.image_id] = value
            participation = walks.answer(participation, trial.token, value)
        else:
            participation = walks.rate(participation)
    give_feedback(participation.pk, {})
    (ratings,) = selectors.valid_ratings(study.attack_id, study.target_model_id)
    assert dict(zip(ratings.image_ids, ratings.values, strict=True)) == {
        image_id: -value for image_id, value in given.items()
    }
    assert 0 in given.values()


def test_each_scale_is_apart_and_studies_of_a_pair_on_one_scale_are_together(study):
    pair = {"attack": study.attack, "target_model": study.target_model}
    studies = [study, factories.running_study("field", **pair)]
    studies.append(factories.running_study("field", **pair, scale_direction="higher_is_modified"))
    for each in studies:
        walks.complete(each)
    walks.complete(factories.running_study())
    found = {
        (ratings.scale_minimum, ratings.scale_maximum): ratings
        for ratings in selectors.valid_ratings(study.attack_id, study.target_model_id)
    }
    assert set(found) == {(-100, 100), (-2, 2)}
    likert = found[-2, 2]
    assert len(set(likert.participation_ids)) == 2
    assert np.array_equal(likert.values, np.where(likert.is_modified, 2, -2))


def test_test_data_count_in_a_demonstration_only():
    study = factories.running_study(is_demo=True)
    walks.complete(study, ParticipationKind.TEST)
    (ratings,) = selectors.valid_ratings(study.attack_id, study.target_model_id)
    assert ratings.is_demo
    assert selectors.countable_participations(study).count() == 1


@pytest.mark.parametrize("is_demo", [False, True])
def test_what_counts_is_the_same_by_every_way(is_demo):
    study = factories.running_study(is_demo=is_demo)
    for kind in ParticipationKind:
        walks.enter(study, kind)
    expected = {"real", "test"} if is_demo else {"real"}
    assert set(Participation.objects.filter(countable()).values_list("kind", flat=True)) == expected
    assert Study.objects.filter(countable("participations__")).count() == len(expected)
    assert {each.kind for each in Participation.objects.all() if counts(each)} == expected


def test_a_pair_without_ratings_has_none(study):
    walks.to_main(study)
    assert selectors.valid_ratings(study.attack_id, study.target_model_id) == []


# --- Monitor --------------------------------------------------------------------------------------------------


def test_the_monitor_counts_what_counts(study, django_assert_max_num_queries):
    walks.complete(study)
    walks.to_main(study)
    walks.enter(study)
    decline_consent(walks.enter(study).pk)
    walks.complete(study, ParticipationKind.TEST)
    walks.to_main(study, ParticipationKind.PREVIEW)
    with django_assert_max_num_queries(6):
        found = selectors.monitor(study)
    assert {step: count for step, count in found.by_step.items() if count} == {"main": 1, "consent": 1}
    assert {outcome: count for outcome, count in found.by_outcome.items() if count} == {"completed": 1, "declined": 1}
    assert set(found.by_outcome) == set(Outcome)
    assert sorted((row.valid, row.running) for row in found.datasets) == [(0, 1), (1, 0)]
    assert (found.planned_participations, found.place_count, found.places_taken) == (4, 4, 2)
    assert (found.valid_participations, found.valid_ratings, found.test_participations) == (1, 6, 1)
