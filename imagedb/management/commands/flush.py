"""``manage.py flush``: SQLite deletes row by row, which the rules between rows would stop; PostgreSQL truncates."""

from contextlib import nullcontext
from typing import Any

from django.core.management.commands import flush
from django.db import connections

from scooter_site.common import triggers


class Command(flush.Command):
    """Django's own, without the rules between rows while it empties the tables."""

    def handle(self, **options: Any) -> None:
        connection = connections[options["database"]]
        with triggers.lifted(connection) if connection.vendor == "sqlite" else nullcontext():
            super().handle(**options)
