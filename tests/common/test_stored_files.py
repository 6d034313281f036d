"""Which rows have which files, and that files go with the last row that has them."""

import logging

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import models, transaction

from imagedb.models import Image, ImportBatch, Prediction, Upload, UploadStatus
from scooter_site.common.storage import LocalStorage, protected_storage
from scooter_site.common.stored_files import (
    delete_files_after_commit,
    file_columns,
    known_files,
    names_in_use,
)
from studies.models import Study
from tests import factories

pytestmark = pytest.mark.django_db


def stored(file) -> bool:
    return file.storage.exists(file.name)


def files_of(image):
    return [image.original, image.rendition, image.thumbnail]


def upload(name: str, status: str, **fields) -> Upload:
    user, _ = get_user_model().objects.get_or_create(username="sender")
    return Upload.objects.create(
        filename="a.zip", size=5, part_size=5, status=status, file=name, created_by=user, **fields
    )


class TestColumns:
    def test_every_file_field_of_every_model_is_known(self):
        columns = {(column.model, column.name) for column in file_columns()}
        assert columns == {
            (model, field.name)
            for model in apps.get_models()
            for field in model._meta.get_fields()
            if isinstance(field, models.FileField)
        }
        assert len(columns) >= 9

    def test_the_columns_beside_say_what_a_file_must_be(self):
        facts = {column.label: column.facts for column in file_columns()}
        assert (facts["image.original"].size, facts["image.original"].digest) == ("original_bytes", "original_sha256")
        assert (facts["image.thumbnail"].size, facts["image.thumbnail"].digest) == (None, None)
        assert facts["collectionversion.manifest"].digest == "manifest_sha256"
        assert facts["upload.file"].size == "size"


class TestKnownFiles:
    def test_in_the_order_of_bytes_with_what_rows_say(self):
        images = [factories.clean_image() for _ in range(3)]
        # As a language's dictionary orders them, "Z" comes last and the dot is overlooked.
        Image.objects.filter(pk=images[0].pk).update(original="Z/1.png")
        Image.objects.filter(pk=images[1].pk).update(original="a.1.png")
        Image.objects.filter(pk=images[2].pk).update(original="a/1.png")
        found = list(known_files("protected"))
        assert [file.name for file in found] == sorted(file.name for file in found)
        assert len(found) == 9
        (first,) = next(file for file in found if file.name == "Z/1.png").owners
        assert (str(first), first.size) == (f"image.original {images[0].pk}", images[0].original_bytes)
        assert (first.sha256, first.is_whole) == (images[0].original_sha256, True)

    def test_a_file_of_two_rows_comes_once(self):
        upload("upload/1.zip", UploadStatus.USED)
        ImportBatch.objects.create(archive="upload/1.zip")
        (file,) = known_files("private")
        assert sorted(owner.column.label for owner in file.owners) == ["importbatch.archive", "upload.file"]

    def test_an_upload_under_way_need_not_be_whole(self):
        upload("upload/1.zip", UploadStatus.RECEIVING)
        upload("upload/2.zip", UploadStatus.COMPLETE)
        assert [(file.name, file.owners[0].is_whole) for file in known_files("private")] == [
            ("upload/1.zip", False),
            ("upload/2.zip", True),
        ]

    def test_rows_without_a_file_have_none(self):
        ImportBatch.objects.create()
        assert list(known_files("private")) == []

    def test_in_use(self):
        image = factories.clean_image()
        names = [image.original.name, image.thumbnail.name, "original/ab/nobody.png"]
        assert names_in_use("protected", names) == {image.original.name, image.thumbnail.name}
        assert names_in_use("private", names) == set()

    def test_in_use_asks_once_for_each_table(self, django_assert_num_queries):
        tables = {column.model for column in file_columns() if column.level == "protected"}
        with django_assert_num_queries(2 * len(tables)):
            names_in_use("protected", [f"x/{number}.png" for number in range(1500)])


class TestDeletion:
    def test_rows_take_their_files_along_after_the_commit(self, django_capture_on_commit_callbacks):
        images = [factories.clean_image() for _ in range(3)]
        kept, *gone = images
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            Image.objects.filter(pk__in=[image.pk for image in gone]).delete()
            assert all(stored(file) for image in images for file in files_of(image))
        assert len(callbacks) == 1  # tables are looked through once, however many rows there are
        assert not any(stored(file) for image in gone for file in files_of(image))
        assert all(stored(file) for file in files_of(kept))

    def test_cascades_too(self, django_capture_on_commit_callbacks):
        study = factories.ready_study()
        files = [stimulus.file for stimulus in study.stimuli.all()]
        assert files
        with django_capture_on_commit_callbacks(execute=True):
            Study.objects.filter(pk=study.pk).delete()
        assert not any(stored(file) for file in files)

    def test_not_after_a_roll_back(self, django_capture_on_commit_callbacks):
        image = factories.clean_image()
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            image.delete()
            transaction.set_rollback(True)
        assert Image.objects.exists()
        assert all(stored(file) for file in files_of(Image.objects.get()))

    def test_not_what_a_part_of_the_transaction_took_back(self, django_capture_on_commit_callbacks):
        first, second, third = (factories.clean_image() for _ in range(3))
        with django_capture_on_commit_callbacks(execute=True):
            first.delete()
            with transaction.atomic():
                second.delete()
                transaction.set_rollback(True)
            with transaction.atomic():
                third.delete()
        assert [stored(image.original) for image in (first, second, third)] == [False, True, False]

    def test_a_file_that_another_row_has_stays(self, django_capture_on_commit_callbacks):
        name = storages["private"].save("upload/ab/shared.zip", ContentFile(b"12345"))
        sent = upload(name, UploadStatus.USED)
        batch = ImportBatch.objects.create(archive=name)
        with django_capture_on_commit_callbacks(execute=True):
            sent.delete()
        assert stored(batch.archive)
        with django_capture_on_commit_callbacks(execute=True):
            batch.delete()
        assert not stored(batch.archive)

    def test_a_file_that_was_replaced(self, django_capture_on_commit_callbacks):
        image = factories.clean_image()
        old, new = image.thumbnail.name, protected_storage().save("thumbnail/ab/new.jpg", ContentFile(b"new"))
        with django_capture_on_commit_callbacks(execute=True):
            delete_files_after_commit([image.thumbnail])
            image.thumbnail = new
            image.save()
        assert not protected_storage().exists(old)
        assert protected_storage().exists(new)

    def test_no_file_and_no_row_with_files(self, django_capture_on_commit_callbacks):
        batch = ImportBatch.objects.create()
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            batch.delete()
            Prediction.objects.all().delete()
        assert callbacks == []

    def test_a_storage_that_fails_fails_nothing_else(self, monkeypatch, caplog, django_capture_on_commit_callbacks):
        image = factories.clean_image()
        delete = LocalStorage.delete

        def failing(storage, name):
            if name == image.original.name:
                raise OSError("the disk is away")
            delete(storage, name)

        monkeypatch.setattr(LocalStorage, "delete", failing)
        with caplog.at_level(logging.ERROR), django_capture_on_commit_callbacks(execute=True):
            image.delete()
        assert not Image.objects.exists()
        assert [stored(file) for file in files_of(image)] == [True, False, False]
        assert image.original.name in caplog.text
