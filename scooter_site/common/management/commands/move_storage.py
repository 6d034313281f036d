"""``manage.py move_storage``: copy all stored files to a bucket or a folder (docs/storage.md is the runbook)."""

import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import filesizeformat

from scooter_site.common.file_lists import NotInOrder
from scooter_site.common.s3_url import storage_settings
from scooter_site.common.storage import LEVELS
from scooter_site.common.storage_move import (
    CannotMove,
    Counts,
    Levels,
    check_apart,
    copy_files,
    delete_copied,
    opened_storages,
)

COULD_NOT_RUN = 2


class Command(BaseCommand):
    help = (
        "Copy every stored file from the storage of the present settings to another one, and verify the copies. It "
        "can be stopped and run again; what is there is passed over. Nothing is deleted without --delete-source. Exits "
        "with status 0 if all files are in the new storage, 1 if some are not, 2 if it could not run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument(
            "--to",
            metavar="S3_URL",
            help="the bucket, as in the setting S3_URL; or the name of an environment variable that holds it, so that "
            "the secret is not in the list of processes",
        )
        target.add_argument("--to-files", metavar="FOLDER", type=Path, help="the folder, as in the setting MEDIA_ROOT")
        parser.add_argument(
            "--delete-source",
            action="store_true",
            help="when all is copied, read every byte of both copies, and delete the files from the present storage",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        old: Levels = {level: storages[level] for level in LEVELS}
        errors: tuple[type[Exception], ...] = (CannotMove, NotInOrder, OSError, *old["protected"].ERRORS)
        try:
            new = opened_storages(self._target(options))
            errors += new["protected"].ERRORS
            check_apart(old, new)
            self.stdout.write(f"From {old['protected'].whereabouts()} to {new['protected'].whereabouts()}.")
            is_complete = self._copy(old, new)
            if options["delete_source"] and is_complete:
                is_complete = self._delete(old, new)
        except errors as error:
            raise CommandError(f"Stopped: {error}\nRun it again to go on.", returncode=COULD_NOT_RUN) from error
        if not is_complete:
            raise SystemExit(1)
        self._say_what_to_do(options)

    def _target(self, options: dict[str, Any]) -> dict[str, dict[str, Any]]:
        if options["to_files"]:
            return storage_settings("", options["to_files"].absolute())
        url = options["to"]
        if "://" not in url:
            url = os.environ.get(url, "")
        if not url:
            raise CannotMove(f"{options['to']} is neither an address nor an environment variable that is set.")
        try:
            return storage_settings(url, settings.MEDIA_ROOT)
        except ValueError as error:
            raise CannotMove(str(error)) from error

    def _copy(self, old: Levels, new: Levels) -> bool:
        counts = copy_files(old, new, self._show)
        self.stdout.write(
            f"{counts.copied:,} files copied ({filesizeformat(counts.copied_bytes)}), {counts.there_already:,} were "
            "there already. Each was compared with its copy."
        )
        if counts.only_in_new:
            self.stdout.write(
                f"{counts.only_in_new:,} files are in the new storage only, from before or since deleted in the "
                "present one. When the settings are changed, verify_storage lists those that no row has."
            )
        return self._is_complete(counts)

    def _delete(self, old: Levels, new: Levels) -> bool:
        counts = delete_copied(old, new, self._show)
        self.stdout.write(f"{counts.deleted:,} files deleted from the present storage.")
        return self._is_complete(counts)

    def _is_complete(self, counts: Counts) -> bool:
        if counts.different:
            self.stderr.write(f"{counts.different:,} files are not the same in both storages, see above. Run it again.")
        return not counts.different

    def _show(self, counts: Counts) -> None:
        if sys.stderr.isatty():
            done = counts.copied + counts.there_already + counts.deleted
            self.stderr.write(f"\r{done:,} files", ending="")

    def _say_what_to_do(self, options: dict[str, Any]) -> None:
        change = (
            f"set MEDIA_ROOT={options['to_files'].absolute()} and remove S3_URL"
            if options["to_files"]
            else "set S3_URL to the new bucket's address"
        )
        self.stdout.write(
            "To use the new storage: stop web server, workers and beat, run this command once more for what was "
            f"stored meanwhile, {change}, start them again, and run manage.py verify_storage."
        )
