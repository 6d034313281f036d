"""The participant's pages in real Chromium: by mouse, by keyboard and by finger, and when the network fails."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from studies import selectors
from studies.flow import Step
from studies.models import Panel, Participation, Rating, Study, TrialKind
from tests import factories, walks

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

THUMB = 28
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def study() -> Study:
    return factories.running_study(instructed_check_count=0, corrupted_check_count=1)


def enter(page: Page, live_server, study: Study, **parameters: str) -> Participation:
    """Open the study's link; the participation it made."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    page.goto(live_server.url + reverse("studies:landing", args=[study.slug]) + (f"?{query}" if query else ""))
    return Participation.objects.select_related("study").latest("id")


def enter_main(page: Page, live_server, study: Study) -> Participation:
    """Open the study's link, and be at the first image by the services."""
    participation = walks.answer_pairs(walks.answer_plates(walks.consent(enter(page, live_server, study))))
    page.reload()
    wait_for_item(page, 1)
    return participation


def wait_for_item(page: Page, position: int) -> None:
    """The item is there, shown, and can be rated."""
    expect(page.locator("#position")).to_have_text(re.compile(rf"^{position} of "))
    expect(page.locator("#slider-input, #likert input").first).to_be_enabled()
    expect(page.locator("#stage img.stage-image, #stage-text:visible")).to_have_count(1)
    expect(page.locator("#next")).to_be_disabled()


def click_scale(page: Page, value: int) -> None:
    box = page.locator("#slider-input").bounding_box()
    page.mouse.click(box["x"] + THUMB / 2 + (value + 100) / 200 * (box["width"] - THUMB), box["y"] + box["height"] / 2)


def values(participation: Participation) -> list[int]:
    """Stored ratings in the order of their items."""
    ratings = Rating.objects.filter(trial__participation=participation).order_by("trial__position")
    return list(ratings.values_list("value", flat=True))


def assert_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


# --- The whole way --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "options"), [("paper", {}), ("field", PHONE)])
def test_the_whole_study_by_keyboard_with_every_page_accessible(open_page, live_server, preset, options):
    study = factories.running_study(preset, phones_allowed=True)
    with open_page(**options) as page:
        participation = enter(page, live_server, study)
        body = page.locator("body")

        def at(step: Step) -> None:
            expect(body).to_have_attribute("data-step", step.value)
            assert_accessible(page)
            assert_fits(page)

        def tab_to(name: str) -> None:
            for _ in range(30):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.textContent").strip() == name:
                    return
            raise AssertionError(f"Tab does not reach {name}")

        at(Step.CONSENT)
        tab_to("I agree, start")
        page.keyboard.press("Enter")
        for position in range(1, study.plate_count + 1):
            expect(page.locator(".counter")).to_contain_text(f"Plate {position} of")
            at(Step.COLOUR_CHECK)
            expect(page.locator("[data-needs-images]")).to_be_enabled()
            answer = walks.right_plate_answer(participation.plate_trials.get(position=position))
            page.keyboard.press(answer[0])
            page.keyboard.press("Enter")
        at(Step.INSTRUCTIONS)
        tab_to("Continue")
        page.keyboard.press("Enter")
        for position in range(1, study.comprehension_pair_count + 1):
            expect(page.locator(".counter")).to_contain_text(f"Pair {position} of")
            at(Step.COMPREHENSION)
            expect(page.locator("[data-needs-images]")).to_be_enabled()
            side = participation.pair_trials.get(position=position).modified_side
            page.keyboard.press("ArrowLeft" if side == "left" else "ArrowRight")
            page.keyboard.press("Enter")
        wanted = []
        for position in range(1, study.trial_count + 1):
            wait_for_item(page, position)
            trial = participation.trials.get(position=position)
            if position == 1 or trial.kind == TrialKind.INSTRUCTED:
                at(Step.MAIN)
            value = walks.right_value(trial) if trial.kind != TrialKind.IMAGE else study.scale_maximum - position % 4
            wanted.append(value)
            if preset == "field":
                page.keyboard.press(str(value + 3))
            else:
                page.keyboard.press("Home" if value < 0 else "End")
                for _ in range(study.scale_maximum - abs(value)):
                    page.keyboard.press("ArrowRight" if value < 0 else "ArrowLeft")
            page.keyboard.press("Enter")
        at(Step.FEEDBACK)
        tab_to("Finish")
        page.keyboard.press("Enter")
        at(Step.END)
        expect(body).to_have_attribute("data-outcome", "completed")
    assert values(participation) == wanted


# --- The slider -----------------------------------------------------------------------------------------------


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

        page.evaluate("window.scrollTo(0, 40)")
        page.wait_for_function("window.scrollY === 40")
        touch(page, *((x + step * 5, y + step * 3) for step in range(12)))
        assert page.evaluate("window.scrollY") == 40
        dragged = int(page.input_value("#slider-input"))
        assert 10 < dragged < 60
        expect(page.locator("#next")).to_be_enabled()

        touch(page, *((x, y - step * 6) for step in range(14)))
        page.wait_for_function("window.scrollY > 60")
        assert int(page.input_value("#slider-input")) == dragged, "scrolling leaves the answer as it was"

        page.evaluate("window.scrollTo(0, 40)")
        page.wait_for_function("window.scrollY === 40")
        touch(page, (x, y))
        expect(page.locator("#readout")).to_have_text("0: undecided")
        page.locator("#next").tap()
        wait_for_item(page, 2)
        assert values(participation) == [0]


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


# --- Coming back ----------------------------------------------------------------------------------------------


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


# --- Bad networks ---------------------------------------------------------------------------------------------


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


# --- Devices --------------------------------------------------------------------------------------------------


def test_a_window_too_small_is_covered_until_it_is_large_enough(open_page, live_server, study):
    with open_page() as page:
        participation = enter_main(page, live_server, study)
        page.set_viewport_size({"width": 700, "height": 900})
        notice = page.locator("#device-notice")
        expect(notice).to_contain_text("Please make this window larger")
        expect(notice).to_contain_text("800 × 500")
        expect(notice).to_contain_text("700 × 900")
        assert_accessible(page)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.set_viewport_size({"width": 1000, "height": 700})
        expect(notice).to_be_hidden()
        click_scale(page, 5)
        page.locator("#next").click()
        wait_for_item(page, 2)
        assert values(participation) == [5]


def test_a_phone_is_turned_away_before_the_consent(open_page, live_server, study):
    with open_page(**PHONE) as page:
        enter(page, live_server, study)
        expect(page.locator("#device-notice")).to_contain_text("Please use a larger screen")
        expect(page.locator("#device-notice [data-copy-source]:visible")).to_have_text(re.compile(r"\?session="))
        assert_accessible(page)
        assert page.evaluate("document.getElementById('study').inert")


def test_without_javascript_nobody_gets_past_the_consent(open_page, live_server, study):
    with open_page(faults_expected=True, java_script_enabled=False) as page:
        participation = enter(page, live_server, study)
        page.get_by_role("button", name="I agree").click()
        expect(page.get_by_role("heading", name="This study needs JavaScript")).to_be_visible()
        page.get_by_role("link", name="Try again").click()
        expect(page.locator("body")).to_have_attribute("data-step", "consent")
        participation.refresh_from_db()
        assert (participation.step, participation.dataset) == (Step.CONSENT, None)


def test_the_window_is_noted_at_the_consent(open_page, live_server, study):
    with open_page(device_scale_factor=2) as page:
        participation = enter(page, live_server, study)
        page.get_by_role("button", name="I agree").click()
        expect(page.locator("body")).to_have_attribute("data-step", "colour_check")
        participation.refresh_from_db()
        size = (participation.viewport_width, participation.viewport_height, participation.device_pixel_ratio)
        assert size == (1440, 900, 2.0)


# --- The end --------------------------------------------------------------------------------------------------


def test_the_end_page_leads_back_to_prolific_by_itself_or_not(open_page, live_server):
    study = factories.running_study(panel=Panel.PROLIFIC)
    ids = {"PROLIFIC_PID": "5f1a" * 6, "STUDY_ID": "60aa" * 6, "SESSION_ID": "61bb" * 6}
    with open_page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.route("https://app.prolific.com/**", lambda route: route.fulfill(body="Prolific"))
        page.clock.install()
        participation = enter(page, live_server, study, **ids)
        walks.answer_plates(walks.consent(participation), wrong=1)
        page.reload()
        expect(page.locator("body")).to_have_attribute("data-outcome", "colour_check_failed")
        assert_accessible(page)
        code = study.completion_codes.get(outcome="colour_check_failed").code
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == code
        page.get_by_role("button", name="Stay").click()
        page.clock.run_for(15_000)
        assert page.url.startswith(live_server.url)
        page.reload()
        page.clock.run_for(9_000)
        assert page.url.startswith(live_server.url)
        page.clock.run_for(2_000)
        page.wait_for_url(f"https://app.prolific.com/submissions/complete?cc={code}")


def test_without_cookies_the_page_asks_to_open_the_link_again(open_page, live_server, study):
    with open_page(faults_expected=True) as page:
        enter(page, live_server, study)
        page.context.clear_cookies()
        page.reload()
        expect(page.get_by_role("heading", name="Please open your link again")).to_be_visible()
        assert_accessible(page)


# --- Previews -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1440, 390])
def test_a_preview_goes_through_every_step_and_can_be_left(open_page, live_server, client, width):
    study = factories.running_study(phones_allowed=True)
    client.force_login(User.objects.create_superuser("staff", password="x"))
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
    with open_page(viewport={"width": width, "height": 900}, **({"is_mobile": True} if width == 390 else {})) as page:
        page.context.add_cookies([session])
        page.goto(live_server.url + reverse("studies:preview", args=[study.slug]))
        assert_accessible(page)
        page.get_by_role("button", name="Start the preview").click()
        for step in Step:
            page.locator("#preview-step").select_option(step.value)
            page.get_by_role("button", name="Go", exact=True).click()
            expect(page.locator("body")).to_have_attribute("data-step", step.value)
            assert_accessible(page)
            assert_fits(page)
        page.get_by_role("button", name="Leave preview").click()
        expect(page.get_by_role("heading", name="You have left the preview")).to_be_visible()
        assert not Participation.objects.exists()
