"""What the settings refuse, what they turn on, and that every variable they read is documented."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import IntegrityError, connection

PROJECT = Path(__file__).resolve().parent.parent.parent
PRODUCTION = {
    "DEBUG": "off",
    "SECRET_KEY": "a-long-random-string",
    "ALLOWED_HOSTS": "scooter.example.org",
    "DATABASE_URL": "postgres://scooter@localhost/scooter",
    "REDIS_URL": "redis://localhost:6379/0",
}
PRINTED = "from scooter_site import settings; print(settings.DATABASES['default']['ENGINE'], settings.HTTPS)"


def start(code=PRINTED, **variables):
    """Import the settings in a process of its own; a variable that is None is not set."""
    wanted = {**PRODUCTION, **variables}
    environment = {name: value for name, value in wanted.items() if value is not None}
    environment["PATH"] = os.environ["PATH"]
    return subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_says_what_is_missing_without_a_traceback():
    result = start("import sys, manage; sys.argv = ['manage.py', 'check']; manage.main()", SECRET_KEY=None)
    assert result.returncode == 1
    assert result.stderr.startswith("SECRET_KEY is not set.")
    assert "Traceback" not in result.stderr


def test_production_settings_are_accepted_and_use_https():
    result = start()
    assert (result.returncode, result.stdout) == (0, "scooter_site.common.postgresql True\n"), result.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SECRET_KEY": None}, "SECRET_KEY is not set"),
        ({"SECRET_KEY": ""}, "SECRET_KEY is not set"),
        ({"SECRET_KEY": "insecure-development-key"}, "SECRET_KEY is not set"),
        ({"ALLOWED_HOSTS": None}, "ALLOWED_HOSTS is empty"),
        ({"DATABASE_URL": "sqlite:///:memory:"}, "The database is SQLite"),
        ({"DATABASE_URL": None}, "The database is SQLite"),
        ({"REDIS_URL": None}, "REDIS_URL is not set"),
        ({"S3_URL": "https://KEY:hush@files.example.org/bucket"}, "region is missing"),
        ({"X_ACCEL_PREFIX": "stored-files"}, "X_ACCEL_PREFIX must begin and end with a slash"),
        ({"THROTTLE_LOG_IN": "often"}, "THROTTLE_LOG_IN: 'often' is not a rate"),
    ],
)
def test_insecure_production_settings_are_refused(variables, message):
    result = start(**variables)
    assert result.returncode == 1
    assert message in result.stderr
    assert "hush" not in result.stderr


def test_sqlite_is_accepted_when_allowed():
    result = start(DATABASE_URL="sqlite:///:memory:", ALLOW_SQLITE="on", HTTPS="off")
    assert (result.returncode, result.stdout) == (0, "django.db.backends.sqlite3 False\n"), result.stderr


def test_a_database_with_a_standby_is_looked_for_on_both_hosts():
    """As docs/settings.md has it; tests/services/test_killed_server.py kills one of them."""
    documented = (PROJECT / "docs" / "settings.md").read_text()
    [url] = re.findall(r"^DATABASE_URL=(\S+,\S+)$", documented, re.MULTILINE)
    code = (
        "from scooter_site.settings import DATABASES as d; print(*map(d['default'].get, ('HOST', 'PORT', 'OPTIONS')))"
    )
    options = {"target_session_attrs": "read-write", "connect_timeout": 3, "tcp_user_timeout": 10_000}
    result = start(code, DATABASE_URL=url)
    assert result.stdout == f"first,second 5432,5432 {options}\n", result.stderr


def test_development_needs_nothing_but_debug():
    nothing = dict.fromkeys(PRODUCTION)
    result = start(**{**nothing, "DEBUG": "on"})
    assert (result.returncode, result.stdout) == (0, "django.db.backends.sqlite3 False\n"), result.stderr


def test_sqlite_runs_with_wal_foreign_keys_and_patience(tmp_path):
    code = (
        "import django; django.setup()\n"
        "from django.db import connection\n"
        "cursor = connection.cursor()\n"
        "for name in ('journal_mode', 'foreign_keys', 'busy_timeout', 'synchronous'):\n"
        "    print(name, cursor.execute(f'PRAGMA {name}').fetchone()[0])\n"
    )
    result = start(
        code,
        DATABASE_URL=f"sqlite:///{tmp_path / 'a file.sqlite3'}",
        ALLOW_SQLITE="on",
        DJANGO_SETTINGS_MODULE="scooter_site.settings",
    )
    assert result.stdout.splitlines() == [
        "journal_mode wal",
        "foreign_keys 1",
        "busy_timeout 60000",
        "synchronous 1",
    ], result.stderr


def test_what_the_addresses_lead_to_is_loaded_before_the_first_request():
    """gunicorn loads the site once for all its workers; what a first request loads, each loads for itself."""
    code = "import scooter_site.wsgi, sys; print({'studies.views.rating', 'studies.admin.study'} <= set(sys.modules))"
    assert start(code).stdout == "True\n"


@pytest.mark.django_db(transaction=True)
def test_the_database_itself_refuses_a_dangling_reference():
    from imagedb.models import Prediction

    with pytest.raises(IntegrityError):
        Prediction.objects.create(image_id=999_999, target_model_id=999_999, predicted_class_id=1)
    assert not connection.in_atomic_block


def variables_read() -> set[str]:
    source = (PROJECT / "scooter_site" / "settings.py").read_text()
    return set(re.findall(r'\benv(?:\.\w+)?\(\s*"([A-Z0-9_]+)"', source))


def test_every_variable_is_in_the_example_and_in_the_documentation():
    example = (PROJECT / ".env.example").read_text()
    documentation = (PROJECT / "docs" / "settings.md").read_text()
    assert variables_read() >= {"DEBUG", "SECRET_KEY", "DATABASE_URL", "REDIS_URL", "S3_URL"}
    assert set(re.findall(r"^#?([A-Z0-9_]+)=", example, re.MULTILINE)) == variables_read()
    assert set(re.findall(r"^\| `([A-Z0-9_]+)` \|", documentation, re.MULTILINE)) == variables_read()
