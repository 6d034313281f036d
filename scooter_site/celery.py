"""The Celery application. Tasks live in each app's ``tasks`` module."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")
# Processes share the processors among them; numpy's own threads, read from these when it is imported, would only get
# into their way.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

app = Celery("scooter")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
