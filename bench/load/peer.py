"""oTree as it runs in production: ``otree prodserver`` with the peer's own study, images and settings."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.load.site import Server, free_port


@contextmanager
def otree(peer: Path, venv: Path, database: str, folder: Path) -> Iterator[Server]:
    """The running peer; ``venv`` has oTree, Pillow and psycopg2 (the README of ``peer`` says how it is made)."""
    port, project = free_port(), folder / "project"
    shutil.copytree(peer / "project", project)
    python = venv / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"There is no oTree in {venv}: see {peer / 'README.md'} on how to install it.")
    subprocess.run([python, peer / "make_images.py", project / "_static" / "study"], check=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {
        **kept,
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "OTREE_PRODUCTION": "1",
        "OTREE_AUTH_LEVEL": "STUDY",
        "OTREE_ADMIN_PASSWORD": "bench",
        "OTREE_REST_KEY": "bench",
        "DATABASE_URL": database,
    }
    command = str(venv / "bin" / "otree")
    subprocess.run(
        [command, "resetdb", "--noinput"], cwd=project, env=environment, check=True, input=b"y\n", capture_output=True
    )
    server = Server(
        [command, "prodserver", f"127.0.0.1:{port}"],
        port=port,
        environment=environment,
        folder=project,
        log=folder / "otree.log",
    )
    server.start()
    try:
        yield server
    finally:
        server.kill()
