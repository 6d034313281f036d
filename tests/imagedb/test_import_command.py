"""``manage.py import_images``."""

import pytest
from django.core.management import CommandError, call_command

from imagedb.models import Image, ImportBatch
from tests.imagedb.manifests import Folder, clean, manifest_text, modified

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path)


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
    assert not ImportBatch.objects.exists()


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
