"""In real Chromium: live numbers that keep themselves up to date, and a question on its way there and back."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from scooter_site.common.admin_tools import change_url
from studies.models import ParticipantMessage, Participation
from tests import factories, walks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

NAME, PASSWORD = "researcher", "correct-horse-battery"
PHONE = {"width": 390, "height": 844}
HIDE_AND_SHOW = """
    window.isHidden = false;
    Object.defineProperty(document, "hidden", { get: () => window.isHidden });
"""


def sign_in(page: Page, address: str) -> None:
    User.objects.create_superuser(NAME, password=PASSWORD)
    page.goto(f"{address}/admin/")
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_live_numbers_come_by_themselves_and_only_while_somebody_looks(live_server, open_page):
    study = factories.running_study()
    with open_page() as page:
        page.add_init_script(HIDE_AND_SHOW)
        sign_in(page, live_server.url)
        page.clock.install()
        page.goto(live_server.url + reverse("admin:studies_study_monitor", args=[study.pk]))
        expect(page.get_by_text("Nobody has arrived yet.")).to_be_visible()
        walks.enter(study)
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.get_by_role("link", name="All participants").focus()
        page.clock.run_for(10_500)
        expect(page.get_by_role("row", name="Consent 1")).to_be_visible()
        expect(page.get_by_role("link", name="All participants")).to_be_focused()
        assert len(asked) == 1

        page.set_viewport_size(PHONE)
        table = page.get_by_role("region", name="Step by step", exact=True)
        table.evaluate("element => { element.scrollLeft = 60 }")
        walks.enter(study)
        page.clock.run_for(10_500)
        expect(page.get_by_role("row", name="Consent 2")).to_be_visible()
        assert table.evaluate("element => element.scrollLeft") == 60
        assert len(asked) == 2

        page.evaluate("window.isHidden = true")
        page.clock.run_for(120_000)
        assert len(asked) == 2
        walks.enter(study)
        page.evaluate("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.get_by_role("row", name="Consent 3")).to_be_visible()
        assert len(asked) == 3


def test_a_question_and_its_answer_by_keyboard_on_a_phone(live_server, open_page):
    study = factories.running_study(phones_allowed=True)
    with open_page(viewport=PHONE) as page:
        page.goto(f"{live_server.url}{reverse('studies:landing', args=[study.slug])}?id=anna")
        link = page.get_by_role("link", name="Contact the researchers")
        link.focus()
        with page.expect_popup() as opened:
            page.keyboard.press("Enter")
        contact = opened.value
        expect(contact.get_by_role("heading", name="Contact the researchers")).to_be_visible()
        contact.keyboard.press("Tab")
        expect(contact.get_by_label("Your question")).to_be_focused()
        contact.keyboard.type("May I use a <b>tablet</b>?")
        contact.keyboard.press("Tab")
        contact.keyboard.press("Enter")
        expect(contact.get_by_role("status")).to_contain_text("Your message has been sent.")
        assert Axe().run(contact).response["violations"] == []
        assert contact.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

        message = ParticipantMessage.objects.get()
        with open_page(viewport=PHONE) as researcher:
            sign_in(researcher, live_server.url)
            researcher.goto(live_server.url + change_url(message))
            expect(researcher.get_by_text("May I use a <b>tablet</b>?")).to_be_visible()
            researcher.locator("#id_answer").focus()
            researcher.keyboard.type("Yes, a large one.")
            researcher.get_by_role("button", name="Save", exact=True).press("Enter")
            expect(researcher.get_by_text("was changed successfully")).to_be_visible()
            assert researcher.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.reload()
        page.get_by_role("link", name="Read the researchers’ answer").focus()
        with page.expect_popup() as opened:
            page.keyboard.press("Enter")
        expect(opened.value.get_by_text("Yes, a large one.")).to_be_visible()


def test_whom_the_rules_point_at_is_excluded_by_keyboard(live_server, open_page):
    study = factories.running_study(buffer_percent=100, attention_rule="flag")
    careless = [walks.complete(study, failed_checks=1) for _ in range(3)]
    good = walks.complete(study)
    with open_page() as page:
        sign_in(page, live_server.url)
        page.goto(live_server.url + reverse("admin:studies_study_quality", args=[study.pk]))
        boxes = page.get_by_role("checkbox", name="Exclude participation")
        expect(boxes).to_have_count(3)
        page.get_by_label("Tick all").focus()
        page.keyboard.press("Space")
        for box in boxes.all():
            expect(box).to_be_checked()
        boxes.first.uncheck()
        expect(page.get_by_label("Tick all")).not_to_be_checked()
        kept = boxes.first.input_value().partition(":")[0]
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert Axe().run(page, context="#main").response["violations"] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_label("Reason to exclude who is ticked").focus()
        page.keyboard.type("Told to press a value, and did not")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("2 participants excluded")).to_be_visible()
        assert set(Participation.objects.filter(is_valid=True)) == {good, Participation.objects.get(pk=kept)}

        page.goto(live_server.url + change_url(careless[0]))
        expect(page.get_by_role("heading", name="Quality and decisions")).to_be_visible()
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert Axe().run(page, context=".scooter-card").response["violations"] == []
