"""The participant's pages in real Chromium: the whole way, devices, the end, previews."""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import expect

from studies.flow import Step
from studies.models import Panel, Participation, Study, TrialKind
from tests import factories, walks
from tests.flows.participant_pages import (
    PHONE,
    assert_accessible,
    assert_fits,
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
    def without_cookies(route):
        response = route.fetch(max_redirects=0)
        page.context.clear_cookies()  # which the fetch has kept
        headers = {name: value for name, value in response.headers.items() if name != "set-cookie"}
        route.fulfill(response=response, headers=headers)

    link = live_server.url + reverse("studies:landing", args=[study.slug])
    with open_page(faults_expected=True) as page:
        page.route(f"{link}**", without_cookies)
        for _ in range(2):
            page.goto(link)
            page.reload()
            expect(page.get_by_role("heading", name="Please open your link again")).to_be_visible()
        assert_accessible(page)
        assert not Participation.objects.exists()
        page.unroute_all()
        enter(page, live_server, study)
        expect(page.locator("body")).to_have_attribute("data-step", "consent")
        page.context.clear_cookies()
        page.reload()
        expect(page.get_by_role("heading", name="Please open your link again")).to_be_visible()
        assert Participation.objects.count() == 1


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
            place = f"{step}:completed" if step is Step.END else step.value
            page.locator("#preview-step").select_option(place)
            page.get_by_role("button", name="Go", exact=True).click()
            expect(page.locator("body")).to_have_attribute("data-step", step.value)
            assert_accessible(page)
            assert_fits(page)
        page.get_by_role("button", name="Leave preview").click()
        expect(page.get_by_role("heading", name="You have left the preview")).to_be_visible()
        assert not Participation.objects.exists()
