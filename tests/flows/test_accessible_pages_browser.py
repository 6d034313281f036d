"""axe-core on the participant's pages beside the steps: every end, every page that turns somebody away, contact.

The steps themselves are looked at on the whole way by keyboard (test_participant_browser).
"""

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.urls import reverse
from playwright.sync_api import Page, expect

from scooter_site.common.rates import Rate
from studies.flow import Outcome
from studies.models import Panel, ParticipantMessage, Participation, Study, StudyStatus
from studies.services.messages import answer_message
from studies.services.pointer import end_participation, locked_participation
from tests import factories, walks
from tests.flows.participant_pages import (
    PHONE,
    assert_accessible,
    assert_fits,
    click_scale,
    enter,
    wait_for_item,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

PID, STUDY = "5f1a" * 6, "60aa" * 6


def ids(session: int) -> dict[str, str]:
    return {"PROLIFIC_PID": f"{session:024x}", "STUDY_ID": STUDY, "SESSION_ID": f"{session:024x}"}


def end(participation: Participation, outcome: Outcome) -> None:
    with transaction.atomic():
        participation = locked_participation(participation.pk)
        end_participation(participation, outcome)
        participation.save()


def assert_fine(page: Page) -> None:
    assert_accessible(page)
    assert_fits(page)


@pytest.mark.parametrize("panel", [Panel.DIRECT, Panel.PROLIFIC])
def test_every_end_is_accessible_and_fits_a_phone(open_page, live_server, panel):
    study = factories.running_study(panel=panel, phones_allowed=True, buffer_percent=100, participants_per_dataset=4)
    with open_page(**PHONE) as page:
        page.route("https://app.prolific.com/**", lambda route: route.fulfill(body="Prolific"))
        for number, outcome in enumerate(Outcome):
            arrival = ids(number) if panel == Panel.PROLIFIC else {"id": f"p{number}"}
            end(enter(page, live_server, study, **arrival), outcome)
            page.reload()
            expect(page.locator("body")).to_have_attribute("data-outcome", outcome)
            assert_fine(page)


def test_every_page_that_turns_somebody_away_is_accessible_and_fits_a_phone(open_page, live_server):
    direct = factories.running_study(contact_email="researchers@example.org")
    prolific = factories.running_study(panel=Panel.PROLIFIC, prolific_study_id=STUDY)

    def landing(study: Study, query: str = "") -> str:
        return live_server.url + reverse("studies:landing", args=[study.slug]) + query

    def link(**changed: str) -> str:
        return "?" + "&".join(f"{name}={value}" for name, value in {**ids(1), **changed}.items())

    with open_page(faults_expected=True, **PHONE) as page:

        def shows(reason: str, address: str = "") -> None:
            if address:
                page.goto(address)
            expect(page.locator("body")).to_have_attribute("data-notice", reason)
            assert_fine(page)

        shows("unknown_study", f"{live_server.url}/s/no-such-study/")
        shows("missing", landing(prolific))
        shows("placeholder", landing(prolific, link(PROLIFIC_PID="{{%PROLIFIC_PID%}}")))
        shows("preview", landing(prolific, link(SESSION_ID="abcdefghijkl")))
        shows("other_study", landing(prolific, link(STUDY_ID="0" * 24)))
        shows("malformed", landing(prolific, link(SESSION_ID="x")))
        shows("empty", landing(direct, "?id="))
        shows("unknown_session", landing(direct, "?session=" + "0" * 32))
        shows("no_session", live_server.url + reverse("studies:run", args=[direct.slug]))

        end(enter(page, live_server, prolific, **ids(2)), Outcome.COMPLETED)
        shows("already_took_part", landing(prolific, link(**{**ids(2), "SESSION_ID": "9" * 24})))

        for study in (direct, prolific):
            newcomer = landing(study, link(**ids(3)) if study == prolific else "?id=new")
            for status, reason in (
                (StudyStatus.READY, "not_started"),
                (StudyStatus.PAUSED, "paused"),
                (StudyStatus.CLOSED, "closed"),
            ):
                Study.objects.filter(pk=study.pk).update(status=status)
                shows(reason, newcomer)
            Study.objects.filter(pk=study.pk).update(status=StudyStatus.RUNNING, participants_per_dataset=0)
            shows("full", newcomer)
            Study.objects.filter(pk=study.pk).update(participants_per_dataset=2)


def test_who_is_asked_to_wait_reads_an_accessible_page(open_page, live_server, settings):
    cache.clear()
    settings.THROTTLE_RATES = {**settings.THROTTLE_RATES, "arrivals": Rate(1, 3600)}
    study = factories.running_study(phones_allowed=True)
    with open_page(faults_expected=True, **PHONE) as page:
        for wanted in ({"data-step": "colour_check"}, {"data-notice": "too_many_arrivals"}):
            page.context.clear_cookies()
            enter(page, live_server, study)
            page.get_by_role("button", name="I agree").click()
            for name, value in wanted.items():
                expect(page.locator("body")).to_have_attribute(name, value)
        assert_fine(page)


def test_forms_that_cannot_be_taken_are_accessible(open_page, live_server):
    study = factories.running_study(panel=Panel.PROLIFIC)
    with open_page(faults_expected=True) as page:
        enter(page, live_server, study, **ids(1))
        page.evaluate("document.querySelectorAll('[data-measure]').forEach((field) => delete field.dataset.measure)")
        page.get_by_role("button", name="I agree").click()
        expect(page.locator("body")).to_have_attribute("data-notice", "not_measured")
        assert_fine(page)
        page.get_by_role("link", name="Try again").click()
        page.evaluate("document.querySelector('[data-measure=width]').removeAttribute('data-measure')")
        page.evaluate("document.querySelector('[name=viewport_width]').value = '300'")
        page.get_by_role("button", name="I agree").click()
        expect(page.locator("body")).to_have_attribute("data-notice", "window_too_small")
        assert_fine(page)
        page.get_by_role("link", name="Try again").click()
        page.context.clear_cookies(name="csrftoken")
        page.get_by_role("button", name="I agree").click()
        expect(page.locator("body")).to_have_attribute("data-notice", "page_expired")
        assert_fine(page)


def test_contact_is_accessible_with_a_problem_and_with_an_answer(open_page, live_server):
    study = factories.running_study(phones_allowed=True)
    with open_page(faults_expected=True, **PHONE) as page:
        participation = enter(page, live_server, study)
        page.goto(live_server.url + reverse("studies:contact", args=[study.slug]))
        page.locator("#contact-text").evaluate("(field) => field.removeAttribute('required')")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("alert")).to_contain_text("Please write your question first")
        assert_fine(page)
        page.get_by_label("Your question").fill("Why? " + "x" * 200)
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("status")).to_contain_text("Your message has been sent")
        answer_message(ParticipantMessage.objects.get().pk, "Because.", User.objects.create_user("ada"))
        page.reload()
        expect(page.get_by_text("New:")).to_be_visible()
        assert_fine(page)
        assert participation.messages.count() == 1


def test_what_comes_between_the_images_is_accessible(open_page, live_server):
    study = factories.running_study(
        phones_allowed=True, break_every=1, minimum_viewing_ms=4000, may_go_back=True, instructed_check_count=0
    )
    with open_page(faults_expected=True, **PHONE) as page:
        walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        page.reload()
        expect(page.locator("#readout")).to_have_text("Look at the image first.")
        assert_fine(page)
        wait_for_item(page, 1)
        click_scale(page, 37)
        assert_fine(page)
        page.locator("#next").click()
        expect(page.locator("#break-end")).to_be_focused()
        assert_fine(page)
        page.keyboard.press("Enter")
        wait_for_item(page, 2)
        expect(page.locator("#back")).to_be_enabled()
        assert_fine(page)
