"""Large files from the import page in real Chromium: in parts, over a bad network, paused, resumed, cancelled."""

import hashlib
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from imagedb.models import Image, ImportBatch
from imagedb.models.uploads import Upload, UploadStatus
from imagedb.services import uploads
from tests import factories
from tests.imagedb.manifests import clean, manifest_text, zip_of
from tests.imagedb.sendings import begun, random_bytes, send, stored_bytes

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True, serialized_rollback=True)]

NAME = "researcher"
PART = re.compile(r"/parts/\d+/$")


@pytest.fixture(autouse=True)
def _patience():
    """An import runs within the request that asks for it here, which takes its time."""
    expect.set_options(timeout=60_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def archive(tmp_path) -> Path:
    """A ZIP of 20 MB: an image, its manifest, and what makes it large."""
    path = tmp_path / "roofs.zip"
    members = {"manifest.csv": manifest_text([clean("roof.png")]), "roof.png": factories.png_bytes(7100)}
    path.write_bytes(zip_of({**members, "raw.bin": random_bytes(20_000_000)}))
    return path


@pytest.fixture
def open_import_page(live_server, open_page, client):
    """``with open_import_page() as page``: the signed-in import page, on a network that a test may break."""

    @contextmanager
    def opened():
        client.force_login(User.objects.create_superuser(NAME))
        with open_page(faults_expected=True) as page:
            cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
            page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
            page.set_default_timeout(60_000)
            page.goto(f"{live_server.url}/admin/imagedb/importbatch/add/")
            yield page

    return opened


def choose(page: Page, file: Path) -> None:
    page.locator("#id_archive").set_input_files(file)


def status_line(page: Page):
    return page.locator(".scooter-upload [role=status]")


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def test_twenty_megabytes_arrive_although_a_part_fails_once(open_import_page, archive):
    failed, sent = [], []

    def fail_once(route):
        number = int(route.request.url.rstrip("/").rpartition("/")[2])
        if number == 2 and not failed:
            failed.append(number)
            route.abort("connectionreset")
        else:
            sent.append(number)
            route.continue_()

    with open_import_page() as page:
        page.route(PART, fail_once)
        choose(page, archive)
        # Saving does not wait for the file: it is remembered.
        save(page)
        expect(status_line(page)).to_contain_text("The import starts as soon as the file has arrived")
        expect(page.get_by_role("heading", name="Rows that are in")).to_be_visible()
        assert sorted(sent) == [1, 2, 3]
        assert failed == [2]
        upload, batch = Upload.objects.get(), ImportBatch.objects.get()
        assert (upload.status, batch.archive.name, batch.source_name) == (
            UploadStatus.USED,
            upload.file.name,
            "roofs.zip",
        )
        assert hashlib.sha256(stored_bytes(upload)).digest() == hashlib.sha256(archive.read_bytes()).digest()
        assert Image.objects.get().original_filename == "roof.png"


def test_it_is_paused_and_after_a_reload_goes_on_with_what_is_missing(open_import_page, archive):
    sent = []
    with open_import_page() as page:
        # The third part hangs, so that the pause comes in the middle.
        page.route(re.compile(r"/parts/3/$"), lambda route: None)
        choose(page, archive)
        bar = page.get_by_role("progressbar", name="Sent of the file")
        expect(bar).to_have_attribute("aria-valuenow", re.compile("^[789][0-9]$"))
        page.get_by_role("button", name="Pause").focus()
        page.keyboard.press("Enter")
        expect(status_line(page)).to_contain_text("Paused. You can close this page")
        expect(page.get_by_role("button", name="Resume")).to_be_focused()
        save(page)
        expect(status_line(page)).to_contain_text("has not arrived whole: press Resume, or Cancel")

        assert Axe().run(page, context=".scooter-upload").violations_count == 0

        page.unroute_all()
        page.reload()
        expect(
            page.get_by_text(re.compile(r"16\.0 MB of 19\.1 MB have arrived. Choose the same file again"))
        ).to_be_visible()
        page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
        choose(page, archive)
        expect(status_line(page)).to_contain_text("The file has arrived. Save to start the import.")
        assert [url.rstrip("/").rpartition("/")[2] for url in sent] == ["3"]
        upload = Upload.objects.get()
        assert hashlib.sha256(stored_bytes(upload)).digest() == hashlib.sha256(archive.read_bytes()).digest()
        save(page)
        expect(page.get_by_role("heading", name="Rows that are in")).to_be_visible()


def test_another_file_of_the_same_name_is_not_mixed_with_the_first(open_import_page, archive):
    with open_import_page() as page:
        begun(User.objects.get(), bytes(100), "roofs.zip")
        page.reload()
        expect(page.get_by_text("0 bytes of 100 bytes have arrived")).to_be_visible()
        choose(page, archive)
        expect(status_line(page)).to_contain_text("The file has arrived.")
        assert Upload.objects.count() == 2
        # One file at a time: the forgotten one can be deleted when this one is out of the way.
        expect(page.get_by_role("button", name="Delete roofs.zip")).to_have_count(0)
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("button", name="Delete roofs.zip").click()
        expect(page.get_by_text("0 bytes of 100 bytes")).to_have_count(0)
        page.wait_for_function("async () => (await (await fetch('/api/v1/uploads/')).json()).results.length === 0")
        assert Upload.objects.filter(status=UploadStatus.ABANDONED).count() == 2


def test_cancelling_deletes_what_had_arrived(open_import_page, archive):
    with open_import_page() as page:
        page.route(re.compile(r"/parts/3/$"), lambda route: None)
        choose(page, archive)
        page.get_by_role("button", name="Cancel").press("Enter")
        expect(status_line(page)).to_contain_text("roofs.zip was cancelled")
        expect(page.locator("#id_archive")).to_be_enabled()
        expect(page.locator("#id_archive")).to_be_focused()
        page.wait_for_function("async () => (await (await fetch('/api/v1/uploads/')).json()).results.length === 0")
        upload = Upload.objects.get()
        assert (upload.status, upload.file.name) == (UploadStatus.ABANDONED, "")
        # And the next one works.
        page.unroute_all()
        choose(page, archive)
        expect(status_line(page)).to_contain_text("The file has arrived.")


def test_what_has_arrived_before_can_be_used_and_survives_an_error_in_the_form(open_import_page):
    content = zip_of({"manifest.csv": manifest_text([clean("a.png")]), "a.png": factories.png_bytes(7200)})
    with open_import_page() as page:
        upload = begun(User.objects.get(), content, "before.zip")
        send(upload, content)
        uploads.complete_upload(upload)
        page.reload()
        page.get_by_role("button", name="Use it").click()
        expect(page.get_by_role("button", name="Remove")).to_be_focused()
        page.locator("#id_licence").evaluate(
            "field => { field.removeAttribute('maxlength'); field.value = 'x'.repeat(101); }"
        )
        save(page)
        expect(page.get_by_text("Ensure this value has at most 100 characters")).to_be_visible()
        expect(status_line(page)).to_contain_text("The file has arrived. Save to start the import.")
        page.locator("#id_licence").fill("CC0")
        save(page)
        expect(page.get_by_role("heading", name="Rows that are in")).to_be_visible()
        assert ImportBatch.objects.get().source_name == "before.zip"


def test_a_refusal_says_what_to_do(open_import_page, archive, tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "MAX_UPLOAD_BYTES", 1_000_000)
    other = tmp_path / "roofs.tar"
    other.write_bytes(b"x")
    with open_import_page() as page:
        choose(page, archive)
        expect(status_line(page)).to_contain_text("split the images over several archives")
        choose(page, other)
        expect(status_line(page)).to_contain_text("Choose a file that ends in .zip")
        assert not Upload.objects.exists()


def test_without_the_script_the_form_posts_the_file_itself(open_import_page, tmp_path):
    small = tmp_path / "small.zip"
    small.write_bytes(zip_of({"manifest.csv": manifest_text([clean("a.png")]), "a.png": factories.png_bytes(7300)}))
    with open_import_page() as page:
        page.route("**/upload*.js", lambda route: route.abort())
        page.reload()
        expect(page.locator(".scooter-upload")).to_be_hidden()
        choose(page, small)
        save(page)
        expect(page.get_by_role("heading", name="Rows that are in")).to_be_visible()
        assert not Upload.objects.exists()
        assert ImportBatch.objects.get().imported_count == 1
