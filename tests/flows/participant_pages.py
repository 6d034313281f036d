"""What the browser tests of the participant's pages do in them."""

import re

from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from studies.models import Participation, Rating, Study
from tests import walks

THUMB = 28


PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


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


def rate(page: Page, position: int, value: int) -> None:
    """Rate the item that is there."""
    wait_for_item(page, position)
    click_scale(page, value)
    page.locator("#next").click()


def expect_values(page: Page, participation: Participation, wanted: list[int]) -> None:
    """The stored ratings are these, at the latest after a moment: the page goes on before the server has the last."""
    for _ in range(100):
        if (found := values(participation)) == wanted:
            return
        page.wait_for_timeout(100)  # and not time.sleep, which would hold up the page's routes
    assert found == wanted


def values(participation: Participation) -> list[int]:
    """Stored ratings in the order of their items."""
    ratings = Rating.objects.filter(trial__participation=participation).order_by("trial__position")
    return list(ratings.values_list("value", flat=True))


def assert_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
