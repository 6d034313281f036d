"""A collection from the first image to the frozen version, in real Chromium."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from imagedb.models import CollectionVersion, Image
from scooter_site.common.admin_tools import change_url
from tests import factories
from tests.imagedb import catalogue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

NAME, PASSWORD = "curator", "correct-horse-battery"


def sign_in(page: Page, address: str) -> None:
    User.objects.create_superuser(NAME, password=PASSWORD)
    page.goto(f"{address}/admin/")
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_collection_is_made_curated_and_frozen_by_clicking(live_server, open_page):
    images = [factories.clean_image(original_filename=f"{number}.png", licence="CC0") for number in range(3)]
    with open_page() as page:
        sign_in(page, live_server.url)
        page.get_by_role("link", name="Collections").click()
        page.goto(f"{live_server.url}{reverse('admin:imagedb_collection_add')}")
        page.locator("#id_name").press_sequentially("Sharp roofs")
        expect(page.locator("#id_slug")).to_have_value("sharp-roofs")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("heading", name="Versions")).to_be_visible()

        page.goto(f"{live_server.url}{reverse('admin:imagedb_image_changelist')}")
        page.locator("#action-toggle").check()
        page.locator("select[name=action]").select_option("add_to_collection")
        page.get_by_role("button", name="Run").click()
        page.get_by_label("Draft").select_option("Sharp roofs 1.0")
        page.get_by_label("Reason").fill("All there are.")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_text("3 images are now in Sharp roofs 1.0.")).to_be_visible()

        page.get_by_role("link", name="0.png", exact=True).click()
        page.get_by_role("link", name="Crop, replace or remove…").click()
        picture = page.locator(".scooter-crop img")
        expect(picture).to_be_visible()
        shown = picture.bounding_box()
        assert shown is not None
        scale = shown["width"] / 64  # of the image's 64 pixels
        page.mouse.move(shown["x"] + 8 * scale, shown["y"] + 4 * scale)
        page.mouse.down()
        page.mouse.move(shown["x"] + 60 * scale, shown["y"] + 44 * scale)
        page.mouse.up()
        edges = {"left": 8, "top": 4, "right": 60, "bottom": 44}
        for edge, value in edges.items():
            assert int(page.locator(f"#id_crop-{edge}").input_value()) == pytest.approx(value, abs=1)
            page.locator(f"#id_crop-{edge}").fill(str(value))
        expect(page.locator(".scooter-crop-box")).to_be_visible()
        page.locator("#id_crop-right").fill("8")
        expect(page.locator(".scooter-crop-box")).to_be_hidden()
        page.locator("#id_crop-right").fill("60")
        page.locator("#id_crop-reason").fill("A text was on the left.")
        page.get_by_role("button", name="Crop", exact=True).click()
        expect(page.get_by_text("0.png was cropped to 52 x 40 pixels.")).to_be_visible()
        expect(page.get_by_role("cell", name="A text was on the left.")).to_be_visible()

        page.locator("#id_licence").fill("CC BY 4.0")
        page.locator("#id_citation").fill("Somebody, 2026")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_role("link", name="Freeze…").click()
        page.get_by_role("button", name="Freeze for ever").click()
        expect(page.get_by_text("it never changes")).to_be_visible()
        frozen = CollectionVersion.objects.get()
        assert frozen.is_frozen
        assert images[0] not in frozen.images.all()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the manifest").click()
        assert download.value.suggested_filename == "sharp-roofs-1.0-manifest.jsonl"


def test_an_image_like_it_is_chosen_with_the_keyboard(live_server, open_page):
    image, other = factories.clean_image(), factories.clean_image()
    draft = catalogue.version(image)
    with open_page() as page:
        sign_in(page, live_server.url)
        page.goto(live_server.url + reverse("admin:imagedb_collectionversion_curate", args=[draft.pk, image.pk]))
        page.get_by_role("button", name=other.original_filename).focus()
        page.keyboard.press("Enter")
        expect(page.locator("#id_replace-replacement")).to_have_value(str(other.public_id))
        expect(page.locator("#id_replace-replacement")).to_be_focused()
        page.locator("#id_replace-reason").fill("Sharper.")
        page.get_by_role("button", name="Replace", exact=True).click()
        expect(page.get_by_text(f"was replaced by {other.original_filename}")).to_be_visible()
    assert list(draft.images.all()) == [other]


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_of_a_collection_scrolls_sideways(live_server, open_page, width):
    image = factories.clean_image(licence="CC0", original_filename=f"{'long' * 30}.png")
    draft = catalogue.version(image, version="2.0", of=catalogue.collection(name="Draft of it"))
    frozen = catalogue.freeze_by_hand(catalogue.version(image))
    assert Image.objects.count() == 1
    with open_page(viewport={"width": width, "height": 900}) as page:
        sign_in(page, live_server.url)
        for address in (
            reverse("admin:imagedb_collection_changelist"),
            change_url(frozen.collection),
            change_url(frozen),
            change_url(draft),
            change_url(image),
            *[reverse(f"admin:imagedb_collectionversion_{name}", args=[draft.pk]) for name in ("freeze", "new")],
            reverse("admin:imagedb_collectionversion_curate", args=[draft.pk, image.pk]),
            reverse("admin:imagedb_curationlogentry_changelist"),
        ):
            page.goto(live_server.url + address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
