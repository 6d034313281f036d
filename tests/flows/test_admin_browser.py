"""From an empty database to a launched study by clicking alone, in real Chromium."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from imagedb.models import Image, ImportBatch
from studies.models import Participation, ParticipationKind, Study, StudyStatus
from tests import factories, walks
from tests.imagedb.manifests import clean, manifest_text, modified, zip_of
from tests.leaderboard import boards

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

NAME, PASSWORD = "researcher", "correct-horse-battery"
CLEAN_IMAGES, MODIFIED_IMAGES = 24, 6


def images_in_a_zip() -> bytes:
    """A manifest with one row that fails, and images no two of which are alike."""
    rows = [clean(f"clean/{number}.png", class_index=number) for number in range(CLEAN_IMAGES)]
    rows += [
        modified(
            f"modified/{number}.png",
            class_index=number,
            source_filename=f"clean/{number}.png",
            attack="snow-on-roofs",
            target_model="robust-resnet-50",
        )
        for number in range(MODIFIED_IMAGES)
    ]
    files = {row["filename"]: factories.png_bytes(9000 + number) for number, row in enumerate(rows)}
    return zip_of({**files, "manifest.csv": manifest_text([*rows, clean("absent.png")])})


def sign_in(page: Page, address: str) -> None:
    User.objects.create_superuser(NAME, password=PASSWORD)
    page.goto(f"{address}/admin/")
    page.get_by_label("Username").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def overview(page: Page) -> None:
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def choose(page: Page, field: str, name: str) -> None:
    """Pick ``name`` in a field that searches while one types."""
    page.locator(f"#id_{field} + .select2").click()
    page.locator(".select2-search__field").last.fill(name)
    page.locator(".select2-results__option", has_text=name).click()


def test_from_an_empty_database_to_a_launched_study_by_clicking(live_server, open_page):
    with open_page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.set_default_timeout(60_000)  # building draws the whole pool of colour plates
        sign_in(page, live_server.url)

        page.get_by_role("link", name="Add an attack").click()
        page.locator("#id_name").press_sequentially("Snow on roofs")
        expect(page.locator("#id_slug")).to_have_value("snow-on-roofs")
        save(page)
        overview(page)
        page.get_by_role("link", name="Add a target model").click()
        page.locator("#id_name").press_sequentially("Robust ResNet-50")
        save(page)

        overview(page)
        page.get_by_role("link", name="Upload a ZIP").click()
        archive = {"name": "roofs.zip", "mimeType": "application/zip", "buffer": images_in_a_zip()}
        page.locator("#id_archive").set_input_files([archive])
        save(page)
        expect(page.get_by_text("Done, with errors")).to_be_visible()
        expect(page.get_by_role("heading", name="Rows that failed")).to_be_visible()
        expect(page.get_by_role("cell", name="absent.png", exact=True)).to_be_visible()
        assert ImportBatch.objects.get().imported_count == CLEAN_IMAGES + MODIFIED_IMAGES
        page.get_by_role("link", name="Look at the images").click()
        expect(page.locator("img.scooter-thumbnail")).to_have_count(Image.objects.count())
        page.get_by_role("link", name="modified/0.png").first.click()
        expect(page.get_by_text("Clean source")).to_be_visible()

        overview(page)
        page.get_by_role("link", name="Create a study").click()
        page.get_by_label("Title").fill("Snow on roofs against a robust ResNet-50")
        choose(page, "attack", "Snow on roofs")
        choose(page, "target_model", "Robust ResNet-50")
        save(page)
        expect(page.get_by_text("Next: have the datasets built")).to_be_visible()

        page.get_by_role("button", name="Build datasets and check images").click()
        expect(page.get_by_text("The datasets could not be built")).to_be_visible()
        for field, value in {
            "dataset_count": 2,
            "clean_per_dataset": 3,
            "modified_per_dataset": 3,
            "participants_per_dataset": 2,
            "buffer_percent": 0,
            "corrupted_check_count": 1,
            "instructed_check_count": 1,
            "contact_email": "lab@example.org",
        }.items():
            page.locator(f"#id_{field}").fill(str(value))
        save(page)
        page.get_by_role("button", name="Build datasets and check images").click()
        expect(page.get_by_text("Next: look at it as a participant")).to_be_visible()

        with page.expect_popup() as opened:
            page.get_by_role("button", name="Preview as a participant").click()
        preview = opened.value
        expect(preview.locator("body")).to_have_attribute("data-step", "consent")
        assert Participation.objects.get().kind == ParticipationKind.PREVIEW
        with preview.expect_navigation():
            preview.get_by_role("button", name=re.compile("leave", re.IGNORECASE)).click()
        assert not Participation.objects.exists()
        preview.close()

        page.get_by_role("link", name="Launch…").click()
        expect(page.get_by_text("GBP 6.60")).to_be_visible()  # 2 datasets x 2 participants x GBP 1.65
        page.get_by_role("button", name="Launch").click()
        expect(page.get_by_text("Running: share the link below")).to_be_visible()
        study = Study.objects.get()
        assert study.status == StudyStatus.RUNNING

        page.get_by_role("button", name="Copy", exact=True).first.click()
        expect(page.get_by_text("Copied", exact=True)).to_be_visible()
        link = page.evaluate("navigator.clipboard.readText()")
        assert link == page.locator("#participant-link").input_value() == f"{live_server.url}/s/{study.slug}/"

        overview(page)
        expect(page.get_by_role("heading", name="Running studies")).to_be_visible()
        expect(page.get_by_text("0 of 4")).to_be_visible()


def test_live_numbers_move_without_a_reload(live_server, open_page):
    factories.plate_pool()
    study = factories.running_study()
    with open_page() as page:
        page.clock.install()
        sign_in(page, live_server.url)
        page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/monitor/")
        expect(page.get_by_text("0 of 4").first).to_be_visible()
        walks.complete(study)
        page.clock.run_for(11_000)
        expect(page.get_by_text("1 of 4").first).to_be_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_scrolls_sideways(live_server, open_page, width):
    factories.plate_pool()
    study = factories.running_study()
    participation = walks.complete(study)
    image = Image.objects.filter(kind="modified").first()
    snapshot = boards.published(3)
    with open_page(viewport={"width": width, "height": 900}) as page:
        sign_in(page, live_server.url)
        for address in (
            "",
            "studies/study/",
            "studies/study/add/",
            f"studies/study/{study.pk}/change/",
            f"studies/study/{study.pk}/monitor/",
            f"studies/study/{study.pk}/do/close/",
            "studies/participation/",
            f"studies/participation/{participation.pk}/change/",
            "imagedb/image/",
            f"imagedb/image/{image.pk}/change/",
            "imagedb/importbatch/add/",
            "leaderboard/entry/",
            f"leaderboard/entry/{snapshot.entries.first().pk}/change/",
            "leaderboard/board/",
            f"leaderboard/board/{snapshot.board.pk}/change/",
            f"leaderboard/board/{snapshot.board.pk}/publish/",
            "leaderboard/snapshot/",
            f"leaderboard/snapshot/{snapshot.pk}/change/",
            f"leaderboard/snapshot/{snapshot.pk}/retract/",
            "leaderboard/externalresult/add/",
            "leaderboard/recomputation/",
        ):
            page.goto(f"{live_server.url}/admin/{address}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert page.locator(".scooter-table").count() == page.locator(".scooter-scroll > .scooter-table").count()
            for thumbnail in page.locator(".scooter-table img").all():
                box = thumbnail.bounding_box()
                assert box, address
                assert (box["width"], box["height"]) == (44, 44), address
