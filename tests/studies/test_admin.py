"""The study pages of the admin: what each button does, what is refused, and to whom."""

import html
import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse

from scooter_site.common.admin_tools import change_url
from scooter_site.common.groups import RESEARCHERS
from studies import selectors
from studies.models import Participation, ParticipationKind, Study, StudyStatus, StudyText, TextKind
from tests import factories, walks

pytestmark = pytest.mark.django_db


def account(*permissions: str, name: str = "somebody") -> User:
    user = User.objects.create_user(name, is_staff=True)
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return user


@pytest.fixture
def researcher(client):
    user = account(name="researcher")
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    client.force_login(user)
    return user


@pytest.fixture
def viewer(client):
    user = account("studies.view_study", "studies.view_participation", name="viewer")
    client.force_login(user)
    return user


def do(study, action):
    return reverse("admin:studies_study_do", args=[study.pk, action])


def text_of(response) -> str:
    """What a person reads on a page, in one line."""
    content = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())


def as_browsers_send(text):
    return text.replace("\n", "\r\n")


def posted(study, **changes):
    """The settings form as a browser sends it, with ``changes``."""
    names = [field.name for field in Study._meta.concrete_fields if field.editable and field.name != "id"]
    data = {}
    for name in names:
        value = getattr(study, Study._meta.get_field(name).attname)
        if not isinstance(value, bool):
            data[name] = value
        elif value:
            data[name] = "on"
    for kind in TextKind:
        data[f"text_{kind.value}"] = as_browsers_send(selectors.study_text(study, kind).body)
    codes = list(study.completion_codes.all())
    data |= {
        "completion_codes-TOTAL_FORMS": len(codes),
        "completion_codes-INITIAL_FORMS": len(codes),
    }
    for number, code in enumerate(codes):
        data |= {
            f"completion_codes-{number}-id": code.pk,
            f"completion_codes-{number}-study": study.pk,
            f"completion_codes-{number}-code": code.code,
        }
    return {**data, "_save": "Save", **changes}


# --- Making a study -------------------------------------------------------------------------------------------


def test_five_answers_make_a_complete_draft(client, researcher):
    attack, target_model = factories.attack(), factories.target_model()
    page = client.get(reverse("admin:studies_study_add"))
    slug = re.search(r'name="slug" value="([a-z0-9]{8})"', page.content.decode()).group(1)
    answer = client.post(
        reverse("admin:studies_study_add"),
        {
            "title": "Snow on roofs",
            "slug": slug,
            "attack": attack.pk,
            "target_model": target_model.pk,
            "preset_name": "field",
            "_save": "Save",
        },
    )
    study = Study.objects.get()
    assert answer.url == change_url(study)
    assert (study.title, study.slug, study.preset, study.scale_minimum) == ("Snow on roofs", slug, "field", -2)
    assert study.created_by == researcher
    assert study.texts.count() == 3
    assert study.completion_codes.count() == 6


def test_each_new_study_is_offered_another_slug(client, researcher):
    pages = [client.get(reverse("admin:studies_study_add")).content.decode() for _ in range(5)]
    assert len({re.search(r'name="slug" value="(\w+)"', page).group(1) for page in pages}) == 5


def test_a_slug_that_tells_is_warned_about(client, researcher):
    attack = factories.attack(slug="snow-attack")
    answer = client.post(
        reverse("admin:studies_study_add"),
        {
            "title": "Snow",
            "slug": "our-snow-attack-1",
            "attack": attack.pk,
            "target_model": factories.target_model().pk,
            "preset_name": "paper",
            "_save": "Save",
        },
        follow=True,
    )
    assert "Consider another slug" in text_of(answer)
    assert Study.objects.exists()


# --- Settings -------------------------------------------------------------------------------------------------


def test_settings_and_texts_of_a_draft_are_edited_on_its_page(client, researcher):
    study = factories.study()
    before = StudyText.objects.get(study=study, kind=TextKind.QUESTION)
    answer = client.post(
        change_url(study), posted(study, dataset_count=7, buffer_percent=0, text_question="Real or not?")
    )
    assert answer.url == change_url(study)
    study.refresh_from_db()
    assert (study.dataset_count, study.buffer_percent) == (7, 0)
    newest = selectors.study_text(study, TextKind.QUESTION)
    assert (newest.body, newest.version) == ("Real or not?", before.version + 1)
    assert StudyText.objects.filter(study=study, kind=TextKind.CONSENT).count() == 1, "unchanged: no new version"


def test_a_page_saved_without_a_change_makes_no_new_text(client, researcher):
    study = factories.study()
    client.post(change_url(study), posted(study))
    assert study.texts.count() == 3
    client.post(change_url(study), posted(study, text_consent="One.\r\n\r\nTwo."))
    assert selectors.study_text(study, TextKind.CONSENT).body == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instructed_check_count": 20}, "21 attention checks (corrupted and instructed ones together) do not fit"),
        ({"plates_required": 6}, "More plates must be right than are shown."),
        ({"comprehension_required": 13}, "More pairs must be right than are shown."),
        ({"scale_minimum": 100}, "The highest value must be above the lowest."),
        ({"dataset_count": 0}, "Ensure this value is greater than or equal to 1."),
        ({"text_consent": ""}, "This field is required."),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused_at_their_field(client, researcher, changes, words):
    study = factories.study()
    answer = client.post(change_url(study), posted(study, **changes))
    assert answer.status_code == 200
    assert words in text_of(answer)


def test_completion_codes_are_edited_before_launch(client, researcher):
    study = factories.study()
    code = study.completion_codes.first()
    client.post(change_url(study), posted(study, **{"completion_codes-0-code": "THANKS99"}))
    code.refresh_from_db()
    assert code.code == "THANKS99"


def test_after_launch_only_what_no_answer_depends_on_can_be_changed(client, researcher):
    study = factories.running_study()
    page = client.get(change_url(study))
    assert "frozen since the launch" in text_of(page)
    assert b'name="dataset_count"' not in page.content
    assert b'name="text_consent"' not in page.content
    codes = list(study.completion_codes.values_list("code", flat=True))
    client.post(
        change_url(study),
        posted(
            study, title="A better title", dataset_count=9, text_question="Other?", **{"completion_codes-0-code": "X"}
        ),
    )
    changed = Study.objects.get()
    assert (changed.title, changed.dataset_count) == ("A better title", study.dataset_count)
    assert study.texts.count() == 3
    assert list(study.completion_codes.values_list("code", flat=True)) == codes


def test_nothing_is_edited_while_datasets_are_drawn(client, researcher):
    study = factories.study()
    Study.objects.update(materials_requested_at="2026-01-01T00:00:00Z")
    page = client.get(change_url(study))
    assert "Datasets are being drawn" in text_of(page)
    assert b"data-refresh-url" in page.content
    assert client.post(change_url(study), posted(study, dataset_count=7)).status_code == 403


# --- Life -----------------------------------------------------------------------------------------------------


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


# --- Links ----------------------------------------------------------------------------------------------------


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


# --- Live numbers ---------------------------------------------------------------------------------------------


def test_live_numbers_tell_how_far_participants_got(client, researcher):
    study = factories.running_study()
    walks.complete(study)
    walks.complete(study, failed_checks=3)
    walks.to_main(study)
    walks.answer_plates(walks.consent(walks.enter(study)), wrong=5)
    walks.enter(study)
    walks.complete(study, ParticipationKind.TEST)
    stages = {stage.label: (stage.reached, stage.lost) for stage in selectors.dropout.dropout(study)}
    assert stages == {
        "Arrived": (5, 0),
        "Consented": (4, 1),
        "Read the instructions": (3, 1),
        "Rated an image": (2, 1),
        "Finished": (2, 0),
        "Valid": (1, 1),
    }
    page = text_of(client.get(reverse("admin:studies_study_monitor", args=[study.pk])))
    assert f"Valid participants 1 of {study.planned_participations}" in page
    assert "Completed 1" in page
    assert "Failed the attention checks 1" in page
    assert "Main study 1" in page
    # Two full runs at GBP 1.65 and one failed colour check at GBP 0.13.
    assert "GBP 3.43" in page
    live = client.get(reverse("admin:studies_study_monitor_live", args=[study.pk]))
    assert b"<html" not in live.content
    assert "Completed 1" in text_of(live)


# --- Who may what ---------------------------------------------------------------------------------------------


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
        "authtoken.view_tokenproxy",
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


# --- Participants ---------------------------------------------------------------------------------------------


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
    assert re.search(r" -37 1\.5 ", page)
    assert re.search(r" 0 1\.5 ", page), "0 is an answer"


def test_the_page_of_a_participant_who_finished(client, researcher):
    page = text_of(client.get(change_url(walks.complete(factories.running_study()))))
    assert "Completed" in page
    assert "Ratings count Yes" in page
    assert "Fine" in page, "the feedback"


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


# --- Lists stay fast ------------------------------------------------------------------------------------------


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


# --- The first page -------------------------------------------------------------------------------------------


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
