"""A WSGI application that sends one stored file as the site does, for gunicorn in a test (test_sending_files.py)."""

import os
from pathlib import Path

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import models
from django.db.models.fields.files import FieldFile
from django.http import HttpRequest, HttpResponse
from django.urls import path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")
application = get_wsgi_application()


def send(request: HttpRequest) -> HttpResponse:
    from imagedb import files
    from imagedb.models import Image
    from scooter_site.common.storage import LocalStorage

    storage = LocalStorage(Path(settings.MEDIA_ROOT) / "protected")
    field_file = FieldFile(Image(), models.FileField(storage=storage), "sent.png")
    return files.serve(field_file, request=request, cache_seconds=60, etag="abc")


settings.ROOT_URLCONF = __name__
urlpatterns = [path("file/", send), path("health/", send, name="health")]  # the second is looked up at the start


def post_worker_init(worker) -> None:  # type: ignore[no-untyped-def]
    """A hook of gunicorn: note what the operating system is asked to send by itself."""
    real = os.sendfile

    def noted(out: int, source: int, offset: int, count: int) -> int:
        sent = real(out, source, offset, count)
        with Path(os.environ["SENDFILE_LOG"]).open("a") as log:
            log.write(f"{offset} {sent}\n")
        return sent

    os.sendfile = noted
