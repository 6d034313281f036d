"""The catalogue's pages in the admin: upload, look, correct; and what is refused."""

import html
import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from imagedb.models import Attack, Image, ImportBatch, ImportRow, Prediction, TargetModel, Visibility
from imagedb.models.imports import ImportStatus
from scooter_site.common.admin_tools import change_url
from scooter_site.common.groups import RESEARCHERS
from tests import factories
from tests.imagedb.manifests import clean, manifest_text, modified, zip_of

pytestmark = pytest.mark.django_db

IMAGES = reverse("admin:imagedb_image_changelist")
UPLOAD = reverse("admin:imagedb_importbatch_add")


@pytest.fixture
def researcher(client):
    user = User.objects.create_user("researcher", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    client.force_login(user)
    return user


@pytest.fixture
def viewer(client):
    user = User.objects.create_user("viewer", is_staff=True)
    for codename in ("view_image", "view_importbatch"):
        user.user_permissions.add(Permission.objects.get(codename=codename))
    client.force_login(user)
    return user


def text_of(response) -> str:
    content = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", content)).split())


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


# --- Attacks and target models --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Attack, TargetModel])
def test_attacks_and_target_models_are_added_with_a_name(client, researcher, model):
    address = reverse(f"admin:imagedb_{model._meta.model_name}_add")
    assert client.get(address).status_code == 200
    client.post(address, {"name": "Snow", "slug": "snow", "family": "colour", "_save": "Save"})
    assert model.objects.get().slug == "snow"


def test_an_attack_in_use_is_not_deleted_and_the_page_says_why(admin_client):
    image = factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    delete = reverse("admin:imagedb_attack_delete", args=[image.attack.pk])
    assert "protected related objects" in text_of(admin_client.get(delete))
    admin_client.post(delete, {"post": "yes"})
    assert Attack.objects.exists()


def test_lists_count_the_images_and_lead_to_them(client, researcher):
    attack = factories.attack()
    for _ in range(2):
        factories.modified_image(attack=attack, target_model=factories.target_model())
    page = client.get(reverse("admin:imagedb_attack_changelist"))
    address = f"{IMAGES}?attack__id__exact={attack.pk}"
    assert f'href="{address}">2</a>' in page.content.decode()
    assert "2 images" in text_of(client.get(address))


def test_the_classes_are_a_fixed_list(admin_client):
    assert "1000 ImageNet classes" in text_of(admin_client.get(reverse("admin:imagedb_imageclass_changelist")))
    assert admin_client.get(reverse("admin:imagedb_imageclass_add")).status_code == 403


# --- Import ---------------------------------------------------------------------------------------------------


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
    assert client.post(reverse("admin:imagedb_importbatch_again", args=[batch.pk])).status_code == 403


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


# --- Images ---------------------------------------------------------------------------------------------------


def test_a_modified_image_is_shown_beside_its_source(client, researcher):
    image = factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    page = client.get(change_url(image)).content.decode()
    for shown in (image, image.source):
        address = reverse("imagedb:image-file", args=[shown.public_id])
        assert f'src="{address}"' in page
        file = client.get(address)
        assert file["Content-Type"] == "image/png"
        assert b"".join(file.streaming_content).startswith(b"\x89PNG")
    assert str(image.attack) in text_of(client.get(change_url(image.source))), "the source lists its versions"


def test_images_are_found_by_filename_digest_and_class(client, researcher):
    image = factories.clean_image(original_filename="roofs/snowy.png", image_class=factories.image_class(409))
    factories.clean_image()
    for words in ("snowy", image.original_sha256[:12], image.image_class.name, str(image.public_id)):
        page = client.get(IMAGES, {"q": words})
        assert [found.pk for found in page.context["cl"].result_list] == [image.pk], words


def filtered(client, **query):
    return {image.pk for image in client.get(IMAGES, query).context["cl"].result_list}


def test_images_are_filtered(client, researcher):
    attack, target_model = factories.attack(), factories.target_model()
    shown = factories.modified_image(attack=attack, target_model=target_model, visibility=Visibility.PRIVATE)
    other = factories.modified_image(attack=factories.attack(), target_model=factories.target_model(), is_demo=True)
    cleans = {shown.source_id, other.source_id}
    assert filtered(client, kind__exact="clean") == cleans
    assert filtered(client, attack__id__exact=attack.pk) == {shown.pk}
    assert filtered(client, target_model__id__exact=target_model.pk) == {shown.pk}
    assert filtered(client, visibility__exact="private") == {shown.pk}
    assert filtered(client, is_demo__exact="1") == {other.pk}
    assert filtered(client, image_class__id__exact=shown.image_class_id) == {shown.pk, other.pk} | cleans


def test_verification_is_the_target_models_word(client, researcher):
    target_model = factories.target_model()
    misled, right, silent = (
        factories.modified_image(attack=factories.attack(), target_model=target_model) for _ in range(3)
    )
    recognised, mistaken = factories.clean_image(), factories.clean_image()
    wrong_class = factories.image_class(0)
    for image, answer in [
        (misled, wrong_class),
        (right, right.image_class),
        (recognised, recognised.image_class),
        (mistaken, wrong_class),
    ]:
        Prediction.objects.create(image=image, target_model=target_model, predicted_class=answer)
    # Another model's word on a modified image verifies nothing.
    Prediction.objects.create(image=silent, target_model=factories.target_model(), predicted_class=wrong_class)
    assert filtered(client, verified="yes") == {misled.pk, recognised.pk}
    assert filtered(client, verified="wrong") == {right.pk, mistaken.pk}
    assert silent.pk in filtered(client, verified="no")


def test_visibility_is_changed_for_one_image_or_many(client, researcher):
    first, second = factories.clean_image(), factories.clean_image()
    form = {
        "visibility": "private",
        "licence": "CC0",
        "attribution": "",
        "predictions-TOTAL_FORMS": 0,
        "predictions-INITIAL_FORMS": 0,
        "_save": "Save",
    }
    client.post(change_url(first), form)
    first.refresh_from_db()
    assert (first.visibility, first.licence) == ("private", "CC0")
    answer = client.post(IMAGES, {"action": "make_registered", "_selected_action": [first.pk, second.pk]}, follow=True)
    assert "2 images are now registered." in text_of(answer)
    assert set(Image.objects.values_list("visibility", flat=True)) == {"registered"}


def test_who_may_only_look_changes_no_visibility(client, viewer):
    image = factories.clean_image()
    client.post(IMAGES, {"action": "make_private", "_selected_action": [image.pk]})
    assert client.post(change_url(image), {"visibility": "private"}).status_code == 403
    image.refresh_from_db()
    assert image.visibility == Visibility.PUBLIC


def test_an_image_in_a_study_is_not_deleted_and_the_page_says_why(admin_client):
    study = factories.ready_study()
    image = study.datasets.first().dataset_images.first().image
    delete = reverse("admin:imagedb_image_delete", args=[image.pk])
    assert "protected related objects" in text_of(admin_client.get(delete))
    admin_client.post(delete, {"post": "yes"})
    assert Image.objects.filter(pk=image.pk).exists()


def test_an_image_nobody_uses_is_deleted_with_its_files(admin_client, django_capture_on_commit_callbacks):
    image = factories.clean_image()
    storage, name = image.rendition.storage, image.rendition.name
    assert storage.exists(name)
    with django_capture_on_commit_callbacks(execute=True):
        admin_client.post(reverse("admin:imagedb_image_delete", args=[image.pk]), {"post": "yes"})
    assert not Image.objects.exists()
    assert not storage.exists(name)


def test_the_list_of_images_costs_the_same_for_3_and_for_30(admin_client, django_assert_max_num_queries):
    def grow(count):
        for _ in range(count):
            factories.modified_image(attack=factories.attack(), target_model=factories.target_model())

    def queries():
        with django_assert_max_num_queries(30) as captured:
            assert admin_client.get(IMAGES).status_code == 200
        return len(captured)

    grow(2)
    few = queries()
    grow(18)
    assert queries() == few
