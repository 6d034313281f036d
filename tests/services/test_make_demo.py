"""The demonstration as `make demo` serves it: from an empty folder, again with its data, and stopped in many ways."""

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.services.site import PROJECT, free_port, wait_until

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for left-over processes in /proc"),
]
FIRST_START_SECONDS = 300  # 60 on an idle computer with two cores; the tests beside this one take their share
SECOND_START_SECONDS = 45  # 10 on an idle one


class Demo:
    """A demonstration that is being served out of a folder of its own."""

    def __init__(self, var: Path, port: int, output: Path, *options: str) -> None:
        self.var, self.port, self.output = var, port, output
        self.known: set[int] = set()
        settings = {
            "DEBUG",
            "SECRET_KEY",
            "ALLOWED_HOSTS",
            "STATIC_ROOT",
            "TEST_SQLITE_FILE",
            "CELERY_TASK_ALWAYS_EAGER",
        }
        environment = {name: value for name, value in os.environ.items() if name not in settings}
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scooter_site.demo.serve", "--port", str(port), *options],
                cwd=PROJECT,
                env={**environment, "SCOOTER_VAR": str(var)},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def wait_until_serving(self, seconds: float) -> str:
        """Wait for the announcement, which is returned."""

        def is_announced() -> bool:
            assert self.process.poll() is None, self.output.read_text()
            return "API docs" in self.output.read_text()

        wait_until(is_announced, "the demonstration says that it is running", seconds)
        return self.output.read_text()

    def processes(self) -> dict[int, str]:
        """Command lines of all processes of this demonstration by their ids.

        They are known by a variable in their environment, by their parent (Valkey writes its title over its
        environment), or because they were known before.
        """
        mark = f"SCOOTER_VAR={self.var}\0".encode()
        commands, parents, found = {}, {}, set()
        for folder in Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            try:
                if mark in (folder / "environ").read_bytes() or pid in self.known:
                    found.add(pid)
                parents[pid] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                commands[pid] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:  # ended meanwhile, or somebody else's
                continue
        found |= {pid for pid, parent in parents.items() if parent in found}
        self.known |= found
        return {pid: commands[pid] for pid in found if commands.get(pid)}  # one that has ended has no command any more

    def wait_until_gone(self) -> int:
        """Wait until nothing is left; gives the exit status."""
        self.processes()
        status = self.process.wait(timeout=60)
        wait_until(lambda: not self.processes(), f"no process is left, but: {self.processes()}", 5)
        return status


@contextmanager
def serving(var: Path, port: int, output: Path, *options: str) -> Iterator[Demo]:
    demo = Demo(var, port, output, *options)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.terminate()
            demo.process.wait(timeout=60)


def manage(var: Path, *arguments: str) -> str:
    """Run a management command on a demonstration's data and give back what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "scooter_site.demo.manage", *arguments],
        cwd=PROJECT,
        env={**os.environ, "SCOOTER_VAR": str(var)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture(scope="module")
def var(tmp_path_factory):
    return tmp_path_factory.mktemp("with a space") / "var"


@pytest.fixture(scope="module")
def first_start(var, tmp_path_factory):
    """What the first start said; it has been used and stopped with Ctrl-C."""
    port = free_port()
    with serving(var, port, tmp_path_factory.mktemp("first") / "output") as demo:
        said = demo.wait_until_serving(FIRST_START_SECONDS)
        look_at_everything(port, said)
        commands = " ".join(demo.processes().values())
        for name in ("gunicorn", "scooter_site worker", "scooter_site beat", "valkey-server"):
            assert name in commands
        os.killpg(demo.process.pid, signal.SIGINT)  # as a terminal does
        assert demo.wait_until_gone() == 0
        assert "Traceback" not in demo.output.read_text()
    return said


def look_at_everything(port: int, said: str) -> None:
    address = f"http://localhost:{port}"
    for page in ("/s/demo/", "/leaderboard/", "/admin/", "/api/v1/docs/"):
        assert address + page in said
    with httpx.Client(base_url=address, follow_redirects=True) as client:
        assert 'data-step="consent"' in client.get("/s/demo/?id=a-person").text
        board = client.get("/leaderboard/").text
        assert "Demo: strong recolouring" in board
        assert "Demo: subtle recolouring" in board
        assert client.get("/api/v1/docs/").status_code == 200
        assert len(client.get("/api/v1/images/?page_size=500").json()["results"]) >= 3 * 130
        log_in(client, said)


def post(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    return client.post(path, data={**fields, "csrfmiddlewaretoken": client.cookies["csrftoken"]})


def log_in(client: httpx.Client, said: str) -> None:
    """As the administrator whose password the first start announced."""
    client.get("/admin/login/")
    password = re.search(r"user admin, password (\S+)", said)[1]
    answer = post(client, "/admin/login/", username="admin", password=password, next="/admin/")
    assert answer.url.path == "/admin/"


def test_first_start_serves_everything_and_logs_no_query_strings(first_start, var):
    assert re.search(r"Scooter is running after \d+ s", first_start)
    assert (var / "demo.env").stat().st_mode & 0o777 == 0o600
    assert (var / "valkey.conf").stat().st_mode & 0o777 == 0o600


def test_second_start_is_quick_keeps_all_data_and_ends_when_one_process_dies(first_start, var, tmp_path):
    def participations() -> int:
        with sqlite3.connect(var / "scooter.sqlite3") as database:
            return database.execute("SELECT count(*) FROM studies_participation").fetchone()[0]

    before, secret = participations(), (var / "demo.env").read_text()
    assert before > 10
    started = time.monotonic()
    with serving(var, free_port(), tmp_path / "output") as demo:
        said = demo.wait_until_serving(SECOND_START_SECONDS)
        assert time.monotonic() - started < SECOND_START_SECONDS
        assert "password " not in said.split("Admin  ")[1].splitlines()[0]
        again = subprocess.run(
            [sys.executable, "-m", "scooter_site.demo.serve", "--port", str(free_port())],
            cwd=PROJECT,
            env={**os.environ, "SCOOTER_VAR": str(var)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert again.returncode == 1
        assert f"served already, on port {demo.port}" in again.stderr
        httpx.get(f"http://localhost:{demo.port}/s/demo/?test=somebody-secret", follow_redirects=True)
        wait_until(lambda: "GET /s/demo/" in demo.output.read_text(), "the request is in the log", 10)
        assert "somebody-secret" not in demo.output.read_text()
        worker = min(pid for pid, command in demo.processes().items() if "scooter_site worker" in command)
        os.kill(worker, signal.SIGKILL)
        assert demo.wait_until_gone() != 0
    assert participations() == before
    assert (var / "demo.env").read_text() == secret


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_it_as_well(first_start, var, tmp_path, number):
    with serving(var, free_port(), tmp_path / "output") as demo:
        # As early as possible: when the first of its processes has started.
        wait_until(lambda: "valkey started" in demo.output.read_text(), "its processes run", SECOND_START_SECONDS)
        demo.process.send_signal(number)
        demo.wait_until_gone()


STUDY_FOR_PROLIFIC = """
from studies.models import Study
from studies.services import life
study = life.copy_study(Study.objects.get(slug="demo"))
life.change_settings(study, slug="from-prolific", panel="prolific")
life.build_materials(study.pk)
study.refresh_from_db()
print(life.launch(study).pk)
"""


def test_with_a_stand_in_for_prolific_people_come_from_there_and_go_back_there(first_start, var, tmp_path):
    """The steps of docs/demo.md, of which the study itself is made beforehand."""
    var = Path(shutil.copytree(var, tmp_path / "var"))  # a study of one's own keeps the demonstration from its removal
    study = manage(var, "shell", "-v0", "-c", STUDY_FOR_PROLIFIC).split()[-1]
    port, panel = free_port(), free_port()
    options = ("--fake-prolific", str(panel))
    with serving(var, port, tmp_path / "output", *options) as demo:
        demo.wait_until_serving(SECOND_START_SECONDS)
        token, workspace = re.search(r"token (\S+), workspace (\S+)", demo.output.read_text()).groups()
        with httpx.Client(base_url=f"http://localhost:{port}", follow_redirects=True, timeout=30) as admin:
            log_in(admin, first_start)
            added = {"name": "Stand-in", "workspace_id": workspace, "currency": "GBP", "new_token": token}
            post(admin, "/admin/studies/workspace/add/", **added)
            assert "may use this workspace" in post(admin, "/admin/studies/workspace/1/try/").text
            assert "Prolific now tells this site" in post(admin, "/admin/studies/workspace/1/webhooks/").text
            page = f"/admin/studies/study/{study}/recruitment/"
            asked_for = {"name": "Rate images", "description": "You will rate images.", "places": "4", "minutes": "13"}
            asked_for |= {"most_at_once": "4", "screen_out_pay": "fixed", "screen_out_slots": "2", "workspace": "1"}
            assert "Nothing has been sent to Prolific yet" in post(admin, page, **asked_for).text
            for deed in ("create", "estimate"):
                post(admin, f"{page}do/{deed}/")
            question = admin.get(f"{page}do/publish/").text
            (seen,) = re.findall(r'name="seen" value="([^"]+)"', question)  # nothing is published but what was shown
            post(admin, f"{page}do/publish/", seen=seen)
            with httpx.Client(follow_redirects=True, timeout=30) as person:
                (take_part,) = re.findall(r'action="(/take-part/\w+)"', person.get(f"http://127.0.0.1:{panel}/").text)
                consent = person.post(f"http://127.0.0.1:{panel}{take_part}")
                assert (consent.url.port, consent.url.query) == (port, b"")
                end = post(person, str(consent.url), step="consent", decision="decline").text
                (back,) = re.findall(rf'href="(http://127.0.0.1:{panel}/submissions/complete[^"]+)"', end)
                assert "Your submission is now: <strong>AWAITING REVIEW" in person.get(back).text
            # Told by a webhook, which a worker reads up: the poll comes only every ten minutes.
            wait_until(lambda: "Awaiting review</dt>" in admin.get(page).text, "the submission is known here", 30)
        assert token not in demo.output.read_text().split("workspace", 1)[1]
        os.killpg(demo.process.pid, signal.SIGINT)
        assert demo.wait_until_gone() == 0


def test_commands_on_its_data_and_what_is_removed_stays_away(first_start, var, tmp_path):
    assert "completed" in manage(var, "simulate_participants", "demo", "--count", "1", "--ability", "1").lower()
    manage(var, "remove_demo")
    (var / "prepared").write_text("as after a change of the code")
    with serving(var, free_port(), tmp_path / "output") as demo:
        assert "Take part" not in demo.wait_until_serving(SECOND_START_SECONDS)
        assert httpx.get(f"http://localhost:{demo.port}/s/demo/").status_code == 404


def test_a_taken_port_is_an_error_before_anything_else(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = subprocess.run(
            ["make", "demo"],
            cwd=PROJECT,
            env={**os.environ, "PORT": str(port), "SCOOTER_VAR": str(tmp_path / "var")},
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode != 0
    assert f"Port {port} is taken" in result.stderr
    assert "PORT=8001 make demo" in result.stderr
    assert not (tmp_path / "var").exists()
