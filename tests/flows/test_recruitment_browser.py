"""A study on Prolific from the workspace to its end, by clicking alone, against the stand-in."""

import os
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from scooter_site.demo.fake_prolific import FakeProlific
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID
from studies.models import Panel, PanelStudy, Submission, WebhookEvent, Workspace
from tests import factories
from tests.flows.test_admin_browser import save, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]


def look(page: Page, name: str) -> None:
    """No rule of accessibility is broken in what is ours; and a screenshot, where SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=str(Path(folder) / f"{name}-{width}.png"), full_page=True)
    if not page.locator(".scooter-card").count():
        return  # a list of the admin's own making
    violations = Axe().run(page, context={"include": [[".scooter-card"]]}).response["violations"]
    assert [(one["id"], node["target"]) for one in violations for node in one["nodes"]] == []


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def fact(page: Page, label: str) -> str:
    return (
        page.locator("dl.scooter-facts > div", has=page.locator("dt", has_text=label)).locator("dd").first.inner_text()
    )


@pytest.fixture
def fake(settings):
    with FakeProlific() as running:
        settings.PROLIFIC_API_URL = running.url
        yield running


def test_from_a_workspace_to_a_stopped_study_by_clicking(live_server, open_page, fake):
    study = factories.running_study(panel=Panel.PROLIFIC, title="Roofs", minimum_viewport_width=300)
    with open_page() as page:
        sign_in(page, live_server.url)

        # The workspace: its token goes in and never comes out.
        page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/recruitment/")
        look(page, "recruitment-1-no-workspace")
        page.get_by_role("link", name="Add a workspace").click()
        page.locator("#id_name").fill("Laboratory")
        page.locator("#id_workspace_id").fill(WORKSPACE_ID)
        page.locator("#id_new_token").fill(TOKEN)
        save(page)
        press(page, "Try the token")
        expect(page.get_by_text("it may use this workspace")).to_be_visible()
        press(page, "Set up webhooks")
        expect(page.get_by_text("Prolific now tells this site what changes.")).to_be_visible()
        look(page, "recruitment-2-workspace")
        assert TOKEN not in page.content()
        assert Workspace.objects.get().token == TOKEN

        # What is asked for.
        page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/recruitment/")
        page.get_by_label("Workspace").select_option(label="Laboratory")
        page.locator("#id_description").fill("Rate images and say which are modified.")
        press(page, "Save")
        expect(page.get_by_text("tells who is let in or what the study is about")).to_be_visible()
        look(page, "recruitment-3-form-error")
        page.locator("#id_description").fill("You will look at images and rate them.")
        page.locator("#id_screen_out_slots").fill("1")
        press(page, "Save")
        expect(page.get_by_text("Nothing has been sent to Prolific yet.")).to_be_visible()
        assert fake.world.studies == {}

        page.get_by_role("link", name="Find and confirm filters").click()
        expect(page.get_by_label("English")).to_be_checked()
        expect(page.get_by_label("No", exact=True)).to_be_checked()
        expect(page.get_by_label("French")).not_to_be_checked()
        look(page, "recruitment-4-filters")
        press(page, "Confirm these")
        expect(page.get_by_text("30,000 people on Prolific may take part")).to_be_visible()

        press(page, "Create the draft on Prolific")
        expect(page.get_by_text("The draft is on Prolific.")).to_be_visible()
        press(page, "Estimate the cost")
        expect(page.get_by_text("Next: publish it")).to_be_visible()
        assert fact(page, "With fees and VAT") == "GBP 9.85"  # 9.22 and (0.13 + 0.32) x 9.22 / 6.60
        look(page, "recruitment-5-estimated")

        page.get_by_role("link", name="Publish…").click()
        expect(page.get_by_text("Fluent languages: English")).to_be_visible()
        look(page, "recruitment-6-publish")
        press(page, "Publish")
        expect(page.get_by_text("The study is published")).to_be_visible()
        [there] = fake.world.studies.values()
        assert there["status"] == "ACTIVE"
        assert there["external_study_url"].startswith(f"{live_server.url}/s/{study.slug}/?PROLIFIC_PID={{{{%")

        press(page, "Pause")
        expect(page.locator(".scooter-headline", has_text="Paused")).to_be_visible()
        assert there["status"] == "PAUSED"
        page.get_by_role("link", name="Resume…").click()
        expect(page.get_by_text("Rewards for them")).to_be_visible()
        look(page, "recruitment-6-resume")
        press(page, "Resume")
        expect(page.locator(".scooter-headline", has_text="Recruiting")).to_be_visible()
        page.get_by_label("New total of places").fill("6")
        press(page, "Raise places…")
        assert fact(page, "Rewards for 2 more") == "GBP 3.30"
        look(page, "recruitment-6-places")
        press(page, "Raise places")
        expect(page.get_by_text("The places have been raised.")).to_be_visible()
        assert there["total_available_places"] == 6
        assert fact(page, "With fees and VAT") == "GBP 14.91"  # 13.83 and (0.13 + 2 x 0.32) x 13.83 / 9.90

        # Somebody fails the colour check, which uses the only slot; somebody else submits without having been here.
        colour_check = study.completion_codes.get(outcome="colour_check_failed").code
        fake.submit(fake.arrive(there["id"])["id"], colour_check)
        fake.hooks.flush()
        assert WebhookEvent.objects.filter(processed_at__isnull=False).exists()
        page.reload()
        expect(page.get_by_text("Paused by Prolific: all screen-out slots are used")).to_be_visible()
        look(page, "recruitment-7-out-of-slots")
        page.get_by_label("New total of screen-out slots").fill("3")
        press(page, "Raise screen-out slots…")
        press(page, "Raise screen-out slots")
        page.get_by_role("link", name="Resume…").click()
        press(page, "Resume")
        fake.submit(fake.arrive(there["id"])["id"], None)
        fake.hooks.flush()

        press(page, "Read from Prolific now")
        page.get_by_role("link", name=re.compile(r"To decide \(2\)")).click()
        look(page, "recruitment-8-queue")
        page.get_by_role("link", name=f"no. {Submission.objects.latest('pk').pk}, never seen here").click()
        look(page, "recruitment-9-decision")
        press(page, "Ask to return")
        expect(page.locator(".scooter-headline", has_text="Decided: Ask to return")).to_be_visible()
        assert len(fake.world.messages) == 1
        assert Submission.objects.exclude(review_reason="").count() == 1

        page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/recruitment/")
        page.get_by_role("link", name="Stop…").click()
        press(page, "Stop")
        expect(page.get_by_text("The study is stopped on Prolific.")).to_be_visible()
        assert there["status"] == "COMPLETED"
        assert PanelStudy.objects.get().status == "completed"
        look(page, "recruitment-10-stopped")


def test_other_panels_work_with_links_and_codes_alone(live_server, open_page):
    study = factories.running_study(title="Roofs")
    with open_page() as page:
        sign_in(page, live_server.url)
        page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/change/")
        page.get_by_role("link", name="Recruitment").click()
        expect(page.get_by_label("Participant link")).to_have_value(f"{live_server.url}/s/{study.slug}/")
        for code in study.completion_codes.all():
            expect(page.get_by_text(code.code)).to_be_visible()
        look(page, "recruitment-generic")
