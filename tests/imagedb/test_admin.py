"""Imports in the admin: upload, look, repeat; and what is refused."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from imagedb.admin import imports
from imagedb.models import Image, ImportBatch, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services import import_state
from imagedb.services.importing import ImportRefused
from scooter_site.common.admin_tools import change_url
from tests import factories
from tests.imagedb.manifests import clean, manifest_text, modified, planned, work_on, zip_of
from tests.imagedb.pages import text_of

pytestmark = pytest.mark.django_db

UPLOAD = reverse("admin:imagedb_importbatch_add")


def archive(*rows) -> SimpleUploadedFile:
    """A ZIP as a browser sends it; the file of a row named absent.png is left out."""
    members = {row["filename"]: factories.png_bytes(500 + n) for n, row in enumerate(rows)}
    members.pop("absent.png", None)
    content = zip_of({**members, "manifest.csv": manifest_text(list(rows))})
    return SimpleUploadedFile("snowy roofs.zip", content, "application/zip")


def upload(client, callbacks, *rows):
    with callbacks(execute=True):
        answer = client.post(UPLOAD, {"archive": archive(*rows), "visibility": "registered", "_save": "Save"})
    return ImportBatch.objects.get(), answer


def test_an_upload_is_imported_and_its_page_tells_everything(client, researcher, django_capture_on_commit_callbacks):
    batch, answer = upload(
        client,
        django_capture_on_commit_callbacks,
        clean("clean.png"),
        clean("absent.png"),
        modified("modified.png", predicted_class_index=285, confidence=0.8),
    )
    assert answer.url == change_url(batch)
    assert (batch.created_by, batch.source_name) == (researcher, "snowy roofs.zip")
    assert (batch.status, batch.imported_count, batch.failed_count) == (ImportStatus.DONE, 2, 1)
    page = client.get(change_url(batch))
    words = text_of(page)
    assert "Done, with errors" in words
    assert "3 of 3" in words
    assert "Correct the rows below" in words
    assert words.index("absent.png") < words.index("clean.png"), "errors come first"
    assert b"data-refresh-url" not in page.content


def test_an_upload_without_a_zip_is_refused(client, researcher):
    answer = client.post(UPLOAD, {"visibility": "registered", "_save": "Save"})
    assert "This field is required" in text_of(answer)
    assert not ImportBatch.objects.exists()


def test_an_import_that_waits_keeps_its_page_fresh(client, researcher):
    batch = ImportBatch.objects.create(source_name="roofs.zip", status=ImportStatus.RUNNING, row_count=4)
    live = reverse("admin:imagedb_importbatch_live", args=[batch.pk])
    assert live.encode() in client.get(change_url(batch)).content
    assert "X-Refresh-Done" not in client.get(live)
    ImportBatch.objects.update(imported_count=3, already_there_count=0)
    assert "3 of 4" in text_of(client.get(live))
    ImportBatch.objects.update(status=ImportStatus.DONE)
    assert client.get(live)["X-Refresh-Done"] == "1"


def test_an_import_that_could_read_nothing_says_so(client, researcher, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        client.post(UPLOAD, {"archive": SimpleUploadedFile("a.zip", b"no zip"), "visibility": "public", "_save": "1"})
    batch = ImportBatch.objects.get()
    assert batch.status == ImportStatus.FAILED
    assert "is not a ZIP archive" in text_of(client.get(change_url(batch)))


@pytest.mark.parametrize(
    ("imported", "told"),
    [
        (0, "No new image was imported."),
        (1, "1 image had been imported by then, and is in the catalogue."),
        (2, "2 images had been imported by then, and are in the catalogue."),
    ],
)
def test_an_import_that_stopped_says_what_is_in(client, researcher, imported, told):
    batch = ImportBatch.objects.create(
        source_name="roofs.zip", status=ImportStatus.FAILED, row_count=4, imported_count=imported, error="Stopped."
    )
    page = text_of(client.get(change_url(batch)))
    assert "Failed roofs.zip" in page
    assert f"Stopped. {told}" in page


def test_an_import_can_be_run_again(client, researcher, django_capture_on_commit_callbacks):
    batch, _ = upload(client, django_capture_on_commit_callbacks, clean("clean.png"), clean("absent.png"))
    again = reverse("admin:imagedb_importbatch_again", args=[batch.pk])
    assert client.get(again).status_code == 405
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(again).status_code == 302
    batch.refresh_from_db()
    assert (batch.status, batch.failed_count) == (ImportStatus.DONE, 1)
    assert Image.objects.count() == 1


def test_who_may_only_look_neither_uploads_nor_repeats(client, viewer):
    batch = ImportBatch.objects.create(source_name="roofs.zip", status=ImportStatus.DONE, failed_count=1, row_count=1)
    page = client.get(change_url(batch))
    assert page.status_code == 200
    assert b"Upload a corrected ZIP" not in page.content
    assert client.get(UPLOAD).status_code == 403
    assert client.post(reverse("admin:imagedb_importbatch_again", args=[batch.pk])).status_code == 404


def test_the_page_of_a_large_import_costs_a_fixed_number_of_queries(admin_client, django_assert_max_num_queries):
    def page_of(rows):
        batch = ImportBatch.objects.create(status=ImportStatus.DONE, row_count=rows, failed_count=rows // 2)
        ImportRow.objects.bulk_create(
            ImportRow(batch=batch, row_number=n, filename=f"{n}.png", result=["failed", "imported"][n % 2])
            for n in range(rows)
        )
        with django_assert_max_num_queries(40) as captured:
            content = admin_client.get(change_url(batch)).content
        return len(captured), len(content)

    few, many = page_of(4), page_of(1000)
    assert few[0] == many[0]
    assert many[1] < 200_000


# --- Dry run, cancel, rows, and whose imports they are ----------------------------------------------------------


def test_a_dry_run_says_what_would_happen(client, researcher, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            UPLOAD,
            {
                "archive": archive(clean(), clean("absent.png")),
                "visibility": "public",
                "is_dry_run": "on",
                "_save": "1",
            },
        )
    page = text_of(client.get(change_url(ImportBatch.objects.get())))
    assert not Image.objects.exists()
    assert "Dry run" in page
    assert "Would be imported 1" in page
    assert "nothing was imported. Correct the rows below in your manifest" in page
    assert "Good rows" in page
    assert "Look at the images" not in page


def test_an_import_can_be_cancelled(client, researcher):
    batch = planned([clean("a.png"), clean("b.png")])
    import_state.claim_chunk(batch, batch.public_id)
    cancel = reverse("admin:imagedb_importbatch_cancel", args=[batch.pk])
    assert cancel in client.get(change_url(batch)).content.decode()
    assert client.get(cancel).status_code == 405
    answer = client.post(cancel, follow=True)
    assert "Stopping" in text_of(answer)
    assert cancel not in answer.content.decode()
    batch.chunks.update(claimed_at=None)
    work_on(batch)
    page = text_of(client.get(change_url(batch)))
    assert "Cancelled" in page
    assert "No image had been imported by then. 2 rows were not looked at. Running it again does the rest." in page
    assert "Run this one again" in page


def test_what_became_of_every_row_can_be_downloaded(client, researcher, django_capture_on_commit_callbacks):
    batch, _ = upload(client, django_capture_on_commit_callbacks, clean("=1+1.png"), clean("absent.png"))
    rows = reverse("admin:imagedb_importbatch_rows", args=[batch.pk])
    assert rows in client.get(change_url(batch)).content.decode()
    answer = client.get(rows)
    assert answer["Content-Disposition"] == f'attachment; filename="import-{batch.pk}-rows.csv"'
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0] == "row,filename,kind,result,message,image,sha256"
    assert lines[1].startswith("2,'=1+1.png,clean,imported,,")
    assert lines[2].startswith("3,absent.png,,failed,")


def test_images_can_be_given_to_a_group_of_ones_own(client, researcher, django_capture_on_commit_callbacks):
    own, other = Group.objects.create(name="Lab A"), Group.objects.create(name="Lab B")
    researcher.groups.add(own)
    page = client.get(UPLOAD).content.decode()
    assert "Lab A" in page
    assert "Lab B" not in page
    fields = {"visibility": "private", "_save": "1"}
    answer = client.post(UPLOAD, {"archive": archive(clean()), "group": other.pk, **fields})
    assert "Select a valid choice" in text_of(answer)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(UPLOAD, {"archive": archive(clean()), "group": own.pk, **fields})
    assert Image.objects.get().group == own


def test_a_prefix_is_asked_for_only_where_there_is_a_bucket(client, researcher):
    assert "prefix of the bucket" not in text_of(client.get(UPLOAD))


def test_private_imports_of_others_are_not_shown(client, researcher):
    mine = planned([clean("mine.png")], visibility="private", created_by=researcher)
    others = planned([clean("secret.png")], visibility="private", created_by=User.objects.create_user("another"))
    listed = text_of(client.get(reverse("admin:imagedb_importbatch_changelist")))
    assert f"Import {mine.pk}" in listed
    assert f"Import {others.pk}" not in listed
    assert f"Import {others.pk}" not in text_of(client.get(reverse("admin:index")))
    for name in ("live", "rows"):
        assert client.get(reverse(f"admin:imagedb_importbatch_{name}", args=[others.pk])).status_code == 404
        assert client.get(reverse(f"admin:imagedb_importbatch_{name}", args=[mine.pk])).status_code == 200
    for name in ("again", "cancel"):
        assert client.post(reverse(f"admin:imagedb_importbatch_{name}", args=[others.pk])).status_code == 404
    rows = text_of(client.get(reverse("admin:imagedb_importrow_changelist")))
    assert "mine.png" in rows
    assert "secret.png" not in rows


def test_an_upload_that_was_taken_meanwhile_is_told(client, researcher, monkeypatch):
    def refuse(*arguments, **options):
        raise ImportRefused("upload", "roofs.zip belongs to an import already.")

    monkeypatch.setattr(imports, "request_new_import", refuse)
    answer = client.post(UPLOAD, {"archive": archive(clean()), "visibility": "public", "_save": "1"}, follow=True)
    assert "roofs.zip belongs to an import already." in text_of(answer)
    assert not ImportBatch.objects.exists()


def test_a_folder_that_only_the_command_line_knows_is_not_read_again(client, researcher, folder):
    folder.add("clean.png").run(clean(), clean("absent.png"))
    batch = ImportBatch.objects.get()
    again = reverse("admin:imagedb_importbatch_again", args=[batch.pk])
    assert again not in client.get(change_url(batch)).content.decode()
    assert client.post(again).status_code == 404
