"""The life of a study, and what a launch freezes."""

import re
from decimal import Decimal

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from studies import links, selectors
from studies.flow import Outcome
from studies.models import ColourPlate, DatasetImage, Study, StudyStatus, TextKind
from studies.presets import PRESETS, TEXT_PLACEHOLDERS, placeholder_problem
from studies.selectors import readiness
from studies.services import life, materials
from studies.services.life import StudyStateError
from tests import factories

pytestmark = pytest.mark.django_db


def study_in(status):
    study = factories.study()
    Study.objects.filter(pk=study.pk).update(status=status)
    study.refresh_from_db()
    return study


# --- Presets --------------------------------------------------------------------------------------------------


def create(preset, **overrides):
    return life.create_study_from_preset(
        preset=preset,
        attack=factories.attack(),
        target_model=factories.target_model(),
        **{"title": "Study", "slug": "rate-images", **overrides},
    )


def test_the_papers_preset():
    study = create("paper")
    assert (study.scale_widget, study.scale_minimum, study.scale_maximum) == ("slider", -100, 100)
    assert study.rating_scale.higher_is_modified
    assert (study.dataset_count, study.clean_per_dataset, study.modified_per_dataset) == (60, 50, 50)
    assert (study.planned_participations, study.place_count, study.trial_count) == (600, 690, 106)
    assert (study.plate_count, study.plates_required) == (5, 5)
    assert (study.comprehension_pair_count, study.comprehension_required, study.comprehension_tries) == (6, 5, 1)
    assert (study.corrupted_check_count, study.instructed_check_count) == (3, 3)
    assert (study.hourly_rate, study.minutes_complete) == (Decimal("7.60"), Decimal(13))
    assert study.status == StudyStatus.DRAFT


def test_the_field_preset_has_the_opposite_direction():
    study = create("field")
    assert (study.scale_widget, study.scale_minimum, study.scale_maximum) == ("likert", -2, 2)
    assert not study.rating_scale.higher_is_modified
    assert (study.label_minimum, study.label_maximum) == ("Definitely modified", "Definitely real")
    assert study.instructed_tolerance == 0


@pytest.mark.parametrize("preset", PRESETS)
def test_a_new_study_has_texts_and_a_code_per_outcome(preset):
    study = create(preset)
    assert set(study.texts.values_list("kind", "version")) == {(kind.value, 1) for kind in TextKind}
    codes = dict(study.completion_codes.values_list("outcome", "code"))
    # Nobody takes a code back from a session that was left for another, or that was given back.
    assert set(codes) == set(Outcome) - {Outcome.REPLACED, Outcome.RETURNED}
    assert all(re.fullmatch("[A-HJ-NP-Z2-9]{8}", code) for code in codes.values())
    assert codes.values() != dict(create(preset, slug="other").completion_codes.values_list("outcome", "code")).values()


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_placeholders_in_texts_are_known_and_filled_in(preset):
    study = create(preset.name, contact_email="lab@example.org")
    for body in preset.texts.values():
        assert set(re.findall(r"\{\w+\}", body)) <= set(TEXT_PLACEHOLDERS)
        assert not re.search(r"[{}]", selectors.render_text(study, body))
    consent = selectors.render_text(study, preset.texts["consent"])
    for needed in ("lab@example.org", "GBP 1.65", "13 minutes", "106 images", "voluntary", "deleted", "We keep"):
        assert needed in consent
    kept = consent.split("We keep")[1].split("We do not ask")[0]
    for stored in (
        "by your browser's",
        "how long",
        "how often you left",
        "size of the window",
        "of the images on",
        "ids",
    ):
        assert stored in kept
    assert "pixel ratio" in kept


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("{pay} for {minutes} minutes", []),
        ("0", []),
        ("{pya} or {pya}, {}", ["{pya}", "{}"]),
        ("{ pay } {PAY} {{pay}}", ["{ pay }", "{PAY}", "{}"]),
        ("{pay, pay} at\nthe end{", ["{pay, pay}", "{"]),
    ],
)
def test_only_known_placeholders_are_taken(body, named):
    assert re.findall("“(.*?)”", placeholder_problem(body)) == named
    study = create("paper")
    if named:
        with pytest.raises(ValidationError, match="as it stands"):
            life.update_text(study, TextKind.CONSENT, body)
    else:
        assert life.update_text(study, TextKind.CONSENT, body).version == 2


def test_every_placeholder_is_filled_in():
    study = create("paper", contact_email="lab@example.org")
    rendered = selectors.render_text(study, " | ".join(TEXT_PLACEHOLDERS))
    assert rendered == (
        "lab@example.org | 13 | GBP 1.65 | 106 | I am 100% certain that this image is unmodified | "
        "I am 100% certain that this image is modified"
    )


def test_one_minute_is_not_several():
    study = create("paper", minutes_complete=Decimal(1))
    assert selectors.render_text(study, "It takes {minutes} minutes.") == "It takes 1 minute."


@pytest.mark.parametrize(
    ("settings", "minutes"),
    [
        ({}, "10.5"),
        ({"comprehension_pair_count": 0, "comprehension_required": 0}, "12"),
        ({"comprehension_pair_count": 0, "comprehension_required": 0, "plate_count": 0, "plates_required": 0}, "13"),
        ({"minutes_complete": Decimal(2)}, "2"),
    ],
)
def test_the_minutes_of_the_ratings_are_those_left_after_the_checks(settings, minutes):
    assert create("paper", **settings).minutes_of_ratings == Decimal(minutes)


def test_settings_that_do_not_fit_together_are_refused():
    with pytest.raises(ValidationError):
        create("paper", plates_required=6)
    with pytest.raises(ValidationError):
        create("paper", scale_minimum=100)
    assert not Study.objects.exists()


# --- Texts and settings ---------------------------------------------------------------------------------------


def test_an_edited_text_is_a_new_version():
    study = factories.study()
    assert life.update_text(study, TextKind.QUESTION, "Modified?").version == 2
    assert life.update_text(study, TextKind.QUESTION, "Modified?").version == 2
    assert selectors.study_text(study, TextKind.QUESTION).body == "Modified?"
    assert study.texts.filter(kind=TextKind.QUESTION).count() == 2


def test_feedback_questions_that_cannot_be_read_are_refused():
    study = factories.study()
    with pytest.raises(ValidationError, match="Line 2: the question is missing"):
        life.update_text(study, TextKind.FEEDBACK, "sure: Sure? | No | Yes\ncomment:")
    assert study.texts.filter(kind=TextKind.FEEDBACK).count() == 1


def test_settings_and_texts_are_frozen_at_launch():
    study = factories.running_study()
    with pytest.raises(StudyStateError, match=r"frozen \(plate_count\)"):
        life.change_settings(study, plate_count=0, title="New title")
    for kind in TextKind:
        with pytest.raises(StudyStateError, match="texts are frozen"):
            life.update_text(study, kind, "comment: Other?")
    with pytest.raises(StudyStateError, match="materials cannot be built again"):
        life.request_materials(study)
    assert DatasetImage.objects.filter(study=study).count() == 12
    life.change_settings(study, title="New title", contact_email="new@example.org")
    assert (study.title, study.contact_email) == ("New title", "new@example.org")


def test_settings_change_before_launch_and_are_checked():
    study = factories.study()
    life.change_settings(study, hourly_rate=Decimal("9.00"))
    assert study.hourly_rate == Decimal("9.00")
    with pytest.raises(ValidationError):
        life.change_settings(study, plates_required=9)
    study.refresh_from_db()
    assert study.plates_required == 3


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"instructed_check_count": 5}, "instructed_check_count"),
        ({"corrupted_check_count": 6, "instructed_check_count": 0}, "corrupted_check_count"),
        ({"clean_per_dataset": 1, "modified_per_dataset": 1}, "instructed_check_count"),
    ],
)
def test_more_checks_than_fit_between_the_images_are_refused(changes, field):
    study = factories.ready_study()
    with pytest.raises(ValidationError, match="do not fit between") as refused:
        life.change_settings(study, **changes)
    assert set(refused.value.message_dict) == {field}
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    assert life.change_settings(study, instructed_check_count=4).instructed_check_count == 4


def test_a_colour_check_that_is_added_has_its_plates_made():
    study = factories.ready_study(plate_count=0, plates_required=0)
    ColourPlate.objects.all().delete()
    life.change_settings(study, plate_count=5)
    assert study.status == StudyStatus.DRAFT
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    assert ColourPlate.objects.exists()


def test_materials_do_not_outlive_the_settings_they_were_made_by(monkeypatch):
    study = factories.ready_study()
    life.change_settings(study, hourly_rate=Decimal("9.00"), seed=study.seed)
    assert study.status == StudyStatus.READY
    life.change_settings(study, seed=2)
    assert (study.status, study.materials_built_at) == (StudyStatus.DRAFT, None)
    assert not DatasetImage.objects.exists()
    store = materials._store

    def change_first(study, draw, stimuli):
        with monkeypatch.context() as later:
            later.setattr(materials, "_store", store)
            life.change_settings(Study.objects.get(pk=study.pk), seed=3)
        return store(study, draw, stimuli)

    monkeypatch.setattr(materials, "_store", change_first)
    life.request_materials(study)
    life.build_materials(study.pk)
    study.refresh_from_db()
    assert (study.status, study.seed) == (StudyStatus.DRAFT, 3)
    assert not DatasetImage.objects.exists()


# --- States ---------------------------------------------------------------------------------------------------

MOVES = {
    life.launch: ("ready", "running"),
    life.pause: ("running", "paused"),
    life.resume: ("paused", "running"),
    life.archive: ("closed", "archived"),
}


@pytest.mark.parametrize("move", [life.pause, life.resume, life.archive])
def test_moves(move):
    before, after = MOVES[move]
    study = study_in(before)
    assert move(study).status == after
    assert move(study).status == after, "asked for again, it does nothing"


@pytest.mark.parametrize("before", ["running", "paused"])
def test_close(before):
    study = life.close(study_in(before))
    assert study.status == StudyStatus.CLOSED
    closed_at = study.closed_at
    assert closed_at is not None
    assert life.close(study).closed_at == closed_at


@pytest.mark.parametrize(
    ("move", "status"),
    [
        *((life.launch, status) for status in ("draft", "paused", "closed", "archived")),
        *((life.pause, status) for status in ("draft", "ready", "closed", "archived")),
        *((life.resume, status) for status in ("draft", "ready", "closed", "archived")),
        *((life.close, status) for status in ("draft", "ready", "archived")),
        *((life.archive, status) for status in ("draft", "ready", "running", "paused")),
    ],
)
def test_moves_from_the_wrong_state_are_refused(move, status):
    study = study_in(status)
    with pytest.raises(StudyStateError, match=status):
        move(study)
    study.refresh_from_db()
    assert study.status == status


def test_launch_needs_everything_ready():
    study = factories.ready_study(contact_email="")
    with pytest.raises(StudyStateError, match=r"Contact for participants: .* set an email address"):
        life.launch(study)
    life.change_settings(study, contact_email="lab@example.org")
    assert life.launch(study).status == StudyStatus.RUNNING
    launched_at = study.launched_at
    assert launched_at is not None
    assert life.launch(study).launched_at == launched_at


# --- Copies ---------------------------------------------------------------------------------------------------


def test_a_copy_is_a_draft_with_the_same_settings_and_newest_texts():
    study = factories.running_study("field", instructed_check_count=2, prolific_study_id="a" * 24)
    life.pause(study)
    life.close(study)
    user = get_user_model().objects.create_user("researcher")
    copy = life.copy_study(study, created_by=user)
    assert (copy.status, copy.copied_from, copy.created_by) == (StudyStatus.DRAFT, study, user)
    assert (copy.launched_at, copy.closed_at, copy.materials_built_at) == (None, None, None)
    assert copy.prolific_study_id == ""
    for field in (
        "attack",
        "seed",
        "scale_direction",
        "instructed_check_count",
        "plate_count",
        "preset",
        "hourly_rate",
    ):
        assert getattr(copy, field) == getattr(study, field)
    assert next(line.label for line in readiness(copy) if not line.ok) == "Datasets with exact counts"
    assert not set(copy.completion_codes.values_list("code")) & set(study.completion_codes.values_list("code"))
    assert life.copy_study(study).slug != copy.slug


def test_a_copy_of_a_demonstration_is_a_study_of_ones_own():
    assert life.copy_study(factories.study(is_demo=True)).is_demo is False


def test_a_copy_takes_the_newest_texts_as_its_first_versions():
    study = factories.study()
    for kind in TextKind:
        life.update_text(study, kind, f"{kind}: Newer?")
    texts = [(text.kind, text.body, text.version) for text in selectors.newest_texts(life.copy_study(study))]
    assert texts == [(kind, f"{kind}: Newer?", 1) for kind in TextKind]


# --- Links ----------------------------------------------------------------------------------------------------


def test_links():
    study = factories.study(slug="rate")
    assert selectors.study_links(study, "https://host/").participant == "https://host/s/rate/"
    study.panel = "prolific"
    made = selectors.study_links(study, "https://host")
    assert made.participant == (
        "https://host/s/rate/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    )
    assert made.test == f"https://host/s/rate/?test={links.test_token(study)}"


@pytest.mark.parametrize("token", ["", "x", "é"])
def test_a_test_token_belongs_to_one_study(token):
    study, other = factories.study(), factories.study()
    assert links.is_valid_test_token(study, links.test_token(study))
    assert not links.is_valid_test_token(other, links.test_token(study))
    assert not links.is_valid_test_token(study, token)
