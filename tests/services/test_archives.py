"""Downloads of archives from the real web server: connections that break, clients that stall, files that are gone."""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.services.site import PROJECT, Site, free_port, running_site, wait_until

pytestmark = pytest.mark.services
ARCHIVE = "/api/v1/images/archive/"
IMAGES, IMAGE_BYTES = 30, 1_000_000

MAKE_IMAGES = f"""
import hashlib, os, zlib
import django
django.setup()
from django.core.files.base import ContentFile
from imagedb.models import Image
from tests import factories
for number in range({IMAGES}):
    image = factories.clean_image()
    content = os.urandom({IMAGE_BYTES})
    image.original.save("image.png", ContentFile(content), save=False)
    image.original_bytes, image.original_crc32 = len(content), zlib.crc32(content)
    image.original_sha256 = hashlib.sha256(content).hexdigest()
    image.save()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with 30 images of a megabyte, and with little patience for clients that take nothing in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARCHIVE_STALL_SECONDS", "2")
        with running_site(tmp_path_factory.mktemp("site"), admin=("root", "a-long-password")) as site:
            environment = {**site.environment, "DJANGO_SETTINGS_MODULE": "scooter_site.settings"}
            subprocess.run([sys.executable, "-c", MAKE_IMAGES], cwd=PROJECT, env=environment, check=True)
            yield site


@pytest.fixture(scope="module")
def digest(site: Site) -> str:
    """Of the whole archive, downloaded without a break."""
    return hashlib.sha256(httpx.get(site.url + ARCHIVE).content).hexdigest()


@contextmanager
def cutting_proxy(site: Site, after: list[int]) -> Iterator[str]:
    """An address in front of the site that breaks its first connections after so many bytes of the answer."""
    limits = list(after)
    target = urlsplit(site.url)
    listener = socket.create_server(("127.0.0.1", free_port()))

    def serve(client: socket.socket, limit: int | None) -> None:
        with client, socket.create_connection((target.hostname, target.port)) as server:
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(65536)
            # One request for each connection, so that every answer counts for itself.
            server.sendall(re.sub(rb"(?i)\r\nconnection: [^\r]*", b"", request)[:-2] + b"Connection: close\r\n\r\n")
            sent = 0
            while content := server.recv(65536):
                if limit is not None and sent + len(content) > limit:
                    client.sendall(content[: limit - sent])
                    return
                client.sendall(content)
                sent += len(content)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client, limits.pop(0) if limits else None), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def documented(language: str) -> str:
    """The first example in that language."""
    text = (PROJECT / "docs" / "downloads.md").read_text()
    return re.search(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class TestBrokenConnections:
    def test_curl_resumes(self, site, digest, tmp_path):
        etag = httpx.head(site.url + ARCHIVE).headers["ETag"]
        with cutting_proxy(site, [5_000_000, 2_000, 12_345_678]) as address:
            command = ["curl", "--fail", "--silent", "--continue-at", "-", "--header", f"If-Match: {etag}"]
            command += ["--output", "images.zip", address + ARCHIVE]
            statuses = [subprocess.run(command, cwd=tmp_path, check=False).returncode for _ in range(4)]
        assert statuses[-1] == 0
        assert statuses[:-1] == [18, 18, 18]  # transfer closed with data outstanding
        assert sha256(tmp_path / "images.zip") == digest

    @pytest.mark.skipif(not shutil.which("wget"), reason="there is no wget")
    def test_wget_resumes_by_itself(self, site, digest, tmp_path):
        with cutting_proxy(site, [5_000_000, 7_000_000]) as address:
            command = ["wget", "--quiet", "--continue", "--tries=4", "--waitretry=0", "--output-document", "images.zip"]
            subprocess.run([*command, address + ARCHIVE], cwd=tmp_path, check=True)
        assert sha256(tmp_path / "images.zip") == digest

    def test_the_documented_python_resumes(self, site, digest, tmp_path):
        with cutting_proxy(site, [1_000_000, 5_000_000]) as address:  # the first connection asks for the length only
            example = re.sub(r'"http://localhost:8000[^"]*"', repr(address + ARCHIVE), documented("python"))
            example = example.replace("sleep(5)", "sleep(0.1)")
            subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True)
        (archive,) = tmp_path.glob("*.zip")
        assert sha256(archive) == digest

    @pytest.mark.skipif(not shutil.which("unzip"), reason="there is no unzip")
    def test_the_documented_commands_download_and_check(self, site, digest, tmp_path):
        example = documented("sh").replace("&attack=demo-strong-recolouring", "").replace("kind=modified", "kind=clean")
        example = example.replace("http://localhost:8000", site.url)
        subprocess.run(["bash", "-e", "-o", "pipefail", "-c", example], cwd=tmp_path, check=True)
        assert len(list((tmp_path / "images" / "clean" / "n02123045").iterdir())) == IMAGES

    def test_what_was_resumed_is_a_sound_archive(self, site, digest, tmp_path):
        with (tmp_path / "images.zip").open("wb") as file:
            for first in range(0, 40_000_000, 7_654_321):
                answer = httpx.get(site.url + ARCHIVE, headers={"Range": f"bytes={first}-{first + 7_654_320}"})
                if answer.status_code == 416:
                    break
                file.write(answer.content)
        assert sha256(tmp_path / "images.zip") == digest
        with zipfile.ZipFile(tmp_path / "images.zip") as archive:
            assert archive.testzip() is None
            assert len(archive.namelist()) == IMAGES + 3


class TestPlaces:
    def stalled(self, site: Site) -> socket.socket:
        """A client that asks for the archive and then takes nothing in."""
        address = urlsplit(site.url)
        client = socket.create_connection((address.hostname, address.port))
        client.sendall(f"GET {ARCHIVE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        return client

    def test_stalled_clients_lose_theirs_and_pages_are_served_meanwhile(self, site, digest):
        clients = [self.stalled(site) for _ in range(2)]
        try:
            wait_until(lambda: httpx.head(site.url + ARCHIVE).status_code == 503, "all places are taken", 10)
            started = time.monotonic()
            assert httpx.get(site.url + "/health/").status_code == 200
            refused = httpx.get(site.url + ARCHIVE)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "60")
            assert time.monotonic() - started < 2  # the places were still taken
            wait_until(lambda: httpx.head(site.url + ARCHIVE).status_code == 200, "there is a place again", 20)
        finally:
            for client in clients:
                client.close()
        assert hashlib.sha256(httpx.get(site.url + ARCHIVE).content).hexdigest() == digest

    def test_who_leaves_gives_his_back(self, site):
        for _ in range(5):
            wait_until(lambda: self.two_places_are_free(site), "both places are free", 20)

    def two_places_are_free(self, site: Site) -> bool:
        """Begin two downloads at once, and leave after the first bytes."""
        with httpx.stream("GET", site.url + ARCHIVE) as first, httpx.stream("GET", site.url + ARCHIVE) as second:
            for answer in (first, second):
                if answer.status_code == 200:
                    next(answer.iter_raw())
            return first.status_code == second.status_code == 200


def test_a_lost_file_breaks_the_download_off(site, tmp_path):
    """Last: the site is not whole afterwards."""
    media = Path(site.environment["MEDIA_ROOT"])
    lost = next(
        path for path in (media / "protected" / "original").rglob("*.png") if path.stat().st_size == IMAGE_BYTES
    )
    lost.rename(tmp_path / "elsewhere")
    wait_until(lambda: httpx.head(site.url + ARCHIVE).status_code == 200, "there is a place", 20)
    command = ["curl", "--fail", "--silent", "--show-error", "--output", os.devnull, site.url + ARCHIVE]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 18, done.stderr  # transfer closed with data outstanding
    log = (site.database.parent / "web.log").read_text()
    assert f"was broken off: original/{lost.parent.name}/{lost.name} cannot be read" in log
    (tmp_path / "elsewhere").rename(lost)
    assert httpx.get(site.url + ARCHIVE).status_code == 200
