"""The catalogue's pages in real Chromium: they fit, work without JavaScript and by keyboard, and nothing jumps."""

import itertools

import pytest
from axe_playwright_python.sync_playwright import Axe

from imagedb.models import Image, Prediction, Visibility
from imagedb.services import collections as services
from tests import factories
from tests.imagedb.api_clients import user
from tests.imagedb.catalogue_pages import measured
from tests.leaderboard import rows

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

WIDTHS = {1440: 900, 390: 844}
WIDTHS_BETWEEN = range(320, 1440, 70)
LONG_NAME = "An attack whose name is so long that it has to be broken over several lines, Pneumonoultramicroscopic"


@pytest.fixture
def pages(live_server):
    """The addresses of all pages, with something of everything on them."""
    licence = {"licence": "CC0 1.0", "attribution": "Somebody"}
    attack = factories.attack(
        name="cAdv",
        slug="cadv",
        family="colour",
        description="Recolours images.",
        parameters={"hints": 50, "a_name_without_any_place_to_break_it_that_goes_on_and_on_and_on_for_ever": "x" * 90},
        paper_title="Unrestricted Adversarial Examples",
        paper_url="https://arxiv.org/abs/1904.06347",
        code_url="https://github.com/" + "a" * 80,
        bibtex="@inproceedings{cadv,\n  title={" + "Unrestricted " * 12 + "}\n}",
        venue="ICLR",
        year=2020,
    )
    long = factories.attack(name=LONG_NAME, slug="long", is_demo=True, description="A stand-in. " * 12)
    factories.attack(name="Without images", slug="empty")
    model = factories.target_model(
        name="ResNet-50", slug="resnet", architecture="ResNet-50", clean_accuracy=0.64, weights_reference="f" * 64
    )
    curator = user("curator", is_superuser=True, is_staff=True)
    clean = [factories.clean_image(original_filename="x" * 120 + ".png", **licence) for _ in range(12)]
    modified = [measured(image, attack=attack, target_model=model, **licence) for image in clean]
    for image in clean[:3]:
        measured(image, attack=long, target_model=None, **licence)
    factories.clean_image(visibility=Visibility.REGISTERED)
    Prediction.objects.create(
        image=modified[0], target_model=model, predicted_class=factories.image_class(5), confidence=0.9
    )
    rows.entry(attack=attack, target_model=model, difference=81.4)
    rows.entry(attack=long, target_model=model, difference=5.0, is_demo=True)
    first = services.create_collection(curator, name="ImageNet S", slug="imagenet-s", description="Sound images.")
    services.add_images(first, Image.objects.all(), "All that are sound.", curator)
    about = {
        "licence": "CC BY 4.0",
        "citation": "@misc{s,\n  title={" + "Sound " * 30 + "}\n}",
        "doi": "10.5281/zenodo.1",
    }
    Image.objects.filter(licence="").update(licence="CC0 1.0")
    services.freeze(services.change_draft(first, changelog="First.", **about), curator)
    second = services.new_version(first.collection)
    services.remove_images(second, Image.objects.filter(pk=modified[3].pk), "Too dark. " * 20, curator)
    services.freeze(services.change_draft(second, changelog="Without a dark one.", **about), curator)
    services.create_collection(curator, name="Nothing yet", slug="nothing")
    return {
        "attacks": "/attacks/",
        "attack": "/attacks/cadv/",
        "attack-long": "/attacks/long/",
        "attack-empty": "/attacks/empty/",
        "target-models": "/target-models/",
        "target-model": "/target-models/resnet/",
        "gallery": "/catalogue/?search=tabby&kind=modified",
        "gallery-nothing": "/catalogue/?search=nothingofthekind",
        "gallery-problem": "/catalogue/?modle=x",
        "modified": f"/catalogue/images/{modified[0].public_id}/",
        "clean": f"/catalogue/images/{clean[0].public_id}/",
        "collections": "/catalogue/collections/",
        "collection": "/catalogue/collections/imagenet-s/",
        "collection-nothing": "/catalogue/collections/nothing/",
        "version": "/catalogue/collections/imagenet-s/1.1/",
    }


def go(page, address):
    page.goto(address)
    page.wait_for_load_state("networkidle")


def too_wide(page):
    """What makes a page wider than the window; empty if it fits."""
    return page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          const wide = [...document.querySelectorAll("body *")].filter(
            element => element.getBoundingClientRect().right > width && !element.closest("thead"));
          return ["the page", ...wide.map(element => `${element.tagName}.${element.className}`)];
        }"""
    )


def test_every_page_loads_fits_and_is_accessible(open_page, live_server, pages):
    for name, path in pages.items():
        with open_page(faults_expected=name == "gallery-problem") as page:
            go(page, live_server.url + path)
            assert page.locator("h1").count() == 1, name
            for summary in page.locator("summary").all():
                summary.click()
            for width, scheme in itertools.product(WIDTHS, ["light", "dark"]):
                page.set_viewport_size({"width": width, "height": WIDTHS[width]})
                page.emulate_media(color_scheme=scheme)
                assert too_wide(page) == [], (name, width)
                found = Axe().run(page)
                assert found.violations_count == 0, (name, width, scheme, found.generate_report())


def test_every_page_fits_at_every_width(open_page, live_server, pages):
    with open_page(faults_expected=True) as page:
        for name, path in pages.items():
            go(page, live_server.url + path)
            for width in WIDTHS_BETWEEN:
                page.set_viewport_size({"width": width, "height": 900})
                assert too_wide(page) == [], (name, width)


def test_without_javascript_one_can_filter_turn_pages_and_open_an_image(open_page, live_server, pages):
    licence = {"licence": "CC0 1.0"}
    for _ in range(40):
        factories.clean_image(**licence)
    with open_page(java_script_enabled=False) as page:
        go(page, f"{live_server.url}/catalogue/")
        page.get_by_role("link", name="Next →").first.click()
        page.wait_for_url("**/catalogue/?after=*")
        assert page.locator(".tile").count() == 19
        page.get_by_role("link", name="← Previous").first.click()
        page.wait_for_url("**/catalogue/?before=*")
        assert page.locator(".tile").count() == 48
        page.get_by_label("Attack", exact=True).select_option("cAdv")
        page.get_by_label("Kind").select_option("Modified")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**/catalogue/?kind=modified&attack=cadv")
        assert page.get_by_text("12 images", exact=True).first.is_visible()
        page.get_by_role("link", name="Attack cAdv").click()
        page.wait_for_url("**/catalogue/?kind=modified")
        page.locator(".tile").first.click()
        page.wait_for_url("**/catalogue/images/*/")
        # Without the script that they need, there are no buttons to copy.
        assert not page.get_by_role("button", name="Copy").first.is_visible()


def test_thumbnails_wait_until_they_are_near_and_nothing_moves(open_page, live_server, pages):
    for _ in range(30):
        factories.clean_image()
    with open_page(viewport={"width": 390, "height": 844}) as page:
        page.add_init_script(
            "window.shifts = 0; new PerformanceObserver(list => { for (const entry of list.getEntries())"
            " window.shifts += entry.value; }).observe({type: 'layout-shift', buffered: true});"
        )
        asked = []
        page.on("request", lambda request: asked.append(request.url) if "/thumbnail/" in request.url else None)
        go(page, f"{live_server.url}/catalogue/")
        shown = page.locator(".tile").count()
        assert shown > 40
        assert len(asked) < shown
        box = page.locator(".tile-box").last.bounding_box()
        page.mouse.wheel(0, 20_000)
        page.wait_for_load_state("networkidle")
        assert page.locator(".tile-box").last.bounding_box()["width"] == box["width"]
        assert page.evaluate("window.shifts") < 0.01


def test_the_keyboard_reaches_everything_in_order(open_page, live_server, pages):
    with open_page() as page:
        go(page, live_server.url + pages["attack"])
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "[document.activeElement.textContent.trim().replace(/\\s+/g, ' '),"
                    " document.activeElement.getBoundingClientRect().height > 0]"
                )
            )
        assert all(visible for _, visible in reached)
        names = [name for name, _ in reached]
        expected = [
            "Skip to content", "Scooter", "Leaderboard", "Attacks", "Target models", "Images", "Collections", "API",
            "Log in", "Attacks", "Clean", "Modified",
        ]  # fmt: skip
        assert names[: len(expected)] == expected
        for name in ("Copy", "What does this mean?", "ZIP", "WebDataset", "CSV", "JSONL"):
            assert name in names, name


def test_copies_what_is_to_be_cited(open_page, live_server, pages):
    with open_page(permissions=["clipboard-read", "clipboard-write"]) as page:
        go(page, live_server.url + pages["attack"])
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == page.locator("#bibtex").inner_text()
        assert page.evaluate("navigator.clipboard.readText()").startswith("@inproceedings{cadv,\n")


def test_a_card_is_one_link_with_the_name_of_what_it_shows(open_page, live_server, pages):
    with open_page() as page:
        go(page, live_server.url + pages["attacks"])
        card = page.locator(".card").first
        assert card.get_by_role("link").count() == 1
        box = card.locator("img").first.bounding_box()
        page.mouse.click(box["x"] + 20, box["y"] + 20)
        page.wait_for_url("**/attacks/cadv/")


def test_the_header_knows_who_is_logged_in(open_page, live_server, pages, client):
    client.force_login(user("plain"))
    with open_page(viewport={"width": 390, "height": 844}) as page:
        session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
        page.context.add_cookies([session])
        go(page, f"{live_server.url}/catalogue/?kind=clean")
        navigation = page.get_by_role("navigation", name="Main")
        assert navigation.get_by_role("link").count() == 6
        assert page.get_by_role("link", name="Account").is_visible()
        page.get_by_role("link", name="read and accept them").click()
        page.wait_for_url("**/account/terms/**")
