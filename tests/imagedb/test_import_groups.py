"""Whose images an import may build on, and whose it finds there: those of its own group, seen by its account."""

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError

from imagedb.models import Attack, Image, ImportBatch, Prediction, TargetModel, Visibility
from imagedb.services import import_commit
from tests.factories import png_bytes
from tests.imagedb.api_clients import collection_with, user
from tests.imagedb.manifests import assert_sound, clean, failures, modified, planned, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_storage")]


@pytest.fixture
def labs() -> tuple[Group, Group]:
    return Group.objects.create(name="Lab A"), Group.objects.create(name="Lab B")


def member(name: str, *groups: Group):
    account = user(name)
    account.groups.set(groups)
    return account


class TestCopies:
    def test_each_group_has_its_own(self, folder, labs):
        folder.add("clean.png", "modified.png")
        for group in (None, *labs):
            summary = folder.run(clean(), modified(), batch=ImportBatch(group=group))
            assert (summary.imported, summary.already_there) == (2, 0)
        for group in (None, *labs):
            assert folder.run(clean(), modified(), batch=ImportBatch(group=group)).already_there == 2
            image = Image.objects.get(kind="modified", group=group)
            assert image.source.group == group
        assert Image.objects.count() == 6
        assert_sound()

    def test_an_image_of_ones_group_is_there_whoever_brought_it(self, folder, labs):
        folder.add("clean.png")
        for name in ("one", "another"):
            account = member(name, labs[0])
            batch = ImportBatch(group=labs[0], visibility=Visibility.PRIVATE, created_by=account)
            summary = folder.run(clean(), batch=batch)
        assert summary.already_there == 1

    def test_a_private_image_of_nobodys_group_is_not_told_to_others(self, folder):
        folder.add("clean.png")
        row = clean(target_model="m", predicted_class_index=281)
        private = {"visibility": Visibility.PRIVATE}
        folder.run(row, batch=ImportBatch(created_by=member("one"), **private))
        summary = folder.run({**row, "confidence": 0.3}, batch=ImportBatch(created_by=member("another"), **private))
        assert failures(summary) == [(2, "filename")]
        assert "not open to your account" in summary.errors[0].message
        assert Prediction.objects.get().confidence is None


class TestSources:
    def test_those_of_another_group_are_none(self, folder, labs):
        folder.add("clean.png", "modified.png")
        folder.run(clean(), batch=ImportBatch(group=labs[0], visibility=Visibility.PUBLIC))
        for group in (labs[1], None):
            summary = folder.run(modified(), batch=ImportBatch(group=group))
            assert failures(summary) == [(2, "source_filename")]
            assert "you may use; import it first" in summary.errors[0].message
        assert folder.run(modified(), batch=ImportBatch(group=labs[0])).imported == 1

    def test_those_the_account_may_not_see_are_none(self, folder):
        folder.add("clean.png", "modified.png")
        folder.run(clean(), batch=ImportBatch(created_by=member("one"), visibility=Visibility.PRIVATE))
        assert failures(folder.run(modified(), batch=ImportBatch(created_by=member("another")))) == [
            (2, "source_filename")
        ]
        assert folder.run(modified(), batch=ImportBatch(created_by=user("root", is_superuser=True))).imported == 1

    def test_the_command_line_without_an_account_may_use_all_of_its_group(self, folder):
        folder.add("clean.png", "modified.png")
        folder.run(clean(), batch=ImportBatch(created_by=member("one"), visibility=Visibility.PRIVATE))
        assert folder.run(modified(), batch=ImportBatch()).imported == 1


class TestAtTheSameMoment:
    """Another import puts the same in while this one has looked and not stored yet."""

    CONTENTS = {"clean.png": png_bytes(1), "modified.png": png_bytes(2)}

    def race(self, monkeypatch, rows, others, **fields):
        batch, other = planned(rows, contents=self.CONTENTS, **fields), planned(others, contents=self.CONTENTS)
        commit, raced = import_commit._store, []

        def let_the_other_go_first(*arguments):
            if not raced:
                raced.append(1)
                work_on(other)
            return commit(*arguments)

        monkeypatch.setattr(import_commit, "_store", let_the_other_go_first)
        work_on(batch)
        assert_sound()
        return [row.result for row in batch.rows.all()]

    def test_all_of_it(self, monkeypatch):
        rows = [clean(), modified()]
        assert self.race(monkeypatch, rows, rows) == ["already_there", "already_there"]
        assert Image.objects.count() == 2

    def test_the_source_only(self, monkeypatch):
        assert self.race(monkeypatch, [clean(), modified()], [clean()]) == ["already_there", "imported"]
        assert Image.objects.get(kind="modified").source == Image.objects.get(kind="clean")

    def test_an_attack_under_another_spelling(self, monkeypatch):
        rows = [clean(), modified(attack="CADV", target_model="resnet 50")]
        others = [clean("x.png"), modified("y.png", source_filename="x.png")]
        assert self.race(monkeypatch, rows, others) == ["imported", "imported"]
        assert Attack.objects.count() == 1

    def test_what_the_database_refuses_fails_alone(self, monkeypatch):
        store, refused = import_commit._put_in, []

        def refuse(batch, findings):
            if any(finding.row.filename == "bad.png" for finding in findings):
                refused.append(1)
                raise IntegrityError("some_rule: it is not to be")
            return store(batch, findings)

        monkeypatch.setattr(import_commit, "_put_in", refuse)
        rows = [clean(), clean("bad.png"), modified(), modified("m2.png", source_filename="bad.png")]
        batch = planned(rows)
        work_on(batch)
        assert [row.result for row in batch.rows.all()] == ["imported", "failed", "imported", "failed"]
        assert "the database refuses it: some_rule: it is not to be" in batch.rows.get(filename="bad.png").message
        assert "mend its row first" in batch.rows.get(filename="m2.png").message
        assert len(refused) == 3
        assert Image.objects.get(kind="modified").source == Image.objects.get(kind="clean")
        assert_sound()

    def test_a_prediction_that_a_frozen_collection_holds_is_not_changed(self, folder):
        folder.add("clean.png", "other.png")
        row = clean(target_model="m", predicted_class_index=281, confidence=0.9)
        folder.run(row)
        collection_with("c", Image.objects.get(), target_model=TargetModel.objects.get())
        summary = folder.run({**row, "confidence": 0.5}, clean("other.png"))
        assert failures(summary) == [(2, "")]
        assert "frozen version" in summary.errors[0].message
        assert (Prediction.objects.get().confidence, summary.imported) == (0.9, 1)
