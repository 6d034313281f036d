"""The documentation is true where a machine can tell: links lead somewhere, examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User

from imagedb.manifest import COLUMNS, parse
from imagedb.models.uploads import UploadStatus
from imagedb.services.uploads import begin_upload
from imagedb.upload_parts import DiskParts
from scooter_site.accounts.tokens import create_token
from tests import factories
from tests.imagedb.sendings import random_bytes, send, stored_bytes

PROJECT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
LARGEST_PICTURE_BYTES = 250_000


def code_blocks(document: str, language: str) -> list[str]:
    text = (PROJECT / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_and_pictures_exist(document):
    targets = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    for target in targets:
        if not re.match(r"https?:|mailto:|#", target):
            path = document.parent / unquote(target.split("#")[0])
            assert path.exists(), f"{document.name} links to {target}"


def test_pictures_are_small():
    for picture in (PROJECT / "docs" / "images").iterdir():
        assert picture.stat().st_size < LARGEST_PICTURE_BYTES, picture.name


def test_every_document_is_linked_from_another():
    linked = {
        (document.parent / target.split("#")[0]).resolve()
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    }
    assert {document for document in DOCUMENTS if document.name != "README.md"} <= linked


def test_the_example_manifest_is_valid_and_every_column_is_explained():
    (example,) = code_blocks("docs/import.md", "csv")
    manifest = parse(example.encode())
    assert ([row.kind for row in manifest.rows], manifest.errors) == (["clean", "modified"], [])
    text = (PROJECT / "docs" / "import.md").read_text()
    table = " ".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", table)) == set(COLUMNS)


@pytest.mark.django_db(transaction=True)
def test_the_download_example_downloads_every_image(live_server, tmp_path):
    attack = factories.attack(slug="demo-strong-recolouring")
    images = [factories.modified_image(attack=attack, target_model=None) for _ in range(55)]  # more than one page
    factories.modified_image(attack=factories.attack(), target_model=None)
    (example,) = code_blocks("docs/api.md", "python")
    code = example.replace("http://localhost:8000", live_server.url)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    downloaded = {path.read_bytes() for path in (tmp_path / "images").iterdir()}
    stored = set()
    for image in images:
        with image.original.open("rb") as file:
            stored.add(file.read())
    assert downloaded == stored


@pytest.mark.django_db(transaction=True)
def test_the_upload_example_goes_on_where_it_was_and_sends_the_same_bytes(live_server, tmp_path, monkeypatch):
    monkeypatch.setattr(DiskParts, "usual_part_size", 1024)
    monkeypatch.setattr("imagedb.upload_parts.MEBIBYTE", 1024)
    content = random_bytes(5000)
    (tmp_path / "images.zip").write_bytes(content)
    user = User.objects.create_superuser("uploader")
    _, key = create_token(user, "example")
    upload = begin_upload(user, "images.zip", len(content))
    send(upload, content, 2, 5)
    (example,) = code_blocks("docs/uploads.md", "python")
    code = example.replace("http://localhost:8000", live_server.url)
    environment = {**os.environ, "SCOOTER_TOKEN": key}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert run.stdout.splitlines() == [
        "part 1 of 5",
        "part 3 of 5",
        "part 4 of 5",
        str(upload.public_id),
    ]
    upload.refresh_from_db()
    assert (upload.status, stored_bytes(upload)) == (UploadStatus.COMPLETE, content)


def test_the_makefile_has_the_targets_that_are_documented():
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        documented = set(re.findall(r"(?:^|`)(?:PORT=\d+ )?make ([a-z-]+)", document.read_text(), re.MULTILINE))
        assert documented <= targets, document.name
