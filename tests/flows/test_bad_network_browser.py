"""Bad networks in real Chromium: a participant goes on, every answer arrives once, and none is lost."""

import json
import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from studies.models import Study
from studies.views import rating
from tests import factories, walks
from tests.flows.participant_pages import (
    assert_accessible,
    click_scale,
    enter,
    enter_main,
    expect_values,
    rate,
    values,
    wait_for_item,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]


@pytest.fixture
def study() -> Study:
    return factories.running_study(instructed_check_count=0, corrupted_check_count=1)


def test_three_answers_wait_while_there_is_no_connection(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        page.wait_for_load_state("networkidle")  # the next images are there
        sent = []
        page.on("request", lambda request: request.url.endswith("/rate/") and sent.append(request.post_data_json))
        page.context.set_offline(True)
        for position, value in ((1, 42), (2, 0), (3, -7)):
            rate(page, position, value)
        expect(page.locator("#stage-notice")).to_contain_text("Your last 3 answers are kept in this browser")
        expect(page.locator("#remaining")).to_have_text("No connection: 3 answers kept")
        expect(page.locator("#slider-input")).to_be_disabled()
        expect(page.locator("#next")).to_be_disabled()
        assert_accessible(page)
        assert values(participation) == []
        page.context.set_offline(False)
        wait_for_item(page, 4)
        expect(page.locator("#stage-notice")).to_be_hidden()
        expect(page.locator("#remaining")).to_have_text(re.compile("left$"))
        expect_values(page, participation, [42, 0, -7])
        rate(page, 4, 90)
        wait_for_item(page, 5)
        assert values(participation) == [42, 0, -7, 90]
        arrived = [answer["value"] for answer in sent if answer["value"] != 42]
        assert arrived == [0, -7, 90], "in order, and each once"


def test_closing_and_reopening_the_browser_sends_what_waits(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        page.wait_for_load_state("networkidle")
        address = page.url
        page.context.set_offline(True)
        rate(page, 1, 0)
        rate(page, 2, -33)
        wait_for_item(page, 3)
        disk = page.context.storage_state()  # what a closed browser keeps
    assert values(participation) == []
    assert "5f1a" not in str(disk["origins"]), "no id of a panel"
    with open_page(storage_state=disk) as page:
        page.goto(address)
        wait_for_item(page, 3)
        expect_values(page, participation, [0, -33])
        rate(page, 3, 12)
        wait_for_item(page, 4)
        assert values(participation) == [0, -33, 12]


def test_the_end_comes_only_when_the_server_has_everything(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        for _ in range(study.trial_count - 1):
            participation = walks.rate(participation)
        page.reload()
        held = []
        page.route("**/rate/", lambda route: held.append(route))
        rate(page, study.trial_count, 100)
        expect(page.locator("#stage-notice")).to_have_text("Saving your last answer…")
        for address in ("run", "landing"):  # clicking through at once
            other = page.context.request.get(live_server.url + reverse(f"studies:{address}", args=[study.slug]))
            assert 'data-step="main"' in other.text()
            assert "completion" not in other.text()
        page.wait_for_timeout(2000)
        expect(page.locator("body")).to_have_attribute("data-step", "main")
        assert len(values(participation)) == study.trial_count - 1
        held[0].continue_()
        expect(page.locator("body")).to_have_attribute("data-step", "feedback")
        page.get_by_role("button", name="Finish").click()
        expect(page.locator("body")).to_have_attribute("data-outcome", "completed")
        assert len(values(participation)) == study.trial_count
        assert page.evaluate("localStorage.length") == 0


def test_an_answer_whose_acknowledgement_was_lost_is_stored_once(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        attempts = []

        def lose_the_first_reply(route):
            attempts.append(route.request.post_data)
            if len(attempts) == 1:
                route.fetch()
                route.abort()
            else:
                route.continue_()

        page.route("**/rate/", lose_the_first_reply)
        rate(page, 1, 42)
        wait_for_item(page, 2)
        expect(page.locator("#remaining")).to_have_text(re.compile("left$"))
        assert len(attempts) == 2
        assert attempts[0] == attempts[1]
        assert [name for name in json.loads(attempts[0]) if f"``{name}``" not in rating.__doc__] == []
        rate(page, 2, 43)
        wait_for_item(page, 3)
        assert values(participation) == [42, 43]


def test_going_back_without_an_answer_of_the_server_leaves_the_page_usable(open_page, live_server):
    study = factories.running_study(may_go_back=True, instructed_check_count=0)
    notice = "Going back needs a connection"
    with open_page(faults_expected=True) as page:
        page.clock.install()
        participation = enter_main(page, live_server, study)
        rate(page, 1, 10)
        wait_for_item(page, 2)
        page.route("**/back/", lambda route: route.fulfill(content_type="text/html", body="Log in"), times=1)
        page.locator("#back").click()
        expect(page.locator("#stage-notice")).to_contain_text(notice)
        click_scale(page, 20)
        expect(page.locator("#stage-notice")).to_be_hidden()
        held = []
        page.route("**/back/", lambda route: held.append(route), times=1)
        page.locator("#back").click()
        expect(page.locator("#slider-input")).to_be_disabled()
        page.clock.run_for(21_000)
        expect(page.locator("#stage-notice")).to_contain_text(notice)
        expect(page.locator("#readout")).to_have_text("+20: perhaps modified")  # what was set and not sent yet
        page.locator("#next").click()
        expect_values(page, participation, [10, 20])


def test_a_slow_server_holds_nobody_up(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        page.wait_for_load_state("networkidle")
        held = []
        page.route("**/rate/", lambda route: held.append(route), times=1)
        rate(page, 1, 1)
        rate(page, 2, 2)
        wait_for_item(page, 3)
        assert values(participation) == [], "the second waits for its turn"
        held.pop().continue_()
        expect_values(page, participation, [1, 2])
        expect(page.locator("#position")).to_have_text(re.compile("^3 of "))
        rate(page, 3, 3)
        wait_for_item(page, 4)
        assert values(participation) == [1, 2, 3]


@pytest.mark.parametrize("status", [500, 502, 429])
def test_a_server_in_trouble_is_asked_again(open_page, live_server, study, status):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        page.route("**/rate/", lambda route: route.fulfill(status=status), times=2)
        rate(page, 1, 42)
        expect_values(page, participation, [42])
        wait_for_item(page, 2)


def test_a_reload_in_the_middle_of_saving_loses_nothing(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        page.route("**/rate/", lambda route: route.abort())
        rate(page, 1, 0)
        wait_for_item(page, 2)
        assert values(participation) == []
        page.unroute("**/rate/")
        page.reload()
        wait_for_item(page, 2)
        expect_values(page, participation, [0])


def test_a_refused_answer_can_be_given_again(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        Study.objects.filter(pk=study.pk).update(scale_maximum=50)
        rate(page, 1, 90)
        expect(page.locator("#stage-notice")).to_contain_text("Please answer this item again")
        rate(page, 1, 40)
        wait_for_item(page, 2)
        assert values(participation) == [40]


def test_a_session_that_is_lost_keeps_the_answer_for_when_the_link_is_opened_again(open_page, live_server):
    study = factories.running_study(panel="prolific", instructed_check_count=0)
    ids = {"PROLIFIC_PID": "5f1a" * 6, "STUDY_ID": "60aa" * 6, "SESSION_ID": "61bb" * 6}
    with open_page(faults_expected=True) as page:
        participation = walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study, **ids))))
        page.reload()
        wait_for_item(page, 1)
        page.context.clear_cookies()
        rate(page, 1, 0)
        expect(page.get_by_role("heading", name="Please open your link again")).to_be_visible()
        enter(page, live_server, study, **ids)
        wait_for_item(page, 2)
        expect_values(page, participation, [0])


def test_a_browser_that_stores_nothing_still_sends_everything(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked'); }})")
        participation = enter_main(page, live_server, study)
        page.route("**/rate/", lambda route: route.abort(), times=1)
        rate(page, 1, 5)
        rate(page, 2, 6)
        wait_for_item(page, 3)
        expect_values(page, participation, [5, 6])


def test_the_scale_opens_only_when_the_image_is_there(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        page.route("**/images/trial/**", lambda route: route.abort())
        page.reload()
        expect(page.locator("#stage-notice")).to_contain_text("The image has not arrived yet")
        expect(page.locator("#slider-input")).to_be_disabled()
        click_scale(page, 30)
        expect(page.locator("#next")).to_be_disabled()
        page.wait_for_timeout(3000)
        page.unroute("**/images/trial/**")
        wait_for_item(page, 1)
        assert page.evaluate("document.querySelector('#stage img').naturalWidth") == 64
        assert values(participation) == []
        rate(page, 1, 30)
        wait_for_item(page, 2)
        rating = participation.trials.get(position=1).rating
        assert 0 < rating.response_ms < 3000, "the time it took to load is no part of it"


def test_an_expired_image_is_fetched_again_without_a_word(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        refused = []

        def expire(route):
            refused.append(route.request.url)
            route.fulfill(status=403)

        page.route("**/images/trial/**", expire, times=1)
        said = []
        page.expose_function("said", lambda text: said.append(text))
        page.add_init_script(
            "addEventListener('DOMContentLoaded', () => new MutationObserver((changes) => changes.forEach((change) =>"
            " said(change.target.textContent))).observe(document.getElementById('stage-notice'), {childList: true}))"
        )
        page.reload()
        wait_for_item(page, 1)
        assert len(refused) == 1
        assert not [text for text in said if "not arrived" in text]


def test_an_image_that_is_gone_reloads_the_page_once_and_not_for_ever(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        page.route("**/images/trial/**", lambda route: route.fulfill(status=404))
        loads = []
        page.on("request", lambda request: request.url.endswith("/run/") and loads.append(request.url))
        page.reload()
        page.wait_for_timeout(6000)
        expect(page.locator("#stage-notice")).to_contain_text("We keep trying")
        assert len(loads) == 2


@pytest.mark.parametrize("part", ["plate", "pair"])
def test_a_plate_or_pair_that_is_gone_reloads_the_page_once_for_each_image(open_page, live_server, study, part):
    with open_page(faults_expected=True) as page:
        participation = walks.consent(enter(page, live_server, study))
        if part == "pair":
            walks.finish_instructions(walks.answer_plates(participation).pk)
        loads = []
        page.on("request", lambda request: request.url.endswith("/run/") and loads.append(request.url))
        page.route(f"**/images/{part}**", lambda route: route.fulfill(status=404))
        page.reload()
        page.wait_for_timeout(6000)
        expect(page.locator("[data-load-notice]")).to_contain_text("not arrived yet")
        assert 2 <= len(loads) <= 1 + page.locator("[data-must-load]").count()
        page.locator("input[name=answer]").first.check()
        page.unroute(f"**/images/{part}**")
        expect(page.locator("[data-needs-images]")).to_be_enabled()
        expect(page.locator("input[name=answer]").first).to_be_checked()


def test_a_plate_that_has_not_arrived_cannot_be_answered(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = walks.consent(enter(page, live_server, study))
        page.route("**/images/plate/**", lambda route: route.abort())
        page.reload()
        page.keyboard.press("5")
        page.keyboard.press("Enter")
        expect(page.locator("[data-load-notice]")).to_contain_text("not arrived yet")
        expect(page.locator("[data-needs-images]")).to_be_disabled()
        page.unroute("**/images/plate/**")
        expect(page.locator("[data-needs-images]")).to_be_enabled()
        assert participation.plate_trials.exclude(answer="").count() == 0


def test_each_image_is_fetched_once(open_page, live_server, study):
    with open_page() as page:
        fetched = []
        page.on("request", lambda request: "/images/trial/" in request.url and fetched.append(request.url))
        enter_main(page, live_server, study)
        for position in range(1, 4):
            wait_for_item(page, position)
            page.keyboard.press("End")
            page.keyboard.press("Enter")
        wait_for_item(page, 4)
        page.wait_for_load_state("networkidle")
        assert len(fetched) == len(set(fetched)) == 7, "four shown, three ahead"
