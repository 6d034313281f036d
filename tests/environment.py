"""The environment tests run in. A pytest plugin (see pyproject.toml), so that it comes before the settings."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# One folder per test run, which parallel test processes share: pytest-django gives each its own database in it.
if "SCOOTER_TEST_FOLDER" not in os.environ:
    os.environ["SCOOTER_TEST_FOLDER"] = tempfile.mkdtemp(prefix="scooter-test-")
    atexit.register(shutil.rmtree, os.environ["SCOOTER_TEST_FOLDER"], ignore_errors=True)
FOLDER = Path(os.environ["SCOOTER_TEST_FOLDER"])

os.environ.setdefault("DEBUG", "on")
os.environ.setdefault("SECRET_KEY", "only-for-tests")
os.environ.setdefault("ALLOWED_HOSTS", "localhost,127.0.0.1,testserver")
os.environ["MEDIA_ROOT"] = str(FOLDER / "media" / os.environ.get("PYTEST_XDIST_WORKER", "only"))
os.environ.setdefault("STATIC_ROOT", str(FOLDER / "static"))
Path(os.environ["STATIC_ROOT"]).mkdir(exist_ok=True)
os.environ.setdefault("TEST_SQLITE_FILE", str(FOLDER / "test.sqlite3"))
os.environ.setdefault("CELERY_TASK_ALWAYS_EAGER", "on")
os.environ.setdefault("LOG_LEVEL", "WARNING")
# A test run asks more often than any person; tests of the throttles set rates of their own.
for scope in ("LISTS", "FILES", "UPLOADS", "LOG_IN", "SIGN_UP", "ARRIVALS"):
    os.environ.setdefault(f"THROTTLE_{scope}", "off")
# Playwright's synchronous interface runs an event loop in the test's thread; the ORM there is ours alone.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
