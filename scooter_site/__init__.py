"""Composition root: settings, addresses, Celery, and the code every app may use."""

from scooter_site.celery import app as celery_app

__all__ = ["celery_app"]
