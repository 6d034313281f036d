"""What the page of the main study measures and when it asks to wait, in real Chromium with a clock of its own."""

from decimal import Decimal

import pytest
from playwright.sync_api import Page, expect

from studies.services.participations import return_participation
from tests import factories, walks
from tests.flows.participant_pages import (
    assert_accessible,
    click_scale,
    enter,
    enter_main,
    wait_for_item,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

HOUR = 3600


def set_hidden(page: Page, hidden: bool) -> None:
    """As the browser tells it when another tab is looked at."""
    page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def run_until_open(page: Page, position: int) -> None:
    """Let the page's time go on until the item can be rated."""
    for _ in range(200):
        page.clock.run_for(50)
        if page.locator("#slider-input").is_enabled():
            break
    wait_for_item(page, position)


def test_what_is_measured_about_an_answer(open_page, live_server):
    study = factories.running_study(instructed_check_count=0)
    with open_page(device_scale_factor=2) as page:
        page.clock.install(time=0)
        participation = enter_main(page, live_server, study)
        page.clock.pause_at(HOUR)
        set_hidden(page, True)
        page.clock.run_for(3000)
        page.evaluate("window.dispatchEvent(new Event('blur'))")  # the window tells the same loss again
        set_hidden(page, False)
        page.clock.run_for(2000)
        page.evaluate("window.dispatchEvent(new Event('blur'))")
        page.evaluate("window.dispatchEvent(new Event('focus'))")
        click_scale(page, 10)
        page.clock.run_for(700)
        click_scale(page, 20)
        page.clock.run_for(300)
        now = page.evaluate("performance.now()")
        with page.expect_response("**/rate/"):
            page.locator("#next").click()
        rating = participation.trials.get(position=1).rating
        assert rating.response_ms - rating.visible_ms == pytest.approx(3000, abs=1)
        assert rating.last_interaction_ms - rating.first_interaction_ms == pytest.approx(700, abs=1)
        assert rating.response_ms - rating.last_interaction_ms == pytest.approx(300, abs=1)
        assert rating.client_ms == pytest.approx(now, abs=1)
        assert rating.focus_losses == 2
        assert (rating.shown_width, rating.shown_height) == (128, 96), "64 x 48, in pixels of the device"
        run_until_open(page, 2)
        click_scale(page, 30)
        with page.expect_response("**/rate/"):
            page.locator("#next").click()
        rating = participation.trials.get(position=2).rating
        assert rating.focus_losses == 0
        assert rating.visible_ms == rating.response_ms < 1000, "measured anew for every item"


def test_looking_first_breaks_the_time_left_and_a_place_that_is_kept(open_page, live_server):
    study = factories.running_study(minimum_viewing_ms=3000, break_every=2, instructed_check_count=0)
    assert (study.trial_count, study.minutes_of_ratings) == (7, Decimal("10.5"))
    with open_page(faults_expected=True) as page:
        page.clock.install()
        participation = walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        page.reload()
        expect(page.locator("#viewing")).to_be_visible()
        set_hidden(page, True)
        expect(page.locator("#readout")).to_have_text("Look at the image first.")
        expect(page.locator("#remaining")).to_have_text("about 11 minutes left")
        page.wait_for_timeout(3500)  # time in which nobody looks does not count
        click_scale(page, 50)
        expect(page.locator("#slider-input")).to_be_disabled()
        set_hidden(page, False)
        wait_for_item(page, 1)
        expect(page.locator("#viewing")).to_be_hidden()

        participation.refresh_from_db()
        before = participation.lease_expires_at
        with page.expect_response("**/heartbeat/") as beat:
            page.clock.fast_forward(10 * 60_000)
        assert beat.value.status == 204
        participation.refresh_from_db()
        assert participation.lease_expires_at > before

        # A pause of ten minutes counts as five times the planned 10.5 / 7 minutes, and the plan as eight items:
        # (8 + 5) / 9 of the plan for each of the six that are left.
        click_scale(page, 50)
        page.locator("#next").click()
        wait_for_item(page, 2)
        expect(page.locator("#remaining")).to_have_text("about 13 minutes left")
        click_scale(page, 50)
        page.locator("#next").click()
        expect(page.locator("#break-text")).to_contain_text("2 of 7 done")
        expect(page.locator("#break-end")).to_be_focused()
        assert_accessible(page)
        page.keyboard.press("Enter")
        wait_for_item(page, 3)

        walks.give_feedback(walks.rate_all(participation).pk, {})
        page.clock.fast_forward(60_000)
        expect(page.locator("body")).to_have_attribute("data-outcome", "completed")


def test_a_place_is_kept_while_somebody_reads_the_instructions(open_page, live_server):
    study = factories.running_study()
    with open_page(faults_expected=True) as page:
        page.clock.install()
        participation = walks.answer_plates(walks.consent(enter(page, live_server, study)))
        page.reload()
        before = participation.lease_expires_at
        with page.expect_response("**/heartbeat/") as beat:
            page.clock.fast_forward(2 * 60_000)
        assert beat.value.status == 204
        participation.refresh_from_db()
        assert participation.lease_expires_at > before
        return_participation(participation.pk)  # meanwhile, on the panel
        page.clock.fast_forward(2 * 60_000)
        expect(page.locator("body")).to_have_attribute("data-outcome", "returned")


def test_without_javascript_there_is_nothing_to_rate(open_page, live_server):
    study = factories.running_study()
    with open_page(java_script_enabled=False) as page:
        walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        page.reload()
        expect(page.locator("body")).to_have_attribute("data-step", "main")
        expect(page.locator("noscript .problem")).to_be_visible()
        expect(page.locator("#rating-form")).to_be_hidden()
