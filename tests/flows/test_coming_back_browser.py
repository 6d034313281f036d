"""Reload, back, double submits, several tabs and devices: every answer is stored once, and none is lost."""

from collections import Counter

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from studies import selectors
from studies.models import Panel, RatingChange, Study
from tests import factories, walks
from tests.flows.participant_pages import (
    assert_accessible,
    click_scale,
    enter,
    enter_main,
    rate,
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


def test_a_double_click_on_any_button_of_the_way_answers_once(open_page, live_server, study):
    with open_page() as page:
        participation = enter(page, live_server, study)
        body, next_button = page.locator("body"), page.locator("[data-needs-images]")
        page.get_by_role("button", name="I agree").dblclick()
        for position in range(1, study.plate_count + 1):
            expect(page.locator(".counter")).to_contain_text(f"Plate {position} of")
            expect(next_button).to_be_enabled()
            plate = participation.plate_trials.get(position=position)
            page.keyboard.press(walks.right_plate_answer(plate)[0])
            next_button.dblclick()
        page.get_by_role("button", name="Continue").dblclick()
        for position in range(1, study.comprehension_pair_count + 1):
            expect(page.locator(".counter")).to_contain_text(f"Pair {position} of")
            expect(next_button).to_be_enabled()
            side = participation.pair_trials.get(position=position).modified_side
            page.keyboard.press("ArrowLeft" if side == "left" else "ArrowRight")
            next_button.dblclick()
        wait_for_item(page, 1)
        participation.refresh_from_db()
        walks.rate_all(participation)
        page.reload()
        page.get_by_role("button", name="Finish").dblclick()
        expect(body).to_have_attribute("data-outcome", "completed")
        happened = Counter(participation.events.values_list("name", flat=True))
        expected = {"consented": 1, "plate_answered": study.plate_count, "instructions_read": 1, "ended": 1}
        assert {name: happened[name] for name in expected} == expected


def test_of_two_tabs_the_one_opened_last_goes_on_and_nothing_is_sent_twice(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        sent = []
        page.context.on("request", lambda request: request.url.endswith("/rate/") and sent.append(request.url))
        click_scale(page, 30)
        other = page.context.new_page()
        other.goto(page.url)
        wait_for_item(other, 1)
        expect(page.get_by_role("heading", name="The study continues in another tab")).to_be_visible()
        assert_accessible(page)
        page.keyboard.press("End")
        rate(other, 1, -90)
        wait_for_item(other, 2)
        page.get_by_role("button", name="Continue here instead").click()
        wait_for_item(page, 2)
        expect(other.get_by_role("heading", name="The study continues in another tab")).to_be_visible()
        rate(page, 2, -20)
        wait_for_item(page, 3)
        assert values(participation) == [-90, -20]
        assert len(sent) == 2


def test_two_devices_rate_each_item_once(open_page, live_server):
    study = factories.running_study(panel=Panel.PROLIFIC, instructed_check_count=0)
    ids = {"PROLIFIC_PID": "5f1a" * 6, "STUDY_ID": "60aa" * 6, "SESSION_ID": "61bb" * 6}
    with open_page() as page, open_page() as other:
        participation = walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study, **ids))))
        page.reload()
        wait_for_item(page, 1)
        assert enter(other, live_server, study, **ids) == participation
        wait_for_item(other, 1)
        assert page.get_attribute("#stage img", "src") == other.get_attribute("#stage img", "src")
        rate(page, 1, 30)
        rate(page, 2, 40)
        wait_for_item(page, 3)
        rate(other, 1, -90)  # answered already: the first answer stands, and this device catches up
        rate(other, 3, 50)
        wait_for_item(other, 4)
        assert values(participation) == [30, 40, 50]


def test_a_tab_left_behind_finds_the_end_and_keeps_no_answer(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        page.wait_for_load_state("networkidle")
        page.context.set_offline(True)
        rate(page, 1, 30)
        rate(page, 2, 40)
        wait_for_item(page, 3)
        assert "40" in page.evaluate("Object.values(localStorage).join()")
        stored = values(walks.rate_all(participation))
        walks.give_feedback(participation.pk, {})
        page.context.set_offline(False)
        expect(page.locator("body")).to_have_attribute("data-outcome", "completed")
        assert page.evaluate("localStorage.length") == 0
        assert values(participation) == stored


def test_a_post_sent_again_by_hand_changes_nothing(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        with page.expect_request("**/rate/") as sent:
            rate(page, 1, 30)
        wait_for_item(page, 2)
        posted = {**sent.value.post_data_json, "value": -99}
        headers = {"X-CSRFToken": page.input_value("[name=csrfmiddlewaretoken]"), "Referer": page.url}
        answer = page.request.post(sent.value.url, data=posted, headers=headers)
        assert (answer.status, answer.json()["trial"]["position"]) == (200, 2)
        assert values(participation) == [30]


def test_a_terminal_page_has_no_way_back(open_page, live_server):
    study = factories.running_study(attention_policy="end_at_once", attention_failures_allowed=0)
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        while walks.current_trial(participation).kind == "image":
            walks.rate(participation)
        trial = walks.current_trial(participation)
        page.reload()
        wait_for_item(page, trial.position)
        page.keyboard.press("End" if walks.wrong_value(trial) > 0 else "Home")
        page.keyboard.press("Enter")
        body = page.locator("body")
        expect(body).to_have_attribute("data-outcome", "attention_failed")
        page.go_back()
        page.goto(live_server.url + reverse("studies:run", args=[study.slug]))
        expect(body).to_have_attribute("data-outcome", "attention_failed")
        enter(page, live_server, study)
        expect(body).to_have_attribute("data-outcome", "attention_failed")
        expect(page.locator("#rating-form, #continue, form[method=post]")).to_have_count(0)


def test_going_back_shows_the_answer_and_keeps_what_is_replaced(open_page, live_server):
    study = factories.running_study(may_go_back=True, instructed_check_count=0)
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        back = page.locator("#back")
        expect(back).to_be_disabled()
        rate(page, 1, 0)
        rate(page, 2, 50)
        wait_for_item(page, 3)
        for position, shown in ((2, "+50: rather modified"), (1, "0: undecided")):
            back.click()
            expect(page.locator("#position")).to_have_text(f"{position} of {study.trial_count}")
            expect(page.locator("#readout")).to_have_text(shown)  # also 0 comes back as an answer
            expect(page.locator("#slider")).not_to_have_class("slider unanswered")
        page.locator("#next").click()  # as it was: nothing is sent
        expect(page.locator("#readout")).to_have_text("+50: rather modified")
        click_scale(page, -70)
        page.locator("#next").click()
        wait_for_item(page, 3)
        assert values(participation) == [0, -70]
        assert list(RatingChange.objects.values_list("rating__trial__position", "value")) == [(2, 50)]
        rate(page, 3, 10)
        wait_for_item(page, 4)
        assert values(participation) == [0, -70, 10]


def test_answers_left_as_they_were_lead_back_to_where_one_was_also_without_a_connection(open_page, live_server):
    study = factories.running_study(may_go_back=True, instructed_check_count=0)
    given = [10, 20, 30, 40, 50]
    with open_page(faults_expected=True) as page:
        participation = enter_main(page, live_server, study)
        for value in given:
            walks.rate(participation, value)
        page.reload()
        wait_for_item(page, 6)
        page.evaluate("window.isSamePage = true")
        position = page.locator("#position")
        for earlier in (5, 4, 3, 2, 1):
            page.locator("#back").click()
            expect(position).to_have_text(f"{earlier} of {study.trial_count}")
            expect(page.locator("#next")).to_be_enabled()
        page.wait_for_load_state("networkidle")
        page.context.set_offline(True)
        for later in (2, 3, 4):
            page.locator("#next").click()
            expect(position).to_have_text(f"{later} of {study.trial_count}")
            expect(page.locator("#next")).to_be_enabled()
        page.locator("#next").click()  # what follows was not fetched
        notice = "There is no connection. Your last answer is kept in this browser, even if you close it. "
        expect(page.locator("#stage-notice")).to_contain_text(notice + "As soon as the connection is back it is saved")
        page.context.set_offline(False)
        expect(position).to_have_text(f"5 of {study.trial_count}")
        expect(page.locator("#readout")).to_have_text("+50: rather modified")
        page.locator("#next").click()
        wait_for_item(page, 6)
        assert page.evaluate("window.isSamePage")
        assert values(participation) == given
        assert not RatingChange.objects.exists()


def test_an_open_page_that_everybody_has_left_holds_no_place(open_page, live_server):
    study = factories.running_study(lease_minutes=5)
    with open_page() as page:
        page.clock.install()
        walks.consent(enter(page, live_server, study))
        page.reload()
        expect(page.locator("[data-needs-images]")).to_be_enabled()
        beats = []
        page.on("request", lambda request: request.url.endswith("/heartbeat/") and beats.append(request.url))
        page.clock.run_for(4.5 * 60_000)
        page.wait_for_timeout(200)
        assert len(beats) in {4, 5}, "somebody may be reading"
        page.clock.run_for(10 * 60_000)
        page.wait_for_timeout(200)
        assert len(beats) <= 5
        page.mouse.move(300, 300)
        with page.expect_request("**/heartbeat/"):
            page.clock.run_for(60_000)


def test_without_the_setting_there_is_no_way_back(open_page, live_server, study):
    with open_page() as page:
        enter_main(page, live_server, study)
        expect(page.locator("#back")).to_have_count(0)
