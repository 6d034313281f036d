"""Consenting and declining, and the window a study asks for."""

import pytest

from studies.flow import Outcome, Step
from studies.services import entering
from studies.services.participations import Device, DeviceNotSuitable, accept_consent, decline_consent
from tests import factories, walks
from tests.studies.participations import PREVIEW, REAL, TEST

pytestmark = pytest.mark.django_db


def test_declining_ends_with_its_own_code(study, heard):
    participation = decline_consent(walks.enter(study).pk)
    assert (participation.step, participation.outcome, participation.is_valid) == (Step.END, Outcome.DECLINED, False)
    assert participation.completion_code.outcome == Outcome.DECLINED
    assert participation.consented_at is None
    assert heard == []


def test_consenting_twice_changes_nothing(study):
    participation = walks.consent(walks.enter(study))
    order = list(participation.trials.values_list("token", flat=True))
    again = accept_consent(participation.pk, Device(1, 1, 1.0))
    assert (again.viewport_width, again.dataset_id) == (1280, participation.dataset_id)
    assert list(again.trials.values_list("token", flat=True)) == order
    assert again.plate_trials.count() == 3


def test_a_consent_that_was_cut_short_is_taken_up_again(study, monkeypatch):
    participation = walks.enter(study)

    def lose_the_database(participation):
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(entering, "make_trials", lose_the_database)
        with pytest.raises(ConnectionError):
            walks.consent(participation)
    participation.refresh_from_db()
    assert participation.step == Step.CONSENT
    dataset_id = participation.dataset_id
    participation = walks.consent(participation)
    assert (participation.step, participation.dataset_id) == (Step.COLOUR_CHECK, dataset_id)


@pytest.mark.parametrize("ratio", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_strange_pixel_ratio_is_no_obstacle(study, ratio):
    participation = accept_consent(walks.enter(study).pk, Device(800, 500, ratio))
    assert (participation.viewport_width, participation.viewport_height) == (800, 500)
    assert participation.device_pixel_ratio is None


@pytest.mark.parametrize("kind", [REAL, TEST])
@pytest.mark.parametrize(
    ("width", "height", "reason"),
    [
        (799, 500, "window_too_small"),
        (800, 499, "window_too_small"),
        (0, 900, "window_too_small"),
        (None, 900, "not_measured"),
        (1440, None, "not_measured"),
        (-5, 900, "not_measured"),
        (1440, 10**6, "not_measured"),
    ],
)
def test_a_window_that_does_not_show_the_images_takes_no_place_and_may_try_again(study, kind, width, height, reason):
    participation = walks.enter(study, kind)
    with pytest.raises(DeviceNotSuitable) as refusal:
        accept_consent(participation.pk, Device(width, height, 1.0))
    assert refusal.value.reason == reason
    participation.refresh_from_db()
    assert (participation.step, participation.dataset, participation.consented_at) == (Step.CONSENT, None, None)
    assert walks.consent(participation).step == Step.COLOUR_CHECK


def test_phones_that_are_allowed_only_have_to_be_measured():
    study = factories.running_study(phones_allowed=True)
    with pytest.raises(DeviceNotSuitable):
        accept_consent(walks.enter(study).pk, Device(None, None, None))
    assert accept_consent(walks.enter(study).pk, Device(390, 844, 3.0)).step == Step.COLOUR_CHECK


def test_a_preview_may_be_looked_at_in_any_window(study):
    assert accept_consent(walks.enter(study, PREVIEW).pk, Device(None, None, None)).step == Step.COLOUR_CHECK
