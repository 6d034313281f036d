"""The rating scale in real Chromium: by mouse, by keyboard and by finger."""

import re

import pytest
from playwright.sync_api import Page, expect

from studies.models import Rating, Study
from tests import factories
from tests.flows.participant_pages import (
    PHONE,
    click_scale,
    enter_main,
    expect_values,
    values,
    wait_for_item,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]


@pytest.fixture
def study() -> Study:
    return factories.running_study(instructed_check_count=0, corrupted_check_count=1)


def test_nothing_is_preset_and_a_click_on_the_middle_is_the_answer_zero(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        expect(page.locator("#slider")).to_have_class(re.compile("unanswered"))
        assert page.get_attribute("#slider-input", "aria-valuetext") == "not answered yet"
        page.keyboard.press("Enter")
        page.locator("#question").click()
        expect(page.locator("#next")).to_be_disabled()
        click_scale(page, 0)
        expect(page.locator("#readout")).to_have_text("0: undecided")
        page.locator("#next").click()
        wait_for_item(page, 2)
        expect(page.locator("#slider")).to_have_class(re.compile("unanswered"))
        page.keyboard.press("Space")  # a key on the start position answers with it
        expect(page.locator("#readout")).to_have_text("0: undecided")
        page.keyboard.press("Enter")
        wait_for_item(page, 3)
        assert values(participation) == [0, 0]
        rating = Rating.objects.get(trial__participation=participation, trial__position=1)
        assert 0 < rating.first_interaction_ms <= rating.last_interaction_ms <= rating.response_ms
        assert rating.focus_losses == 0


def test_enter_on_another_button_does_not_send_the_rating(open_page, live_server, study):
    with open_page(permissions=["clipboard-read", "clipboard-write"]) as page:
        participation = enter_main(page, live_server, study)
        click_scale(page, 40)
        page.get_by_text("Continue on another device").click()
        page.get_by_role("button", name="Copy").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert values(participation) == []
        expect(page.locator("#position")).to_have_text(re.compile("^1 of "))
        page.locator("#next").focus()
        page.keyboard.press("Enter")
        wait_for_item(page, 2)
        assert values(participation) == [40]
        rating = Rating.objects.get(trial__participation=participation)
        assert (rating.start_position, rating.first_interaction_ms > 0) == (None, True)


def test_a_drag_follows_the_mouse_beyond_the_scale(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        box = page.locator("#slider-input").bounding_box()
        page.mouse.move(box["x"] + 100, box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] + 60, box["y"] - 80, steps=5)
        page.mouse.up()
        expect(page.locator("#readout")).to_have_text("+100: certainly modified")
        click_scale(page, -37)
        expect(page.locator("#readout")).to_have_text("−37: rather unmodified")
        page.locator("#next").click()
        wait_for_item(page, 2)
        assert values(participation) == [-37]


@pytest.mark.parametrize(
    ("key", "value"),
    [("ArrowRight", 1), ("ArrowDown", -1), ("PageUp", 20), ("PageDown", -20), ("Home", -100), ("End", 100)],
)
def test_every_key_of_a_slider_answers(open_page, live_server, study, key, value):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        page.keyboard.press(key)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "next"
        page.keyboard.press("Enter")
        wait_for_item(page, 2)
        assert values(participation) == [value]


def test_a_double_click_and_held_keys_do_not_rate_the_next_image(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        click_scale(page, 50)
        page.locator("#next").dblclick()
        wait_for_item(page, 2)
        page.keyboard.press("ArrowRight")
        for _ in range(40):  # held down: the browser repeats the key
            page.keyboard.down("Enter")
        page.keyboard.up("Enter")
        wait_for_item(page, 3)
        for _ in range(30):
            page.keyboard.down("ArrowRight")
        page.keyboard.down("Enter")
        for _ in range(60):
            page.keyboard.down("ArrowRight")
            page.wait_for_timeout(15)
        wait_for_item(page, 4)
        page.keyboard.up("ArrowRight")
        expect(page.locator("#slider")).to_have_class(re.compile("unanswered"))
        assert values(participation) == [50, 1, 30]


def touch(page: Page, *points: tuple[float, float]) -> None:
    """Put a finger on the first point, move it over the others, and lift it."""
    session = page.context.new_cdp_session(page)
    for number, (x, y) in enumerate(points):
        kind = "touchMove" if number else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        page.wait_for_timeout(20)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_finger_across_moves_the_slider_and_a_finger_down_scrolls(open_page, live_server):
    study = factories.running_study(phones_allowed=True, instructed_check_count=0)
    with open_page(**{**PHONE, "viewport": {"width": 390, "height": 500}}) as page:
        participation = enter_main(page, live_server, study)
        page.evaluate("window.scrollTo(0, 40)")
        box = page.locator("#slider-input").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        touch(page, *((x, y - step * 6) for step in range(14)))
        page.wait_for_function("window.scrollY > 60")
        expect(page.locator("#slider")).to_have_class(re.compile("unanswered"))
        expect(page.locator("#next")).to_be_disabled()

        scroll_to_40(page)
        touch(page, *((x + step * 5, y + step * 3) for step in range(12)))
        assert page.evaluate("window.scrollY") == 40
        dragged = int(page.input_value("#slider-input"))
        assert 10 < dragged < 60
        expect(page.locator("#next")).to_be_enabled()

        touch(page, *((x, y - step * 6) for step in range(14)))
        page.wait_for_function("window.scrollY > 60")
        assert int(page.input_value("#slider-input")) == dragged, "scrolling leaves the answer as it was"

        scroll_to_40(page)
        touch(page, (x, y))
        expect(page.locator("#readout")).to_have_text("0: undecided")
        page.locator("#next").tap()
        wait_for_item(page, 2)
        assert values(participation) == [0]


def test_scrolling_over_the_slider_is_no_touch_of_the_scale(open_page, live_server):
    study = factories.running_study(phones_allowed=True, instructed_check_count=0)
    with open_page(**{**PHONE, "viewport": {"width": 390, "height": 500}}) as page:
        participation = enter_main(page, live_server, study)
        scroll_to_40(page)
        box = page.locator("#slider-input").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch(page, *((x, y - step * 6) for step in range(14)))
        page.wait_for_function("window.scrollY > 60")
        scroll_to_40(page)
        scrolled_at = page.evaluate("performance.now()")
        page.wait_for_timeout(50)
        touch(page, (x, y))
        page.locator("#next").tap()
        expect_values(page, participation, [0])
        rating = Rating.objects.get(trial__participation=participation)
        shown_at = rating.client_ms - rating.response_ms
        assert shown_at + rating.first_interaction_ms > scrolled_at


def scroll_to_40(page):
    """Once the page has come to rest: a finger's swing carries on for some frames."""
    page.evaluate(
        """() => new Promise((rested) => {
            let last = -1;
            let frames = 0;
            const look = () => {
                frames = window.scrollY === last ? frames + 1 : 0;
                last = window.scrollY;
                if (frames > 15) rested();
                else requestAnimationFrame(look);
            };
            look();
        })"""
    )
    page.evaluate("window.scrollTo(0, 40)")
    page.wait_for_function("window.scrollY === 40")


def test_five_points_by_mouse(open_page, live_server):
    study = factories.running_study("field", instructed_check_count=0)
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        for position, value in enumerate((0, -2), start=1):
            page.locator(f"label:has(input[value='{value}'])").click()
            page.locator("#next").click()
            wait_for_item(page, position + 1)
            expect(page.locator("#likert input:checked")).to_have_count(0)
        assert values(participation) == [0, -2]


@pytest.mark.parametrize("preset", ["paper", "field"])
def test_on_a_phone_the_image_stays_where_it_is_when_it_is_answered(open_page, live_server, preset):
    study = factories.running_study(preset, phones_allowed=True, instructed_check_count=0, break_every=1)
    with open_page(**PHONE) as page:
        enter_main(page, live_server, study)
        question = page.locator("#question")
        before = question.bounding_box()
        page.locator("#likert .choice, #slider-input").last.tap()
        expect(page.locator("#next")).to_be_enabled()
        assert question.bounding_box() == before
        page.locator("#next").tap()
        expect(page.locator("#break-end")).to_be_visible()
        assert question.bounding_box() == before
