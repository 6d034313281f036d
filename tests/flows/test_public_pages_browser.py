"""The public pages in real Chromium: nothing fails to load, nothing is blocked, nothing is hard to reach or to read."""

import itertools

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests import factories
from tests.leaderboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

PAGES = {
    "home": "/",
    "leaderboard": "/leaderboard/",
    "api-docs": "/api/v1/docs/",
    "not-found": "/no/such/page/",
}
WIDTHS = {1440: 900, 390: 844}
WIDTHS_BETWEEN = range(420, 1440, 85)


@pytest.fixture
def results():
    """Every kind of row: scored, negative, unscored, demonstration."""
    model = factories.target_model(name="ResNet-50, adversarially trained")
    rows.entry(attack=factories.attack(name="cAdv", family="colour"), target_model=model, difference=81.4)
    rows.entry(attack=factories.attack(name="DiffAttack", family="generative"), target_model=model, difference=-2.0)
    rows.entry(attack=factories.attack(name="ACA"), target_model=model, difference=None)
    rows.entry(attack=factories.attack(name="Stand-in", is_demo=True), target_model=model, is_demo=True)


def go(page, live_server, name):
    page.goto(live_server.url + PAGES[name])
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("name", PAGES)
def test_page_loads_fits_and_is_accessible(open_page, live_server, results, name):
    with open_page(faults_expected=name == "not-found") as page:
        go(page, live_server, name)
        assert "Scooter" in page.title()
        for width, scheme in itertools.product(WIDTHS, ["light", "dark"]):
            page.set_viewport_size({"width": width, "height": WIDTHS[width]})
            page.emulate_media(color_scheme=scheme)
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow == 0, (width, scheme)
            # The viewer of the API documentation is not ours: only what surrounds it is judged.
            found = Axe().run(page, context={"exclude": [["#swagger-ui"]]})
            assert found.violations_count == 0, (width, scheme, found.generate_report())


@pytest.mark.parametrize("name", ["home", "leaderboard"])
def test_page_fits_at_every_width(open_page, live_server, results, name):
    with open_page() as page:
        go(page, live_server, name)
        for width in WIDTHS_BETWEEN:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_api_documentation_works_under_the_policy(open_page, live_server):
    with open_page() as page:
        go(page, live_server, "api-docs")
        operation = page.locator(".opblock", has_text="/api/v1/leaderboard/").first
        operation.locator("button.opblock-summary-control").click()
        operation.get_by_role("button", name="Try it out").click()
        with page.expect_response(lambda response: "/api/v1/leaderboard/" in response.url) as answer:
            operation.get_by_role("button", name="Execute").click()
        assert answer.value.status == 200


def test_leaderboard_needs_no_script(open_page, live_server, results):
    with open_page(java_script_enabled=False) as page:
        go(page, live_server, "leaderboard")
        table = page.get_by_role("table").first
        assert table.get_by_role("rowheader").all_inner_texts()[0].startswith("DiffAttack")
        assert table.get_by_role("row").count() == 4


@pytest.mark.parametrize("width", WIDTHS)
def test_leaderboard_stays_a_table_for_screen_readers(open_page, live_server, results, width):
    viewport = {"width": width, "height": WIDTHS[width]}
    with open_page(viewport=viewport) as page:
        go(page, live_server, "leaderboard")
        table = page.get_by_role("table").first
        assert table.get_by_role("columnheader").count() == 10
        assert table.get_by_role("cell").count() == 3 * 9
        assert table.get_by_role("img", name="Mean of clean images").count() == 3


def test_keyboard_reaches_content_and_explanations(open_page, live_server, results):
    with open_page() as page:
        go(page, live_server, "leaderboard")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        page.wait_for_url("**#content")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Rank"
        for _ in range(3):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**#column-difference")
        assert page.locator("#column-difference").is_visible()


def test_home_shows_the_answer_on_demand(open_page, live_server):
    with open_page(java_script_enabled=False) as page:
        go(page, live_server, "home")
        answer = page.get_by_text("The right one")
        assert not answer.is_visible()
        page.get_by_text("Show the answer").click()
        assert answer.is_visible()
