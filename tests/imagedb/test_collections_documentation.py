"""What docs/collections.md says is so."""

import re
import subprocess
import sys
import urllib.request

import pytest
from django.contrib.auth.models import User

from imagedb.collection_manifest import KEYS
from imagedb.models import Image
from imagedb.services import collections as services
from tests import factories
from tests.common.test_documentation import PROJECT, code_blocks
from tests.imagedb import catalogue

DOCUMENT = "docs/collections.md"


def test_every_key_of_a_manifest_is_explained():
    text = (PROJECT / DOCUMENT).read_text()
    section = text[text.index("## The manifest") : text.index("What does not apply")]
    first_cells = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(first_cells)) == list(KEYS)


@pytest.fixture
def frozen(live_server):
    """A version with a clean and a modified image, at the address of the demonstration's."""
    curator = User.objects.create_superuser("curator")
    source = factories.clean_image(licence="CC0", original_filename="Häuser.png")
    modified = factories.modified_image(source, attack=factories.attack(), target_model=None, licence="CC0")
    model = factories.target_model()
    catalogue.predict(source, model, confidence=0.1 + 0.2)
    draft = services.create_collection(curator, name="Roofs", slug="demo-photographs", target_model=model)
    services.change_draft(draft, licence="CC0", citation="Somebody")
    services.add_images(draft, Image.objects.filter(pk__in=[source.pk, modified.pk]), "All.", curator)
    return services.freeze(draft, curator)


def checked(live_server, folder):
    """What the document's two examples say, one after the other."""
    (shell,) = [block for block in code_blocks(DOCUMENT, "sh") if "curl" in block]
    addresses = re.findall(r'--output (\S+) "\$version(/\S+)"', shell)
    base = re.findall(r"^version=(\S+)$", shell, re.MULTILINE)[0].replace("http://localhost:8000", live_server.url)
    for name, address in addresses:
        with urllib.request.urlopen(base + address) as response:  # noqa: S310
            (folder / name).write_bytes(response.read())
    return run_check(folder)


def run_check(folder):
    (example,) = code_blocks(DOCUMENT, "python")
    run = subprocess.run(
        [sys.executable, "-c", example, "manifest.jsonl", "archive.zip"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return run.stdout.splitlines()


@pytest.mark.django_db(transaction=True)
def test_the_digest_can_be_recomputed_from_what_one_has_downloaded(live_server, frozen, tmp_path):
    assert checked(live_server, tmp_path) == [
        f"SHA-256 of the manifest: {frozen.manifest_sha256}",
        "2 of 2 images are in the archive, byte for byte.",
    ]
    manifest = tmp_path / "manifest.jsonl"
    lines = manifest.read_text(encoding="utf-8").splitlines()
    # In another order and with spaces it still says the same, and its digest is the same.
    manifest.write_text("\n".join(line.replace(',"', ', "') for line in reversed(lines)), encoding="utf-8")
    assert run_check(tmp_path)[0] == f"SHA-256 of the manifest: {frozen.manifest_sha256}"
    absent = "0" * 64
    first = re.search(r'"sha256":"(\w+)"', manifest.read_text(encoding="utf-8")).group(1)
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(first, absent), encoding="utf-8")
    digest, found = run_check(tmp_path)
    assert not digest.endswith(frozen.manifest_sha256)
    assert found.startswith("1 of 2 images are in the archive")
