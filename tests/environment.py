"""The environment tests run in. A pytest plugin (see pyproject.toml), so that it comes before the settings."""

import os
import tempfile

os.environ.setdefault("DEBUG", "on")
os.environ.setdefault("SECRET_KEY", "only-for-tests")
os.environ.setdefault("ALLOWED_HOSTS", "localhost,127.0.0.1,testserver")
os.environ.setdefault("MEDIA_ROOT", tempfile.mkdtemp(prefix="scooter-test-media-"))
os.environ.setdefault("CELERY_TASK_ALWAYS_EAGER", "on")
os.environ.setdefault("LOG_LEVEL", "WARNING")
# Playwright's synchronous interface runs an event loop in the test's thread; the ORM there is ours alone.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
