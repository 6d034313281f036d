"""What the buttons of a study's page do, and what they refuse."""

import pytest
from django.urls import reverse

from imagedb.models import Image, Visibility
from scooter_site.common.admin_tools import change_url
from studies.models import Participation, ParticipationKind, Study, StudyStatus
from tests import factories, walks
from tests.studies.admin_pages import do, text_of

pytestmark = pytest.mark.django_db


def test_a_draft_is_built_launched_paused_resumed_closed_and_archived(
    client, researcher, django_capture_on_commit_callbacks
):
    study = factories.study()
    factories.images_for(study)
    factories.plate_pool()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(do(study, "build"))
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    for action, status in [
        ("launch", StudyStatus.RUNNING),
        ("pause", StudyStatus.PAUSED),
        ("resume", StudyStatus.RUNNING),
        ("close", StudyStatus.CLOSED),
        ("archive", StudyStatus.ARCHIVED),
    ]:
        answer = client.post(do(study, action))
        assert answer.url == change_url(study)
        study.refresh_from_db()
        assert study.status == status


def test_what_is_missing_for_the_datasets_is_shown(client, researcher, django_capture_on_commit_callbacks):
    study = factories.study()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(do(study, "build"))
    page = text_of(client.get(change_url(study)))
    assert "The datasets could not be built" in page
    assert "more clean images" in page


@pytest.mark.parametrize("action", ["build", "rebuild", "launch", "pause", "resume", "close", "archive", "copy"])
def test_a_link_changes_nothing(client, researcher, action):
    study = factories.ready_study()
    before = Study.objects.values().get()
    assert client.get(do(study, action)).status_code == 200
    assert Study.objects.values().get() == before


@pytest.mark.parametrize("action", ["launch", "pause", "resume", "archive"])
def test_what_does_not_fit_the_state_is_a_message_not_an_error(client, researcher, action):
    study = factories.study()
    answer = client.post(do(study, action), follow=True)
    assert answer.status_code == 200
    assert [message.level_tag for message in answer.context["messages"]] == ["error"]
    study.refresh_from_db()
    assert study.status == StudyStatus.DRAFT


def test_the_launch_is_confirmed_with_places_and_cost(client, researcher):
    study = factories.ready_study(dataset_count=2, participants_per_dataset=10, buffer_percent=15)
    page = text_of(client.get(do(study, "launch")))
    # 20 valid participants and 15 % more, at GBP 7.60 per hour for 13 minutes each.
    assert "Places 23" in page
    assert "GBP 1.65" in page
    assert "GBP 37.95" in page
    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_missing_files_are_found_out_by_the_question_before_the_launch(client, researcher):
    study = factories.ready_study()
    stimulus = study.stimuli.first()
    stimulus.file.storage.delete(stimulus.file.name)
    assert do(study, "launch").encode() in client.get(change_url(study)).content
    assert stimulus.file.name in text_of(client.get(do(study, "launch")))
    client.post(do(study, "launch"))
    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_public_images_are_a_point_to_look_at_that_keeps_nothing_from_the_launch(client, researcher):
    study = factories.ready_study()
    page = client.get(change_url(study))
    assert "ready, with 1 point to look at" in text_of(page)
    assert "Kinds are not published (to look at)" in text_of(page)
    assert "Ready, with 1 point to look at: warning Kinds are not published" in text_of(client.get(do(study, "launch")))
    Image.objects.update(visibility=Visibility.REGISTERED)
    page = client.get(change_url(study))
    assert "point to look at" not in text_of(page)
    assert "Kinds are not published (in order)" in text_of(page)
    assert "point to look at" not in text_of(client.get(do(study, "launch")))


def test_a_study_that_is_not_ready_offers_no_launch(client, researcher):
    study = factories.ready_study(contact_email="")
    page = client.get(change_url(study))
    assert "1 thing to mend" in text_of(page)
    assert "set an email address" in text_of(page)
    assert do(study, "launch").encode() not in page.content
    question = client.get(do(study, "launch"))
    assert "Not ready yet" in text_of(question)
    assert b'<form method="post">' not in question.content
    client.post(do(study, "launch"))
    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_a_copy_is_a_new_draft(client, researcher):
    study = factories.running_study()
    answer = client.post(do(study, "copy"))
    copy = Study.objects.get(copied_from=study)
    assert answer.url == change_url(copy)
    assert (copy.status, copy.created_by, copy.dataset_count) == (StudyStatus.DRAFT, researcher, study.dataset_count)
    assert copy.slug != study.slug


def test_building_again_asks_first_and_deletes_test_answers(client, researcher, django_capture_on_commit_callbacks):
    study = factories.ready_study()
    walks.to_main(study, ParticipationKind.TEST)
    assert "Answers given with the test link so far are deleted" in text_of(client.get(do(study, "rebuild")))
    with django_capture_on_commit_callbacks(execute=True):
        client.post(do(study, "rebuild"))
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    assert not Participation.objects.exists()


def test_the_panel_that_keeps_itself_fresh_says_when_it_is_done(client, researcher):
    study = factories.study()
    Study.objects.update(materials_requested_at="2026-01-01T00:00:00Z")
    live = reverse("admin:studies_study_live", args=[study.pk])
    assert "X-Refresh-Done" not in client.get(live)
    Study.objects.update(materials_built_at="2026-01-01T00:01:00Z", status=StudyStatus.READY)
    assert client.get(live)["X-Refresh-Done"] == "1"


def test_unknown_actions_and_studies_are_not_found(client, researcher):
    study = factories.study()
    assert client.post(do(study, "explode")).status_code == 404
    assert client.get(reverse("admin:studies_study_do", args=[study.pk + 1, "launch"])).status_code == 404
