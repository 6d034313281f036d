"""Reload, back, several tabs and bad networks: every answer is stored once, and none is lost."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from studies import selectors
from studies.models import Study
from tests import factories, walks
from tests.flows.participant_pages import (
    click_scale,
    enter,
    enter_main,
    values,
    wait_for_item,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]


@pytest.fixture
def study() -> Study:
    return factories.running_study(instructed_check_count=0, corrupted_check_count=1)


def test_reload_and_back_show_the_item_that_is_current(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        click_scale(page, 10)
        page.locator("#next").click()
        wait_for_item(page, 2)
        image = page.get_attribute("#stage img", "src")
        page.reload()
        wait_for_item(page, 2)
        assert page.get_attribute("#stage img", "src") == image
        page.goto("about:blank")
        page.go_back()
        wait_for_item(page, 2)
        click_scale(page, 20)
        page.locator("#next").click()
        wait_for_item(page, 3)
        assert values(participation) == [10, 20]


def test_back_after_a_plate_shows_the_next_plate_and_answers_nothing_twice(open_page, live_server, study):
    with open_page() as page:
        participation = walks.consent(enter(page, live_server, study))
        page.reload()
        first = selectors.current_plate(participation)
        page.keyboard.press(walks.right_plate_answer(first)[0])
        expect(page.locator("[data-needs-images]")).to_be_enabled()
        page.keyboard.press("Enter")
        expect(page.locator(".counter")).to_contain_text("Plate 2 of")
        page.go_back()
        page.wait_for_load_state()
        page.goto(live_server.url + reverse("studies:run", args=[study.slug]))
        expect(page.locator(".counter")).to_contain_text("Plate 2 of")
        assert participation.plate_trials.exclude(answer="").count() == 1


def test_two_tabs_rate_each_item_once(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        other = page.context.new_page()
        other.goto(page.url)
        wait_for_item(other, 1)
        click_scale(page, 30)
        page.locator("#next").click()
        wait_for_item(page, 2)
        click_scale(other, -90)  # answered already: the first answer stands, and this tab catches up
        other.locator("#next").click()
        wait_for_item(other, 2)
        click_scale(other, -20)
        other.locator("#next").click()
        wait_for_item(other, 3)
        assert values(participation) == [30, -20]


def test_a_tab_left_behind_finds_the_end(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        walks.give_feedback(walks.rate_all(participation).pk, {})
        click_scale(page, 30)
        page.locator("#next").click()
        expect(page.locator("body")).to_have_attribute("data-outcome", "completed")


def test_offline_keeps_the_answer_and_goes_on_by_itself(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        click_scale(page, 42)
        page.context.set_offline(True)
        page.locator("#next").click()
        expect(page.locator("#stage-notice")).to_contain_text("You are offline. Your answer is kept")
        expect(page.locator("#position")).to_have_text(re.compile("^1 of "))
        expect(page.locator("#next")).to_be_disabled()
        assert values(participation) == []
        page.context.set_offline(False)
        wait_for_item(page, 2)
        expect(page.locator("#stage-notice")).to_be_hidden()
        assert values(participation) == [42]


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
        click_scale(page, 42)
        page.locator("#next").click()
        wait_for_item(page, 2)
        assert len(attempts) == 2
        assert attempts[0] == attempts[1]
        assert values(participation) == [42]


def test_a_reload_in_the_middle_of_saving_loses_nothing(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        page.route("**/rate/", lambda route: route.abort())
        click_scale(page, 0)
        page.locator("#next").click()
        expect(page.locator("#stage-notice")).to_contain_text("We keep trying")
        page.unroute("**/rate/")
        page.reload()
        wait_for_item(page, 2)
        assert values(participation) == [0]


def test_a_refused_answer_can_be_given_again(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        Study.objects.filter(pk=study.pk).update(scale_maximum=50)
        click_scale(page, 90)
        page.locator("#next").click()
        expect(page.locator("#stage-notice")).to_contain_text("Please answer this item again")
        click_scale(page, 40)
        page.locator("#next").click()
        wait_for_item(page, 2)
        assert values(participation) == [40]


def test_the_scale_opens_only_when_the_image_is_there(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
        page.route("**/images/trial/**", lambda route: route.abort())
        page.reload()
        expect(page.locator("#stage-notice")).to_contain_text("The image has not arrived yet")
        expect(page.locator("#slider-input")).to_be_disabled()
        click_scale(page, 30)
        expect(page.locator("#next")).to_be_disabled()
        page.unroute("**/images/trial/**")
        wait_for_item(page, 1)
        assert page.evaluate("document.querySelector('#stage img').naturalWidth") == 64
        assert values(participation) == []


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
        assert len(fetched) == len(set(fetched)) == 6, "four shown, two ahead"
