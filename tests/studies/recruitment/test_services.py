"""A study of ours through its life on Prolific, with answers that get lost on the way."""

from datetime import timedelta

import pytest
from django.utils import timezone

from scooter_site.common.encryption import CannotDecrypt, decrypt, encrypt
from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import PanelStudy, Study, StudyStatus, Workspace
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import Ambiguous, NotAllowed, Refused, Unavailable
from studies.recruitment.statuses import PanelStudyStatus
from studies.selectors.recruitment import is_out_of_slots, screen_outs, studies_to_read
from studies.services import recruitment, recruitment_sync
from studies.services.recruitment import RecruitmentError
from tests import factories
from tests.studies.recruitment.conftest import LANDING


def there(fake, panel_study) -> dict:
    return fake.world.studies[panel_study.panel_id]


# --- Tokens ---------------------------------------------------------------------------------------------------


def test_tokens_are_stored_encrypted(workspace):
    stored = Workspace.objects.values_list("encrypted_token", flat=True).get()
    assert "fake-token" not in stored
    assert decrypt(stored) == "fake-token"
    assert encrypt("a") != encrypt("a")


def test_an_earlier_key_still_opens_and_another_does_not(settings):
    stored = encrypt("token")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert decrypt(stored) == "token"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(CannotDecrypt):
        decrypt(stored)


def test_a_token_of_another_key_is_asked_for_again(workspace, settings):
    settings.SECRET_KEY = "another"
    with pytest.raises(RecruitmentError, match="enter it again"):
        recruitment.client_of(workspace)
    with pytest.raises(RecruitmentError, match="no token"):
        recruitment.client_of(Workspace(name="New"))


# --- Making it ------------------------------------------------------------------------------------------------


def test_a_draft_says_what_the_study_says(panel_study, fake):
    recruitment.create_draft(panel_study, LANDING)
    draft = there(fake, panel_study)
    assert draft["status"] == "UNPUBLISHED"
    assert panel_study.status == PanelStudyStatus.UNPUBLISHED
    assert Study.objects.get().prolific_study_id == draft["id"]
    assert draft["total_available_places"] == 4
    assert draft["reward"] == 165
    assert draft["description"].startswith("<p>You will look at 8 images")
    codes = {code["code"]: code["actions"][0] for code in draft["completion_codes"]}
    assert set(codes) == set(panel_study.study.completion_codes.values_list("code", flat=True))
    fixed = panel_study.study.completion_codes.get(outcome="colour_check_failed").code
    assert codes[fixed] == {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 13, "slots": 2}


def test_a_draft_is_brought_up_to_date_and_made_once(panel_study, fake):
    recruitment.create_draft(panel_study, LANDING)
    panel_study.places = 7
    panel_study.save()
    recruitment.create_draft(panel_study, LANDING)
    assert len(fake.world.studies) == 1
    assert there(fake, panel_study)["total_available_places"] == 7


@pytest.mark.parametrize("fault", [Fault.LOST_AFTER_ACTING, Fault.SERVER_ERROR_AFTER_ACTING])
def test_a_draft_whose_creation_was_answered_by_nothing_is_found(panel_study, fake, fault):
    fake.fail(fault, "POST /api/v1/studies/", times=1)
    recruitment.create_draft(panel_study, LANDING)
    assert len(fake.world.studies) == 1
    assert panel_study.panel_id in fake.world.studies


def test_it_is_found_later_too_and_not_made_twice(panel_study, fake):
    fake.fail(Fault.LOST_AFTER_ACTING, "POST /api/v1/studies/", times=1)
    fake.fail(Fault.SERVER_ERROR, "GET /api/v1/studies/")
    with pytest.raises(Exception, match="listing studies"):
        recruitment.create_draft(panel_study, LANDING)
    fake.faults.rules.clear()
    with pytest.raises(RecruitmentError, match="two minutes"):
        recruitment.create_draft(panel_study, LANDING)
    PanelStudy.objects.update(creation_begun_at=timezone.now() - timedelta(minutes=3))
    recruitment.create_draft(panel_study, LANDING)
    assert len(fake.world.studies) == 1


def test_what_was_lost_before_it_was_done_is_done_at_the_next_try(panel_study, fake):
    fake.fail(Fault.LOST_BEFORE_ACTING, "POST /api/v1/studies/", times=1)
    with pytest.raises(Ambiguous):
        recruitment.create_draft(panel_study, LANDING)
    assert fake.world.studies == {}
    panel_study.refresh_from_db()
    assert panel_study.sync_error
    recruitment.create_draft(panel_study, LANDING)
    assert len(fake.world.studies) == 1


def test_a_workspace_without_fixed_screen_outs_is_told_what_to_do(panel_study, fake):
    fake.settings.refuses_fixed_screen_outs = True
    with pytest.raises(Refused) as caught:
        recruitment.create_draft(panel_study, LANDING)
    assert "FIXED_SCREEN_OUT_PAYMENT is not available in this workspace" in caught.value.text
    assert "Manual review" in caught.value.text
    panel_study.screen_out_pay = "review_and_bonus"
    panel_study.save()
    recruitment.create_draft(panel_study, LANDING)
    assert panel_study.slots_there is None


def test_it_is_found_under_an_earlier_title_too(panel_study, fake):
    fake.fail(Fault.LOST_AFTER_ACTING, "POST /api/v1/studies/", times=1)
    fake.fail(Fault.SERVER_ERROR, "GET /api/v1/studies/")
    with pytest.raises(Exception, match="listing studies"):
        recruitment.create_draft(panel_study, LANDING)
    fake.faults.rules.clear()
    PanelStudy.objects.update(creation_begun_at=timezone.now() - timedelta(minutes=3))
    panel_study.study.title = "Renamed meanwhile"
    recruitment.create_draft(panel_study, LANDING)
    assert list(fake.world.studies) == [panel_study.panel_id]


# --- Money and filters ----------------------------------------------------------------------------------------


def test_the_estimate_has_places_and_slots_with_fees(panel_study):
    # 4 x 1.65 = 6.60, fees 2.18, VAT 0.44: 9.22. Two screen-outs of 0.13 and a bonus of 0.32 in proportion:
    # 0.58 x 9.22 / 6.60 = 0.811
    assert recruitment.estimate_cost(panel_study) == 922 + 82
    # Bonuses for both checks: 0.45 x 9.22 / 6.60 = 0.629
    panel_study.screen_out_pay = "review_and_bonus"
    assert recruitment.estimate_cost(panel_study) == 922 + 63
    panel_study.study.plate_count = panel_study.study.comprehension_pair_count = 0
    assert recruitment.estimate_cost(panel_study) == 922


def test_filters_are_found_by_what_they_ask(panel_study, workspace, fake):
    found = recruitment.filter_candidates(workspace)
    assert [(one.wanted.name, one.filter.id, one.proposed) for one in found] == [
        ("colour_vision", "colourblindness", ("1",)),
        ("english", "fluent-languages", ("19",)),
    ]
    count = recruitment.confirm_filters(panel_study, [(one, list(one.proposed)) for one in found], "ada")
    assert count == 30_000
    panel_study.refresh_from_db()
    assert panel_study.filters_in_words == ["Colour blindness: No", "Fluent languages: English"]
    assert panel_study.filters_confirmed_by == "ada"
    recruitment.create_draft(panel_study, LANDING)
    assert there(fake, panel_study)["filters"] == [
        {"filter_id": "colourblindness", "selected_values": ["1"]},
        {"filter_id": "fluent-languages", "selected_values": ["19"]},
    ]


def test_an_answer_that_the_filter_does_not_have_is_refused(panel_study, workspace):
    [colour, _] = recruitment.filter_candidates(workspace)
    with pytest.raises(ValueError, match="no answer 9"):
        recruitment.confirm_filters(panel_study, [(colour, ["9"])], "ada")


# --- Life -----------------------------------------------------------------------------------------------------


def test_publish_pause_resume_stop_and_open_again(published, fake):
    assert published.status == PanelStudyStatus.ACTIVE
    assert recruitment.pause(published).status == PanelStudyStatus.PAUSED
    assert recruitment.resume(published).status == PanelStudyStatus.ACTIVE
    assert recruitment.stop(published).status == PanelStudyStatus.COMPLETED
    assert recruitment.raise_places(published, 6).status == PanelStudyStatus.ACTIVE
    assert (published.places, published.places_there, there(fake, published)["total_available_places"]) == (6, 6, 6)


@pytest.mark.parametrize("fault", [Fault.LOST_AFTER_ACTING, Fault.SERVER_ERROR_AFTER_ACTING, Fault.TOO_MANY_REQUESTS])
def test_a_lost_answer_is_followed_by_a_look(published, fake, fault):
    fake.fail(fault, "/transition/", times=1)
    assert recruitment.pause(published).status == PanelStudyStatus.PAUSED


def test_a_study_whose_publishing_could_not_be_read_is_read_later(panel_study, fake, monkeypatch):
    recruitment.create_draft(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    ask = ProlificClient.transition_study

    def ask_and_be_away(client, panel_id, action):
        ask(client, panel_id, action)
        fake.fail(Fault.SERVER_ERROR)

    monkeypatch.setattr(ProlificClient, "transition_study", ask_and_be_away)
    with pytest.raises(RecruitmentError, match="do not ask twice"):
        recruitment.publish(panel_study, LANDING)
    assert panel_study.status == PanelStudyStatus.UNPUBLISHED
    assert there(fake, panel_study)["status"] == "ACTIVE"
    fake.faults.rules.clear()
    assert list(studies_to_read(timezone.now())) == [panel_study]
    recruitment_sync.read_panel_study(panel_study.pk)
    panel_study.refresh_from_db()
    assert (panel_study.status, panel_study.sync_error) == (PanelStudyStatus.ACTIVE, "")


def test_an_older_answer_about_a_study_does_not_undo_a_newer_one(published, prolific):
    earlier, asked_at = prolific.study(published.panel_id), timezone.now()
    elsewhere = PanelStudy.objects.get()
    recruitment.pause(published)
    recruitment.store(elsewhere, earlier, asked_at)
    assert elsewhere.status == PanelStudyStatus.PAUSED
    published.refresh_from_db()
    assert published.status == PanelStudyStatus.PAUSED
    recruitment.store(elsewhere, earlier, timezone.now())
    published.refresh_from_db()
    assert published.status == PanelStudyStatus.ACTIVE


def test_a_change_without_an_estimate_is_made_all_the_same(published, fake):
    fake.fail(Fault.SERVER_ERROR, "study-cost-calculator")
    recruitment.raise_places(published, 6)
    published.refresh_from_db()
    assert (published.places, published.places_there, published.estimated_cost_minor) == (6, 6, None)


def test_nobody_is_let_in_again_where_the_study_is_closed_here(published, fake):
    recruitment.pause(published)
    published.study.status = StudyStatus.PAUSED
    with pytest.raises(RecruitmentError, match="Open the study here first"):
        recruitment.resume(published)
    assert there(fake, published)["status"] == "PAUSED"


def test_what_was_not_done_is_said(published, fake):
    fake.fail(Fault.LOST_BEFORE_ACTING, "/transition/", times=1)
    with pytest.raises(Ambiguous):
        recruitment.pause(published)
    assert published.status == PanelStudyStatus.ACTIVE
    with pytest.raises(Refused) as caught:
        recruitment.resume(recruitment.stop(published))
    assert "Cannot START a study that is COMPLETED" in caught.value.text


def test_doing_what_is_done_is_no_failure(published):
    recruitment.pause(published)
    assert recruitment.pause(published).status == PanelStudyStatus.PAUSED


def test_nothing_is_published_before_the_study_here_runs_and_the_cost_is_known(panel_study):
    recruitment.create_draft(panel_study, LANDING)
    with pytest.raises(RecruitmentError, match="cost"):
        recruitment.publish(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    panel_study.study.status = StudyStatus.READY
    with pytest.raises(RecruitmentError, match="Launch the study here first"):
        recruitment.publish(panel_study, LANDING)


def test_what_is_published_is_what_is_asked_for_now(panel_study, workspace, fake):
    recruitment.create_draft(panel_study, LANDING)
    found = recruitment.filter_candidates(workspace)
    recruitment.confirm_filters(panel_study, [(one, list(one.proposed)) for one in found], "ada")
    PanelStudy.objects.update(places=3)
    panel_study.refresh_from_db()
    recruitment.estimate_cost(panel_study)
    recruitment.publish(panel_study, LANDING)
    published = there(fake, panel_study)
    assert (published["status"], published["total_available_places"], panel_study.places_there) == ("ACTIVE", 3, 3)
    assert [one["filter_id"] for one in published["filters"]] == ["colourblindness", "fluent-languages"]


def test_a_draft_that_does_not_take_over_what_is_sent_is_not_published(panel_study, fake, monkeypatch):
    recruitment.create_draft(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    change = ProlificClient.update_study
    monkeypatch.setattr(
        ProlificClient,
        "update_study",
        lambda client, panel_id, sent: change(client, panel_id, {**sent, "total_available_places": 40}),
    )
    with pytest.raises(RecruitmentError, match="places: 40 instead of 4"):
        recruitment.publish(panel_study, LANDING)
    assert there(fake, panel_study)["status"] == "UNPUBLISHED"


def test_nothing_is_published_for_other_pay_or_for_people_without_a_place_here(panel_study, fake):
    recruitment.create_draft(panel_study, LANDING)
    recruitment.estimate_cost(panel_study)
    panel_study.reward_minor += 1
    with pytest.raises(RecruitmentError, match="pay has changed"):
        recruitment.publish(panel_study, LANDING)
    panel_study.reward_minor, panel_study.places = 165, 5
    with pytest.raises(RecruitmentError, match="send 5 people, and there are places for 4"):
        recruitment.publish(panel_study, LANDING)
    assert there(fake, panel_study)["status"] == "UNPUBLISHED"


def test_publishing_what_somebody_else_has_published_is_no_failure(published):
    PanelStudy.objects.update(status=PanelStudyStatus.UNPUBLISHED)
    published.refresh_from_db()
    assert recruitment.publish(published, LANDING).status == PanelStudyStatus.ACTIVE


def test_places_raised_there_are_there_for_people_who_come(published):
    assert published.study.place_count == 4
    recruitment.raise_places(published, 6)
    assert published.study.place_count == 6


@pytest.mark.parametrize(("kind", "places"), [(Refused, 4), (NotAllowed, 4), (Unavailable, 40)])
def test_places_that_prolific_refuses_are_put_back_here(published, fake, monkeypatch, kind, places):
    """A mistyped number is not for ever. Where nobody knows what became of it, more places here do no harm."""

    def refuse(*_: object) -> None:
        raise kind("changing the study", text="No.")

    monkeypatch.setattr(ProlificClient, "update_study", refuse)
    with pytest.raises(kind):
        recruitment.raise_places(published, 40)
    assert (published.study.place_count, published.places) == (places, 4)


def test_fewer_places_there_than_here_leave_those_here(published, fake):
    published.study.extra_places = 10
    published.study.save()
    recruitment.raise_places(published, 6)
    assert (published.places_there, published.study.place_count) == (6, 14)


def test_no_places_there_for_a_study_that_is_closed_here(published, fake):
    Study.objects.update(status=StudyStatus.CLOSED)
    published.study.refresh_from_db()
    with pytest.raises(RecruitmentError, match="closed here"):
        recruitment.raise_places(published, 6)
    assert there(fake, published)["total_available_places"] == 4


def test_places_and_slots_only_grow(published):
    with pytest.raises(RecruitmentError, match="4 places"):
        recruitment.raise_places(published, 4)
    with pytest.raises(RecruitmentError, match="2 slots"):
        recruitment.raise_slots(published, 2)


def test_after_publishing_the_rest_is_fixed(published):
    with pytest.raises(RecruitmentError, match="only places and slots"):
        recruitment.create_draft(published, LANDING)
    with pytest.raises(RecruitmentError, match="only places and slots"):
        recruitment.confirm_filters(published, [], "ada")


def test_used_up_slots_are_raised_and_the_study_resumed(published, fake):
    code = published.study.completion_codes.get(outcome="colour_check_failed").code
    for _ in range(2):
        fake.submit(fake.arrive(published.panel_id)["id"], code)
    recruitment_sync.read_panel_study(published.pk)
    published.refresh_from_db()
    assert published.status == PanelStudyStatus.PAUSED
    assert is_out_of_slots(published)
    recruitment.raise_slots(published, 5)
    assert not is_out_of_slots(published)
    assert recruitment.resume(published).status == PanelStudyStatus.ACTIVE


def test_a_study_that_is_not_there_can_do_nothing(panel_study):
    for deed in (recruitment.pause, recruitment.resume, recruitment.stop):
        with pytest.raises(RecruitmentError, match="not been made"):
            deed(panel_study)


def test_html_has_only_paragraphs():
    assert recruitment.as_html("a <b>\r\n\r\n\r\nc\n") == "<p>a &lt;b&gt;</p><p>c</p>"


def test_suggestions_fit_the_study(db):
    study = factories.study(plate_count=0, plates_required=0, comprehension_pair_count=0, comprehension_required=0)
    assert screen_outs(study) == {}
    assert recruitment.suggested(study)["minutes"] == 13
