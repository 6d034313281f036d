"""gunicorn, as the site runs it, has the operating system send local files: whole ones and parts."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.services.site import free_port, wait_until

pytestmark = pytest.mark.services
PROJECT = Path(__file__).resolve().parent.parent.parent
CONTENT = np.random.default_rng(1).bytes(3_000_000)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Gives the server's address, and the file in which it notes what the operating system sent."""
    folder = tmp_path_factory.mktemp("sending")
    (folder / "media" / "protected").mkdir(parents=True)
    (folder / "media" / "protected" / "sent.png").write_bytes(CONTENT)
    port, sendfile_log = free_port(), folder / "sendfile.log"
    # The project's own configuration, and the hook that looks over its shoulder.
    configuration = folder / "gunicorn_config.py"
    configuration.write_text(
        "from scooter_site.gunicorn_config import *\nfrom tests.services.sending_app import post_worker_init\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "MEDIA_ROOT": str(folder / "media"),
        "S3_URL": "",
        "PORT": str(port),
        "WEB_WORKERS": "1",
        "SENDFILE_LOG": str(sendfile_log),
    }
    command = [sys.executable, "-m", "gunicorn", "-c", str(configuration), "tests.services.sending_app:application"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/file/"
    try:
        wait_until(lambda: httpx.head(address).status_code == 200, "the web server answers", 90)
        yield address, sendfile_log
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [(None, 0, 2_999_999), ("bytes=1000000-1999999", 1_000_000, 1_999_999), ("bytes=-10", 2_999_990, 2_999_999)],
)
def test_sent_by_the_operating_system(server, header, first, last):
    address, sendfile_log = server
    sendfile_log.unlink(missing_ok=True)
    response = httpx.get(address, headers={"Range": header} if header else {})
    assert response.status_code == (206 if header else 200)
    assert response.content == CONTENT[first : last + 1]
    assert response.headers["Content-Length"] == str(last + 1 - first)

    def sent() -> list[tuple[int, int]]:
        lines = sendfile_log.read_text().splitlines() if sendfile_log.exists() else []
        return [(int(offset), int(count)) for offset, count in map(str.split, lines)]

    # The server notes it when it is done, which may be after we have everything.
    wait_until(lambda: sum(count for _, count in sent()) == last + 1 - first, "all of it was sent by sendfile", 10)
    assert sent()[0][0] == first


def test_a_connection_is_good_for_many_files_and_parts(server):
    address, _ = server
    with httpx.Client() as client:
        for first in (0, 5, 2_999_999):
            assert client.get(address, headers={"Range": f"bytes={first}-"}).content == CONTENT[first:]
            assert client.head(address).headers["Content-Length"] == "3000000"
            assert client.get(address, headers={"If-None-Match": '"abc"'}).status_code == 304
            assert client.get(address, headers={"Range": "bytes=3000000-"}).status_code == 416
