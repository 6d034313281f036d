"""The public pages in real Chromium: nothing fails to load, nothing is blocked, nothing is hard to reach or to read."""

import itertools
import re
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe

from imagedb.models import AttackEvaluation
from leaderboard.columns import BY_KEY
from tests import factories
from tests.leaderboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

PAGES = {
    "home": "/",
    "leaderboard": "/leaderboard/",
    "api-docs": "/api/v1/docs/",
    "not-found": "/no/such/page/",
}
PAGES_OF_RESULTS = {
    "board": "/leaderboard/slider/",
    "old-snapshot": "/leaderboard/slider/?snapshot=1",
    "entry": "/leaderboard/slider/cadv/resnet-50/",
    "heat-map": "/leaderboard/slider/heat-map/",
    "scatter": "/leaderboard/slider/scatter/",
    "snapshots": "/leaderboard/slider/snapshots/?older=1&newer=3",
    "every-column": f"/leaderboard/slider/?{urlencode({'columns': list(BY_KEY)}, doseq=True)}",
    "attack": "/attacks/cadv/",
    "target-model": "/target-models/resnet-50/",
}
WIDTHS = {1440: 900, 390: 844}
WIDTHS_BETWEEN = range(420, 1440, 85)


@pytest.fixture
def results():
    """Every kind of row: scored, negative, unscored, demonstration."""
    model = factories.target_model(name="ResNet-50, adversarially trained", slug="resnet-50")
    cadv = factories.attack(name="cAdv", slug="cadv", family="colour")
    rows.entry(attack=cadv, target_model=model, difference=81.4)
    rows.entry(attack=factories.attack(name="DiffAttack", family="generative"), target_model=model, difference=-2.0)
    rows.entry(attack=factories.attack(name="ACA"), target_model=model, difference=None)
    rows.entry(attack=factories.attack(name="Stand-in", is_demo=True), target_model=model, is_demo=True)
    # Last: it has the draft computed anew, which drops what was made here without ratings.
    AttackEvaluation.objects.create(
        attack=cadv, target_model=model, images_attacked=1200, images_fooling=900, source_url="https://example.org/"
    )


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


@pytest.mark.parametrize("name", [*PAGES_OF_RESULTS])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_of_results_fit_and_are_accessible(open_page, live_server, results, name, width):
    with open_page(viewport={"width": width, "height": WIDTHS[width]}) as page:
        page.goto(live_server.url + PAGES_OF_RESULTS[name])
        page.wait_for_load_state("networkidle")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow == 0, scheme
            found = Axe().run(page)
            assert found.violations_count == 0, (scheme, found.generate_report())


def test_board_is_filtered_and_sorted_without_a_script(open_page, live_server, results):
    with open_page(java_script_enabled=False) as page:
        page.goto(f"{live_server.url}/leaderboard/slider/")
        table = page.get_by_role("table", name="Results")
        assert names_in(table) == ["DiffAttack", "cAdv", "ACA"]
        page.get_by_label("Family of attacks").select_option("Colour")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**/leaderboard/slider/?family=colour#table")
        assert names_in(table) == ["cAdv"]
        page.get_by_role("link", name="Show all").click()
        table.get_by_role("link", name="Attack", exact=True).click()
        page.wait_for_url("**/leaderboard/slider/?sort=attack#table")
        assert names_in(table) == ["ACA", "cAdv", "DiffAttack"]
        assert table.get_by_role("columnheader", name="Attack").first.get_attribute("aria-sort") == "ascending"
        page.get_by_text("Choose columns").click()
        page.get_by_label("AUC").check()
        page.get_by_label("Interval", exact=True).uncheck()
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**columns=auc#table")
        assert table.get_by_role("columnheader", name="AUC").count() == 1
        assert table.get_by_role("columnheader", name="Interval").count() == 0


def names_in(table):
    return [row.inner_text().split("\n")[0].split()[0] for row in table.get_by_role("rowheader").all()]


@pytest.mark.parametrize("width", WIDTHS)
def test_board_stays_a_table_for_screen_readers(open_page, live_server, results, width):
    with open_page(viewport={"width": width, "height": WIDTHS[width]}) as page:
        page.goto(f"{live_server.url}/leaderboard/slider/")
        table = page.get_by_role("table", name="Results")
        assert table.get_by_role("columnheader").count() == 10
        assert table.get_by_role("cell").count() == 3 * 9
        assert table.get_by_role("img", name="90 % interval").count() == 2


def test_paper_keeps_the_table(open_page, live_server, results):
    """A4 is as narrow as a tablet, and two hundred cards would be seventy pages."""
    with open_page() as page:
        page.set_viewport_size({"width": 680, "height": 1000})
        page.goto(live_server.url + PAGES_OF_RESULTS["board"])
        shown = "getComputedStyle(document.querySelector('.results tbody tr')).display"
        assert page.evaluate(shown) == "grid"
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate(shown) == "table-row"
        assert not page.locator(".filters, .results .about, .site-header").filter(visible=True).count()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert page.evaluate("getComputedStyle(document.querySelector('.plot .f-ink')).fill") == "rgb(26, 26, 26)"


def test_a_row_and_a_point_of_a_plot_lead_to_the_entry(open_page, live_server, results):
    with open_page() as page:
        for place in ("table", "plot"):
            page.goto(f"{live_server.url}/leaderboard/slider/")
            if place == "table":
                page.get_by_role("rowheader", name="cAdv").get_by_role("link").click()
            else:
                page.get_by_role("link", name=re.compile("cAdv on ResNet.*perceptible")).first.click()
            page.wait_for_url("**/leaderboard/slider/cadv/resnet-50/?snapshot=3")
            assert page.get_by_role("heading", level=1).inner_text() == "cAdv on ResNet-50, adversarially trained"


def test_keyboard_reaches_content_and_explanations(open_page, live_server, results):
    with open_page() as page:
        page.goto(f"{live_server.url}/leaderboard/slider/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        page.wait_for_url("**#content")
        page.get_by_role("link", name="What does Difference mean?").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**#column-difference")
        assert page.locator("#column-difference").is_visible()


def test_plots_follow_dark_mode_and_are_dark_ink_on_paper(open_page, live_server, results):
    ink = "getComputedStyle(document.querySelector('.plot-frame .f-ink')).fill"
    with open_page() as page:
        page.goto(f"{live_server.url}/leaderboard/slider/")
        found = []
        for media in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"media": "print", "color_scheme": "light"}):
            page.emulate_media(**media)
            found.append(page.evaluate(ink))
        assert found == ["rgb(26, 26, 26)", "rgb(237, 237, 237)", "rgb(26, 26, 26)"]


def test_home_shows_the_answer_on_demand(open_page, live_server):
    with open_page(java_script_enabled=False) as page:
        go(page, live_server, "home")
        answer = page.get_by_text("The right one")
        assert not answer.is_visible()
        page.get_by_text("Show the answer").click()
        assert answer.is_visible()
