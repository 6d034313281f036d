"""``manage.py import_images``."""

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from imagedb.models import Image, ImportBatch
from imagedb.services import import_plan, import_state
from imagedb.services.importing import cancel_import
from tests.imagedb.manifests import Folder, clean, manifest_text, modified

pytestmark = pytest.mark.django_db


def run(folder: Folder, *rows, **options) -> None:
    manifest = folder.path / "list.csv"
    manifest.write_text(manifest_text(list(rows)))
    call_command("import_images", str(manifest), images=folder.images, **options)


def test_success(folder, capsys):
    folder.add("clean.png", "modified.png")
    run(folder, clean(), modified(), visibility="public", licence="CC0-1.0", attribution="Somebody")
    out, err = capsys.readouterr()
    assert "2 rows: 2 imported, 0 already there, 0 failed." in out
    assert "Created attack cAdv (cadv)." in out
    assert err == ""
    assert set(Image.objects.values_list("visibility", "licence", "attribution")) == {("public", "CC0-1.0", "Somebody")}


def test_failed_rows_are_on_stderr_with_row_and_file_and_the_status_is_1(folder, capsys):
    folder.add("clean.png")
    with pytest.raises(SystemExit) as stopped:
        run(folder, clean(), modified("absent.png"))
    assert stopped.value.code == 1
    out, err = capsys.readouterr()
    assert "row 3 (absent.png): filename:" in err
    assert "2 rows: 1 imported, 0 already there, 1 failed." in out
    assert Image.objects.count() == 1


def test_images_are_registered_unless_told_otherwise(folder):
    run(folder.add("clean.png"), clean())
    assert Image.objects.get().visibility == "registered"


def test_dry_run(folder, capsys):
    run(folder.add("clean.png"), clean(), dry_run=True)
    assert "1 would be imported" in capsys.readouterr().out
    assert not Image.objects.exists()
    batch = ImportBatch.objects.get()
    assert (batch.is_dry_run, batch.rows.get().result) == (True, "imported")


@pytest.mark.parametrize(
    ("manifest", "images", "words"),
    [("absent.csv", "images", "There is no manifest"), ("list.csv", "absent", "There is no folder or ZIP")],
)
def test_missing_manifest_or_folder(folder, manifest, images, words):
    (folder.path / "list.csv").write_text(manifest_text([clean()]))
    with pytest.raises(CommandError, match=words):
        call_command("import_images", str(folder.path / manifest), images=folder.path / images)


def test_too_long_a_licence(folder):
    with pytest.raises(CommandError, match="at most 100"):
        run(folder.add("clean.png"), clean(), licence="x" * 101)


def test_manifest_among_the_images_is_not_an_unused_file(folder, capsys):
    folder.add("clean.png")
    (folder.images / "list.csv").write_text(manifest_text([clean()]))
    call_command("import_images", str(folder.images / "list.csv"), images=folder.images)
    assert "in no row" not in capsys.readouterr().out


def test_the_folder_may_be_given_without_an_option(folder, capsys):
    folder.add("clean.png")
    (folder.path / "list.csv").write_text(manifest_text([clean()]))
    call_command("import_images", str(folder.path / "list.csv"), str(folder.images))
    assert "1 rows: 1 imported" in capsys.readouterr().out


def test_a_manifest_of_json_lines(folder, capsys):
    folder.add("clean.png")
    (folder.path / "list.jsonl").write_text(json.dumps(clean()) + "\n")
    call_command("import_images", str(folder.path / "list.jsonl"), str(folder.images))
    assert "1 rows: 1 imported" in capsys.readouterr().out


def test_group(folder):
    group = Group.objects.create(name="Lab A")
    run(folder.add("clean.png"), clean(), group="Lab A", visibility="private")
    assert Image.objects.get().group == group
    with pytest.raises(CommandError, match=r"no group Lab B\. Groups: .*Lab A"):
        run(folder, clean(), group="Lab B")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either a folder or ZIP"),
        ({"images": Path("images"), "prefix": "incoming/a/"}, "either a folder or ZIP"),
        ({"prefix": "incoming/a/"}, "kept on disk here, not in a bucket"),
        ({"images": Path("images"), "workers": 0}, "--workers must be at least 1"),
    ],
)
def test_options_that_make_no_sense(folder, options, words):
    (folder.path / "list.csv").write_text(manifest_text([clean()]))
    with pytest.raises(CommandError, match=words):
        call_command("import_images", str(folder.path / "list.csv"), **options)
    assert not ImportBatch.objects.exists()


def test_running_it_again_adds_the_rest(folder, capsys):
    run(folder.add("clean.png"), clean())
    run(folder.add("modified.png"), clean(), modified())
    assert "2 rows: 1 imported, 1 already there, 0 failed." in capsys.readouterr().out


def test_one_that_is_cancelled_says_so_and_fails(folder, capsys, monkeypatch):
    monkeypatch.setattr(import_plan, "CHUNK_ROWS", 1)
    renew_lease = import_state.renew_lease

    def cancel(claim):
        cancel_import(ImportBatch.objects.get())
        renew_lease(claim)

    monkeypatch.setattr(import_state, "renew_lease", cancel)
    with pytest.raises(SystemExit):
        run(folder.add("clean.png", "b.png"), clean(), clean("b.png"))
    out = capsys.readouterr().out
    assert "cancelled before it was done" in out
    assert "2 rows: 1 imported, 0 already there, 0 failed." in out
