"""The study pages of the admin: links, live numbers, participants, the first page, and who may see what."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse

from scooter_site.common.admin_tools import change_url
from scooter_site.common.groups import RESEARCHERS
from studies import selectors
from studies.models import Participation, ParticipationKind, Study, StudyStatus
from tests import factories, walks
from tests.studies.admin_pages import account, do, posted, text_of

pytestmark = pytest.mark.django_db


def test_a_running_study_shows_its_links_to_copy(client, researcher):
    study = factories.running_study()
    page = client.get(change_url(study)).content.decode()
    links = selectors.study_links(study, "http://testserver")
    assert f'data-copy="{links.participant}"' in page
    assert f'data-copy="{links.test}"' in page


def test_the_participant_link_is_not_offered_before_launch(client, researcher):
    page = client.get(change_url(factories.ready_study())).content.decode()
    assert 'id="test-link"' in page
    assert 'id="participant-link"' not in page


def test_live_numbers_tell_how_far_participants_got(client, researcher):
    study = factories.running_study()
    walks.complete(study)
    walks.complete(study, failed_checks=3)
    walks.to_main(study)
    walks.answer_plates(walks.consent(walks.enter(study)), wrong=5)
    walks.enter(study)
    walks.complete(study, ParticipationKind.TEST)
    page = text_of(client.get(reverse("admin:studies_study_monitor", args=[study.pk])))
    assert f"Valid participants 1 of {study.planned_participations}" in page
    assert "Completed 1" in page
    assert "Failed the attention checks 1" in page
    assert "Main study 3 60 % 1 0 0" in page
    # Two full runs at GBP 1.65 and one failed colour check at GBP 0.13.
    assert "GBP 3.43" in page
    live = client.get(reverse("admin:studies_study_monitor_live", args=[study.pk]))
    assert b"<html" not in live.content
    assert "Completed 1" in text_of(live)


def test_who_may_only_look_sees_no_buttons_and_changes_nothing(client, viewer):
    study = factories.ready_study()
    before = Study.objects.values().get()
    page = client.get(change_url(study))
    assert page.status_code == 200
    assert b"/do/" not in page.content
    assert b'name="_save"' not in page.content
    assert reverse("studies:preview", args=[study.slug]).encode() not in page.content
    for action in ("build", "rebuild", "launch", "pause", "close", "copy"):
        assert client.post(do(study, action)).status_code == 403
    assert client.post(change_url(study), posted(study, title="Mine")).status_code == 403
    assert Study.objects.values().get() == before


@pytest.mark.parametrize("page", ["live", "monitor", "monitor_live", "change"])
def test_staff_without_permission_see_no_study(client, page):
    client.force_login(account())
    study = factories.study()
    assert client.get(reverse(f"admin:studies_study_{page}", args=[study.pk])).status_code == 403


def test_strangers_are_sent_to_the_log_in_page(client):
    study = factories.ready_study()
    answer = client.post(do(study, "launch"))
    assert answer.status_code == 302
    assert "/admin/login/" in answer.url
    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_researchers_may_do_their_work_and_no_more():
    user = account()
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    assert user.has_perms(["imagedb.add_importbatch", "studies.add_study", "studies.change_study"])
    for permission in (
        "auth.view_user",
        "auth.change_user",
        "accounts.view_apitoken",
        "studies.view_participantidentity",
        "studies.delete_participation",
        "studies.delete_study",
        "imagedb.delete_image",
    ):
        assert not user.has_perm(permission), permission


def test_a_study_with_materials_cannot_be_deleted(admin_client):
    study = factories.ready_study()
    delete = reverse("admin:studies_study_delete", args=[study.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert Study.objects.exists()
    draft = factories.study()
    admin_client.post(reverse("admin:studies_study_delete", args=[draft.pk]), {"post": "yes"})
    assert not Study.objects.filter(pk=draft.pk).exists()


def test_panel_ids_are_for_those_who_may_see_them(client, researcher):
    participation = walks.enter(factories.running_study(), participant_id="5f1e2d3c4b5a69788796a5b4", session_id="s1")
    pages = [reverse("admin:studies_participation_changelist"), change_url(participation)]
    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200
        assert b"5f1e2d3c4b5a69788796a5b4" not in answer.content
    assert "0 participations" in text_of(client.get(pages[0], {"q": "5f1e2d3c4b5a69788796a5b4"}))

    researcher.user_permissions.add(Permission.objects.get(codename="view_participantidentity"))
    client.force_login(User.objects.get(pk=researcher.pk))
    for page in pages:
        assert b"5f1e2d3c4b5a69788796a5b4" in client.get(page).content
    assert "1 participation" in text_of(client.get(pages[0], {"q": "5f1e2d3c4b5a69788796a5b4"}))


def test_a_participants_page_shows_what_happened_and_every_rating(client, researcher):
    study = factories.running_study()
    participation = walks.to_main(study)
    walks.rate(participation, 0)
    walks.rate(participation, -37)
    page = text_of(client.get(change_url(participation)))
    assert "Main study" in page
    assert f"Rated 2 of {study.trial_count}" in page
    assert "Consented" in page
    times = r"\d\d:\d\d:\d\d 0\.7 1\.2 1\.5 "
    assert re.search(rf" -37 (passed |failed )?{times}", page)
    assert re.search(rf" 0 (passed |failed )?{times}", page), "0 is an answer"


def test_the_page_of_a_participant_who_finished(client, researcher):
    page = text_of(client.get(change_url(walks.complete(factories.running_study()))))
    assert "Completed" in page
    assert "Ratings count Yes" in page
    assert "Anything you would like to tell us? Fine" in page, "the feedback, with the question that was shown"


def test_research_data_cannot_be_added_changed_or_deleted(admin_client):
    participation = walks.complete(factories.running_study())
    assert admin_client.get(reverse("admin:studies_participation_add")).status_code == 403
    assert admin_client.post(change_url(participation), {"is_valid": ""}).status_code == 403
    delete = reverse("admin:studies_participation_delete", args=[participation.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": [participation.pk], "post": "yes"}
    admin_client.post(reverse("admin:studies_participation_changelist"), bulk)
    participation.refresh_from_db()
    assert participation.is_valid


def queries_of(client, django_assert_max_num_queries, address) -> int:
    with django_assert_max_num_queries(60) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_the_list_of_studies_costs_the_same_for_3_and_for_30(admin_client, django_assert_max_num_queries):
    address = reverse("admin:studies_study_changelist")
    for _ in range(3):
        factories.study()
    few = queries_of(admin_client, django_assert_max_num_queries, address)
    for _ in range(27):
        factories.study()
    assert queries_of(admin_client, django_assert_max_num_queries, address) == few


def test_the_list_of_participants_costs_the_same_for_3_and_for_30(admin_client, django_assert_max_num_queries):
    study = factories.running_study(dataset_count=2, participants_per_dataset=30)
    address = reverse("admin:studies_participation_changelist")
    for _ in range(3):
        walks.consent(walks.enter(study))
    few = queries_of(admin_client, django_assert_max_num_queries, address)
    for _ in range(27):
        walks.consent(walks.enter(study))
    assert queries_of(admin_client, django_assert_max_num_queries, address) == few


def test_the_checklist_of_a_first_study_ticks_itself(client, researcher, django_capture_on_commit_callbacks):
    def done():
        context = client.get(reverse("admin:index")).context
        ticked = [item["step"].title for item in context["checklist"] if item["step"].done]
        return ticked if context["checklist_open"] else None

    factories.attack(is_demo=True)
    assert done() == []
    attack, target_model = factories.attack(), factories.target_model()
    assert done() == ["Describe the attack", "Describe the target model"]
    study = factories.study(attack=attack, target_model=target_model)
    factories.images_for(study)
    factories.plate_pool()
    assert done() == ["Describe the attack", "Describe the target model", "Upload images", "Create a study"]
    with django_capture_on_commit_callbacks(execute=True):
        client.post(do(study, "build"))
    client.post(do(study, "launch"))
    assert done() is None, "everything is ticked, so the list is gone"
    assert "0 of" in text_of(client.get(reverse("admin:index")))


def test_the_first_page_counts_valid_participants_as_the_studies_do_and_says_what_the_demonstration_does_not_tick(
    client, researcher
):
    study = factories.running_study()
    walks.complete(study)
    walks.complete(study, kind=ParticipationKind.TEST, session_id="a-test")
    page = client.get(reverse("admin:index"))
    assert "1 valid participant " in text_of(page)
    assert "demonstration’s images and studies tick nothing" not in text_of(page)
    Study.objects.update(is_demo=True)
    page = client.get(reverse("admin:index"))
    assert "2 of 4 valid participants" in text_of(page)
    assert "2 valid participants" in text_of(page)
    assert "demonstration’s images and studies tick nothing here" in text_of(page)


def test_times_of_the_admins_lists_are_those_of_its_pages(client, researcher):
    participation = walks.consent(walks.enter(factories.running_study()))
    Participation.objects.update(started_at=datetime(2026, 11, 30, 18, 14, tzinfo=UTC))
    listed = text_of(client.get(reverse("admin:studies_participation_changelist")))
    assert "30 November 2026, 18:14 UTC" in listed
    assert "p.m." not in listed
    assert "p.m." not in text_of(client.get(change_url(participation)))


def test_the_first_page_shows_only_what_one_may_see(client):
    client.force_login(account())
    page = text_of(client.get(reverse("admin:index")))
    for words in ("Your first study", "Running studies", "Last imports", "Attacks", "Users"):
        assert words not in page


def test_the_first_page_costs_the_same_however_much_runs(admin_client, django_assert_max_num_queries):
    def grow(count):
        for _ in range(count):
            factories.study()
        Study.objects.update(status=StudyStatus.RUNNING, launched_at="2026-01-01T00:00:00Z")

    grow(3)
    few = queries_of(admin_client, django_assert_max_num_queries, reverse("admin:index"))
    grow(10)
    assert queries_of(admin_client, django_assert_max_num_queries, reverse("admin:index")) == few
