"""Paying people by clicking alone, against the stand-in: prepared, one rejected, confirmed, paid."""

import pytest
from playwright.sync_api import Page, expect

from studies.models import PaymentRun
from studies.services import recruitment_sync
from tests.flows.test_admin_browser import sign_in
from tests.flows.test_recruitment_browser import look, press
from tests.studies.pay.conftest import fake, published, workspace
from tests.studies.pay.people import completed, paid_by_submission, returned_screen_out, session

__all__ = ["fake", "published", "workspace"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

MESSAGE = (
    "You failed the attention checks at items 12 and 57, which said in words which end of the scale to choose there."
)


def tab_to(page: Page, text: str) -> None:
    """Press Tab until what is in focus says so, and shows that it is."""
    for _ in range(80):
        page.keyboard.press("Tab")
        said, outline = page.evaluate(
            "(one => [one.innerText, getComputedStyle(one).outlineStyle])(document.activeElement)"
        )
        if said.strip() == text:
            assert outline != "none"
            return
    pytest.fail(f"Tab does not lead to {text}.")


def test_from_what_is_due_to_paid_by_clicking(live_server, open_page, fake, published):
    done, rejected = completed(fake, published), completed(fake, published, failed_checks=2)
    screened = returned_screen_out(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    with open_page() as page:
        sign_in(page, live_server.url)
        page.goto(f"{live_server.url}/admin/studies/study/{published.study_id}/change/")
        page.get_by_role("link", name="Payments", exact=True).click()
        expect(page.get_by_text("GBP 3.43 for 3 people, without fees")).to_be_visible()
        look(page, "payments-1-due")
        press(page, "Prepare a payment run")
        # Who pays may have no mouse.
        tab_to(page, "Reject instead")
        page.keyboard.press("Enter")
        expect(page.get_by_label("What the participant reads")).to_be_visible()
        look(page, "payments-2-run")
        for _ in range(2):  # past the ground
            page.keyboard.press("Tab")
        page.keyboard.type(MESSAGE)
        tab_to(page, "Reject instead")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Approve after all")).to_be_visible()
        tab_to(page, "Confirm and pay GBP 1.78")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Carried out")).to_be_visible()
        look(page, "payments-3-carried-out")

        page.goto(f"{live_server.url}/admin/studies/demographics/study/{published.study_id}/")
        look(page, "payments-4-demographics")
    assert paid_by_submission(fake) == {session(done): [165], session(screened): [13]}
    assert fake.world.submissions[session(rejected)]["status"] == "REJECTED"
    assert PaymentRun.objects.get().finished_at is not None
