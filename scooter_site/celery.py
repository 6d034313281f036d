"""The Celery application. Tasks live in each app's ``tasks`` module."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scooter_site.settings")

app = Celery("scooter")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
