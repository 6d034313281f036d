"""The researchers' pages of recruitment: who may do what, what is refused, and what is never shown."""

import html
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from scooter_site.common.admin_tools import change_url
from scooter_site.demo.fake_prolific.faults import Fault
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID
from studies.admin.recruitment_form import RecruitmentForm
from studies.flow import Outcome
from studies.models import Panel, PanelStudy, Study, Submission, Workspace
from studies.services import recruitment_sync
from tests import factories
from tests.studies.admin_pages import account, text_of
from tests.studies.recruitment.pages import ask_and_do, do, page_of, seen_on

pytestmark = pytest.mark.django_db


def filled(panel_study, **changes) -> dict:
    names = ("workspace_id", "name", "description", "places", "minutes", "most_at_once", "screen_out_slots")
    data = {name.removesuffix("_id"): getattr(panel_study, name) for name in names}
    return {**data, "screen_out_pay": panel_study.screen_out_pay, **changes}


# --- Workspaces -----------------------------------------------------------------------------------------------


def workspace_data(**changes) -> dict:
    return {"name": "Laboratory", "workspace_id": WORKSPACE_ID, "currency": "GBP", "_save": "Save", **changes}


def test_a_token_can_be_entered_and_replaced_and_is_never_shown(admin_client, fake, settings):
    settings.PROLIFIC_API_URL = fake.url
    add = reverse("admin:studies_workspace_add")
    assert "Without a token" in text_of(admin_client.post(add, workspace_data()))
    assert "has no spaces" in text_of(admin_client.post(add, workspace_data(new_token="two words")))
    admin_client.post(add, workspace_data(new_token="the-first-token"))
    workspace = Workspace.objects.get()
    assert workspace.token == "the-first-token"
    change = reverse("admin:studies_workspace_change", args=[workspace.pk])
    shown = admin_client.get(change).content.decode()
    assert "the-first-token" not in shown
    assert workspace.encrypted_token not in shown
    admin_client.post(change, workspace_data(name="Renamed"))
    workspace.refresh_from_db()
    assert (workspace.name, workspace.token) == ("Renamed", "the-first-token")
    admin_client.post(change, workspace_data(new_token="the-second-token"))
    workspace.refresh_from_db()
    assert workspace.token == "the-second-token"


def test_trying_a_token(admin_client, workspace, fake):
    address = reverse("admin:studies_workspace_try", args=[workspace.pk])
    assert "it may use this workspace" in text_of(admin_client.post(address, follow=True))
    Workspace.objects.update(workspace_id="0" * 24)
    assert "not for a workspace with this id" in text_of(admin_client.post(address, follow=True))
    workspace.token = "wrong"
    workspace.save()
    assert "Prolific: Unauthorised. Invalid token" in text_of(admin_client.post(address, follow=True))
    assert admin_client.get(address).status_code == 405


def test_a_token_is_tried_when_it_is_saved_and_kept_all_the_same(admin_client, workspace):
    change = reverse("admin:studies_workspace_change", args=[workspace.pk])
    said = text_of(admin_client.post(change, workspace_data(new_token="wrong"), follow=True))
    assert "The workspace cannot be used yet. Prolific: Unauthorised. Invalid token" in said
    workspace.refresh_from_db()
    assert workspace.token == "wrong"
    said = text_of(admin_client.post(change, workspace_data(new_token=TOKEN), follow=True))
    assert "Prolific knows the token, and it may use this workspace" in said
    said = text_of(admin_client.post(change, workspace_data(currency="USD"), follow=True))
    assert "The token's account pays in GBP, and this workspace in USD" in said


def test_renaming_a_workspace_asks_nothing(admin_client, workspace, fake):
    admin_client.post(reverse("admin:studies_workspace_change", args=[workspace.pk]), workspace_data(name="Renamed"))
    assert fake.requests == []


def test_reading_that_failed_is_not_said_to_be_done(client, researcher, published, fake):
    fake.fail(Fault.SERVER_ERROR, "/submissions/")
    said = text_of(client.post(do(published, "read"), follow=True))
    assert "Prolific: Internal error. Something went wrong" in said
    assert "have been read" not in said
    fake.faults.rules.clear()
    assert "have been read" in text_of(client.post(do(published, "read"), follow=True))


def test_researchers_see_workspaces_and_change_none(client, researcher, workspace):
    assert client.get(reverse("admin:studies_workspace_change", args=[workspace.pk])).status_code == 200
    for name in ("try", "webhooks"):
        assert client.post(reverse(f"admin:studies_workspace_{name}", args=[workspace.pk])).status_code == 403


# --- The form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workspaces", "is_chosen"), [(["GBP"], True), (["USD"], False), (["GBP", "GBP"], False)])
def test_the_only_workspace_that_pays_in_the_currency_is_proposed(db, workspaces, is_chosen):
    made = [
        Workspace.objects.create(name=f"No. {number}", workspace_id=f"{number:024}", currency=currency)
        for number, currency in enumerate(workspaces)
    ]
    form = RecruitmentForm(study=factories.study(panel=Panel.PROLIFIC))
    assert form.fields["workspace"].initial == (made[0] if is_chosen else None)


def errors_of(panel_study, **changes) -> str:
    form = RecruitmentForm(filled(panel_study, **changes), study=panel_study.study, instance=panel_study)
    return html.unescape(form.errors.as_text())


def test_the_suggestions_are_accepted(panel_study):
    assert errors_of(panel_study) == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"minutes": 17}, "too little for 17 minutes: Prolific's minimum is GBP 1.70."),
        ({"places": 0}, "greater than or equal to 1"),
        ({"screen_out_slots": 0}, "Without a slot"),
        ({"description": "For people with normal colour vision."}, "colour vision"),
        ({"description": "Which images are MODIFIED?"}, "modified"),
        ({"name": "Adversarial images"}, "adversarial"),
    ],
)
def test_what_the_form_refuses(panel_study, changes, said):
    assert said in errors_of(panel_study, **changes)


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"hourly_rate": Decimal("5.99")}, "Prolific's minimum is GBP 6.00"),
        ({"minutes_colour_check": Decimal("0.5")}, "minimum for a screen-out is GBP 0.10"),
        ({"minutes_colour_check": Decimal(13)}, "not less than the full reward"),
        ({"currency": "USD", "hourly_rate": Decimal(12)}, "pays in USD and Laboratory in GBP"),
        ({"currency": "EUR"}, "not in EUR"),
    ],
)
def test_rates_that_prolific_refuses(panel_study, rates, said):
    for name, value in rates.items():
        setattr(panel_study.study, name, value)
    assert said in errors_of(panel_study)


def test_saving_sends_nothing_and_asks_for_a_new_estimate(client, researcher, panel_study, fake):
    PanelStudy.objects.update(estimated_cost_minor=1)
    answer = client.post(page_of(panel_study), filled(panel_study, places=7), follow=True)
    assert "Nothing has been sent to Prolific yet" in text_of(answer)
    panel_study.refresh_from_db()
    assert (panel_study.places, panel_study.reward_minor, panel_study.estimated_cost_minor) == (7, 165, None)
    assert fake.requests == []


def test_the_workspace_is_fixed_once_the_study_is_there_or_may_be(panel_study):
    other = Workspace.objects.create(name="Other", workspace_id="b" * 24)
    PanelStudy.objects.update(creation_begun_at=timezone.now())
    panel_study.refresh_from_db()
    form = RecruitmentForm(filled(panel_study, workspace=other.pk), study=panel_study.study, instance=panel_study)
    assert form.is_valid()
    assert form.save().workspace.name == "Laboratory"
    assert PanelStudy.objects.get().workspace.name == "Laboratory"


def test_saving_leaves_what_was_read_there_meanwhile(panel_study):
    form = RecruitmentForm(filled(panel_study, places=3), study=panel_study.study, instance=panel_study)
    assert form.is_valid()
    PanelStudy.objects.update(status="active", places_there=4)
    form.save()
    stored = PanelStudy.objects.get()
    assert (stored.places, stored.status, stored.places_there) == (3, "active", 4)


# --- Doing ----------------------------------------------------------------------------------------------------


def test_the_page_of_a_running_study_leads_to_recruitment_and_not_to_a_link_that_is_refused(
    client, spender, panel_study, fake
):
    page = client.get(change_url(panel_study.study))
    assert "Running. Next: Recruitment" in text_of(page)
    assert "share the link" not in text_of(page)
    assert f'<a class="text-link" href="{page_of(panel_study)}">Go to Recruitment</a>' in page.content.decode()
    for name in ("create", "estimate"):
        client.post(do(panel_study, name))
    ask_and_do(client, panel_study, "publish")
    read = PanelStudy.objects.get().read_at
    recruiting = text_of(client.get(page_of(panel_study)))
    assert f"Places as Prolific gave them on {read:%-d %B %Y, %H:%M} UTC; submissions as known now." in recruiting
    assert "Running: participants come from Prolific" in text_of(client.get(change_url(panel_study.study)))
    direct = text_of(client.get(change_url(factories.running_study())))
    assert "Running: share the link below" in direct
    assert "Recruitment hands it" not in direct


def test_from_draft_to_stop(client, spender, panel_study, fake):
    for name in ("create", "estimate", "publish", "pause", "resume", "stop"):
        ask_and_do(client, panel_study, name)
    ask_and_do(client, panel_study, "places", number="9")
    [there] = fake.world.studies.values()
    assert (there["status"], there["total_available_places"]) == ("ACTIVE", 9)
    assert there["external_study_url"].startswith(f"http://testserver/s/{panel_study.study.slug}/?PROLIFIC_PID=")
    history = client.get(reverse("admin:studies_study_history", args=[panel_study.study_id]))
    assert "On Prolific: Publish." in text_of(history)


def test_places_that_only_prolific_has_are_shown_and_can_be_had_here(client, researcher, published, fake):
    there = fake.world.studies[published.panel_id]
    there["total_available_places"] = 9
    client.post(do(published, "read"))
    said = text_of(client.get(page_of(published)))
    assert "Prolific sends up to 9 people, and there are places for 4 here: the last 5 would be turned away" in said
    raising = reverse("admin:studies_study_recruitment_places", args=[published.study_id])
    assert client.get(raising).status_code == 302
    assert "no whole number" in text_of(client.post(raising, {"number": "-9"}, follow=True))
    assert "There are 4 places" in text_of(client.post(raising, {"number": "4"}, follow=True))
    said = text_of(client.post(raising, {"number": "9"}, follow=True))
    assert "There are 9 places now." in said
    assert "would be turned away" not in said
    history = client.get(reverse("admin:studies_study_history", args=[published.study_id]))
    assert "Raised the places to 9." in text_of(history)
    client.force_login(account("studies.view_study", "studies.view_panelstudy", name="reader"))
    assert client.post(raising, {"number": "10"}).status_code == 403


def test_places_that_were_given_back_after_all_had_been_taken_are_shown(client, researcher, published, fake):
    page = page_of(published)
    taken = [fake.submit(fake.arrive(published.panel_id)["id"], None)["id"] for _ in range(4)]
    fake.give_back(taken[0])
    client.post(do(published, "read"))
    assert fake.world.studies[published.panel_id]["status"] == "AWAITING REVIEW"
    # Nobody of them was here, so that all four places are free.
    researcher.user_permissions.add(Permission.objects.get(codename="spend_panelstudy"))
    answer = client.get(page)
    assert "raise the places to 7." in text_of(answer)
    assert 'min="5" value="7"' in answer.content.decode()
    Study.objects.update(status="closed")
    assert "raise the places to" not in text_of(client.get(page))


def test_places_of_a_study_without_prolific_are_raised_on_the_same_page(client, researcher):
    study = factories.running_study()
    page = reverse("admin:studies_study_recruitment", args=[study.pk])
    assert "Raise places here" in text_of(client.get(page))
    raising = reverse("admin:studies_study_recruitment_places", args=[study.pk])
    client.post(raising, {"number": "7"})
    study.refresh_from_db()
    assert study.place_count == 7
    Study.objects.update(status="closed")
    assert "Raise places here" not in text_of(client.get(page))


def test_a_get_changes_nothing(client, spender, panel_study, fake):
    for name in ("create", "publish", "stop"):
        assert client.get(do(panel_study, name)).status_code == 200
    assert fake.requests == []
    assert client.get(do(panel_study, "explode")).status_code == 404


def test_spending_is_asked_about_with_its_number_and_what_it_pays(client, spender, published, fake):
    asked = text_of(client.get(do(published, "places"), {"number": "9"}))
    # 5 places more at 1.65, and slots at 0.13
    assert "Raise places “" in asked
    assert "Rewards for 5 more GBP 8.25" in asked
    assert 'name="number" value="9"' in client.get(do(published, "places"), {"number": "9"}).content.decode()
    assert "Screen-outs for 3 more GBP 0.39" in text_of(client.get(do(published, "slots"), {"number": "5"}))
    client.post(do(published, "pause"))
    asked = text_of(client.get(do(published, "resume")))
    assert "Places still free 4" in asked
    assert "Rewards for them GBP 6.60" in asked
    assert fake.world.studies[published.panel_id]["status"] == "PAUSED"
    said = text_of(client.get(do(published, "places"), {"number": "4"}, follow=True))
    assert "There are 4 places: Prolific only takes a larger number." in said
    assert "no whole number" in text_of(client.get(do(published, "slots"), follow=True))


def test_what_was_asked_for_is_on_record_even_where_the_answer_is_lost(client, spender, published, fake):
    seen = seen_on(client.get(do(published, "places"), {"number": "9"}))
    fake.fail(Fault.SERVER_ERROR)
    client.post(do(published, "places"), {"number": "9", "seen": seen})
    history = text_of(client.get(reverse("admin:studies_study_history", args=[published.study_id])))
    assert "On Prolific: Raise places: 9." in history
    assert "On Prolific: Raise places was refused, or not answered." in history
    assert "Raised the places to 9." in history


def test_spending_needs_a_permission_of_its_own(client, researcher, published, fake):
    for name in ("publish", "resume", "places", "slots"):
        assert client.post(do(published, name), {"number": "9"}).status_code == 403
    assert client.post(do(published, "pause")).status_code == 302
    assert "Resume" not in text_of(client.get(page_of(published)))


def test_viewers_see_and_others_do_not(client, published):
    client.force_login(account("studies.view_study", "studies.view_panelstudy", name="looker"))
    assert "Recruiting" in text_of(client.get(page_of(published)))
    assert client.post(do(published, "pause")).status_code == 403
    assert client.post(page_of(published), filled(published)).status_code == 403
    filters = reverse("admin:studies_study_recruitment_filters", args=[published.study_id])
    assert client.get(filters).status_code == 403
    client.force_login(account("studies.view_study", name="stranger"))
    assert client.get(page_of(published)).status_code == 403


def test_the_services_own_words_are_shown(client, spender, panel_study, fake):
    fake.settings.refuses_fixed_screen_outs = True
    said = text_of(client.post(do(panel_study, "create"), follow=True))
    assert "FIXED_SCREEN_OUT_PAYMENT is not available in this workspace" in said
    assert "choose “Manual review”" in said


@pytest.mark.parametrize("number", ["", "-1", "9.5", "x", "³"])
def test_numbers_that_are_none(client, spender, published, number):
    assert "is no whole number" in text_of(client.post(do(published, "places"), {"number": number}, follow=True))


def test_a_number_that_is_too_large_is_told_the_largest(client, spender, published):
    answer = client.post(do(published, "places"), {"number": "1000000"}, follow=True)
    assert "“1000000” is too many: the largest total is 999,999." in text_of(answer)


def test_a_service_that_is_away_while_filters_are_looked_for(client, researcher, panel_study, fake):
    fake.fail(Fault.SERVER_ERROR)
    filters = reverse("admin:studies_study_recruitment_filters", args=[panel_study.study_id])
    assert "Prolific: Internal error" in text_of(client.get(filters, follow=True))


def test_the_id_there_cannot_be_edited_any_more(client, researcher, published):
    change = reverse("admin:studies_study_change", args=[published.study_id])
    assert 'name="prolific_study_id"' not in client.get(change).content.decode()
    assert Study.objects.get().prolific_study_id == published.panel_id


def test_a_panel_of_any_kind_has_links_and_codes(client, researcher):
    study = factories.running_study(panel=Panel.DIRECT)
    said = client.get(reverse("admin:studies_study_recruitment", args=[study.pk])).content.decode()
    assert f"/s/{study.slug}/" in said
    assert all(code.code in said for code in study.completion_codes.all())


# --- Submissions ----------------------------------------------------------------------------------------------


@pytest.fixture
def waiting(published, fake) -> Submission:
    one = fake.arrive(published.panel_id)
    fake.submit(one["id"], None)
    recruitment_sync.read_panel_study(published.pk)
    return Submission.objects.get()


def test_ids_are_shown_to_those_who_may_see_them(client, researcher, waiting):
    addresses = [
        reverse("admin:studies_submission_changelist") + "?review=waiting",
        reverse("admin:studies_submission_change", args=[waiting.pk]),
    ]
    for address in addresses:
        content = client.get(address).content.decode()
        assert waiting.participant_id not in content
        assert waiting.submission_id not in content
    by_id = reverse("admin:studies_submission_changelist") + f"?q={waiting.participant_id}"
    assert "0 submissions" in text_of(client.get(by_id))
    researcher.user_permissions.add(Permission.objects.get(codename="view_participantidentity"))
    assert waiting.participant_id in client.get(addresses[1]).content.decode()
    assert "1 submission" in text_of(client.get(by_id))


def test_staff_read_what_a_code_stands_for(client, researcher, published, fake):
    codes = dict(published.study.completion_codes.values_list("code", "outcome"))
    assert set(codes.values()) == {outcome for outcome in Outcome if outcome.has_code}
    said = {code: Outcome(outcome).label for code, outcome in codes.items()} | {"SHARED22": "none of this study's"}
    fake.world.studies[published.panel_id]["total_available_places"] = 20
    for code in said:
        fake.submit(fake.arrive(published.panel_id)["id"], code)
    fake.submit(fake.arrive(published.panel_id)["id"], None)
    recruitment_sync.read_panel_study(published.pk)
    for submission in Submission.objects.all():
        page = text_of(client.get(reverse("admin:studies_submission_change", args=[submission.pk])))
        entered = submission.entered_code
        assert (f"{entered}: {said[entered]}" if entered in said else "NOCODE") in page


def test_deciding(client, researcher, waiting, fake):
    settle = reverse("admin:studies_submission_settle", args=[waiting.pk])
    assert client.get(settle).status_code == 405
    assert "Choose what is to be done" in text_of(client.post(settle, {"offer": "shout"}, follow=True))
    seen = seen_on(client.get(reverse("admin:studies_submission_change", args=[waiting.pk])))
    assert "changed meanwhile" in text_of(client.post(settle, {"offer": "approve"}, follow=True))
    assert "changed meanwhile" in text_of(client.post(settle, {"offer": "bonus", "seen": seen}, follow=True))
    assert "Decided: Approve" in text_of(client.post(settle, {"offer": "approve", "seen": seen}, follow=True))
    waiting.refresh_from_db()
    assert (waiting.settled_with, waiting.settled_by, waiting.review_reason) == ("approve", "researcher", "")
    assert fake.world.payments == []
    client.force_login(account("studies.view_submission", name="looker"))
    assert client.post(settle, {"offer": "nothing"}).status_code == 403


def test_the_list_asks_the_same_number_of_queries_for_many(
    client, researcher, published, fake, django_assert_max_num_queries
):
    for _ in range(4):
        fake.submit(fake.arrive(published.panel_id)["id"], None)
    recruitment_sync.read_panel_study(published.pk)
    with django_assert_max_num_queries(14):
        client.get(reverse("admin:studies_submission_changelist"))
