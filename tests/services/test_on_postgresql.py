"""All fast tests that use a database once more, on PostgreSQL: what production runs on, with real row locks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.postgresql import postgresql

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.services
def test_what_uses_a_database_passes_on_postgresql():
    with postgresql() as url:
        run = subprocess.run(
            [
                sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider",
                "-p", "tests.services.database_tests",
                "-m", "not browser and not services", "-n", "2",
            ],
            cwd=PROJECT,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    if run.returncode != 0:
        pytest.fail(f"pytest ended with {run.returncode}:\n{run.stdout[-10_000:]}\n{run.stderr[-2_000:]}")
    assert re.search(r"^\d{4} passed", run.stdout, re.MULTILINE), "thousands of tests use a database"
