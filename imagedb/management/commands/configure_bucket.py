"""Let browsers send uploads straight to the bucket: `manage.py configure_bucket --origin https://...`."""

from typing import Any
from urllib.error import URLError

from botocore.exceptions import ClientError
from django.conf import settings
from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError, CommandParser

from imagedb.services.uploads import FOLDER
from scooter_site.common.storage import LocalStorage


class Command(BaseCommand):
    help = (
        "Set the bucket's rules for cross-origin requests and unfinished uploads, leaving its other rules alone, and "
        "check that browsers may then send to it. Exits with an error if they may not."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--origin",
            action="append",
            dest="origins",
            metavar="https://HOST",
            help="Address of the site as browsers see it; may be repeated. Default: from CSRF_TRUSTED_ORIGINS, else "
            "ALLOWED_HOSTS.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        storage: Any = storages["private"]
        if isinstance(storage, LocalStorage):
            raise CommandError("There is no bucket: S3_URL is empty, and files are kept in folders.")
        from imagedb import bucket_configuration as bucket

        origins = [origin.rstrip("/") for origin in options["origins"] or _own_origins()]
        if not origins:
            raise CommandError("Say where the site is, as browsers see it: --origin https://scooter.example.org")
        self._set("Cross-origin requests", lambda: bucket.allow_uploads_from(storage, origins))
        self._set("Unfinished uploads", lambda: bucket.abort_incomplete_uploads(storage, FOLDER))
        refused = []
        for origin in origins:
            try:
                may_send = bucket.may_send(storage, origin, FOLDER)
            except (URLError, TimeoutError) as problem:
                raise CommandError(f"{storage.origin} cannot be reached from here: {problem}") from problem
            self.stdout.write(f"Pages of {origin} {'may' if may_send else 'may NOT'} send to {storage.origin}.")
            if not may_send:
                refused.append(origin)
        if refused:
            raise CommandError("Set the rules in the bucket's own way; docs/uploads.md says how for some servers.")

    def _set(self, what: str, change: Any) -> None:
        try:
            change()
        except ClientError as error:
            reason = error.response["Error"]
            self.stdout.write(f"{what}: not set, the bucket says {reason.get('Code')}: {reason.get('Message', '')}")
        else:
            self.stdout.write(f"{what}: set.")


def _own_origins() -> list[str]:
    if settings.CSRF_TRUSTED_ORIGINS:
        return [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    scheme = "https" if settings.HTTPS else "http"
    return [f"{scheme}://{host}" for host in settings.ALLOWED_HOSTS if not host.startswith((".", "*"))]
