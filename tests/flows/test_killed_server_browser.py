"""The web server is killed and started anew under a real browser: the participant goes on, and no answer is lost."""

import re

import pytest
from playwright.sync_api import expect

from studies.flow import Step
from tests import factories
from tests.flows.participant_pages import click_scale, enter_main, expect_values, rate, wait_for_item
from tests.services.site import production_server

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _patience():
    """The server needs a moment to start, and the page asks again after up to eight seconds."""
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def server(tmp_path, transactional_db):
    running = production_server(tmp_path)
    yield running
    running.stop()
    print(running.log.read_text())  # shown when the test fails


def test_a_participant_goes_on_through_a_server_that_is_killed_twice(open_page, server):
    study = factories.running_study(instructed_check_count=0)
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, server, study)
        rate(page, 1, 10)
        wait_for_item(page, 2)
        page.wait_for_load_state("networkidle")  # the next images are there

        # Killed while nothing is on its way: answers wait in the browser.
        server.kill()
        for position, value in ((2, 0), (3, -7), (4, 42)):
            rate(page, position, value)
        expect(page.locator("#stage-notice")).to_contain_text("Your last 3 answers are kept in this browser")
        server.start()
        wait_for_item(page, 5)
        expect_values(page, participation, [10, 0, -7, 42])

        # Killed while an answer is on its way: it is stored or it is not, and sent again either way.
        expect(page.locator("#remaining")).to_have_text(re.compile("left$"))
        click_scale(page, 55)
        page.locator("#next").click(no_wait_after=True)
        server.kill()
        server.start()
        wait_for_item(page, 6)
        expect_values(page, participation, [10, 0, -7, 42, 55])

        # The browser is closed at the worst moment and the page opened again.
        server.kill()
        rate(page, 6, -100)
        server.start()
        page.reload()
        given = [10, 0, -7, 42, 55, -100]
        for position in range(7, study.trial_count + 1):
            rate(page, position, position)
            given.append(position)
        expect(page.locator("body")).to_have_attribute("data-step", Step.FEEDBACK)
        page.get_by_role("button", name="Finish").click()
        expect(page.locator("body")).to_have_attribute("data-step", Step.END)
        expect_values(page, participation, given)
        assert page.evaluate("localStorage.length") == 0
