"""``manage.py import_images MANIFEST IMAGES`` or ``MANIFEST --prefix incoming/NAME/``."""

import sys
from pathlib import Path
from typing import Any

import click
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from imagedb.models import ImportBatch, Visibility
from imagedb.services.importing import ImportFailed, ImportSummary, Progress, import_manifest


class Command(BaseCommand):
    help = (
        "Import images that a manifest (CSV or JSONL) describes, with the columns filename, kind, class_index or "
        "synset, source_filename, attack, target_model, predicted_class_index, confidence. It can be stopped and run "
        "again at any time: importing again imports nothing twice. Exits with status 1 if any row failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("manifest", type=Path, help="the CSV or JSONL file")
        parser.add_argument("folder_or_zip", type=Path, nargs="?", metavar="images", help="folder or ZIP of the images")
        parser.add_argument("--images", type=Path, help="the same, as an option")
        parser.add_argument(
            "--prefix", default="", help="take the images from the S3 bucket instead, below incoming/NAME/"
        )
        parser.add_argument("--dry-run", action="store_true", help="check everything, import nothing")
        parser.add_argument("--workers", type=int, default=1, help="number of processes; default: %(default)s")
        parser.add_argument(
            "--visibility", choices=Visibility.values, default=Visibility.REGISTERED.value, help="default: %(default)s"
        )
        parser.add_argument("--group", default="", help="the group of accounts that the images belong to")
        parser.add_argument("--licence", default="", help="licence of these images, for example CC0-1.0")
        parser.add_argument("--attribution", default="", help="author and origin, as the licence asks")

    def handle(self, *args: Any, **options: Any) -> None:
        options["images"] = options["folder_or_zip"] or options["images"]
        if bool(options["images"]) == bool(options["prefix"]):
            raise CommandError("Give either a folder or ZIP with the images, or --prefix.")
        if options["workers"] < 1:
            raise CommandError("--workers must be at least 1.")
        batch = ImportBatch(
            visibility=options["visibility"],
            group=_group(options["group"]),
            licence=options["licence"],
            attribution=options["attribution"],
        )
        try:
            batch.clean_fields(exclude=["archive"])
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        try:
            summary = self._import(batch, options)
        except ImportFailed as error:
            raise CommandError(str(error)) from error
        self._report(batch, summary)
        if summary.failed or summary.is_cancelled:
            raise SystemExit(1)

    def _import(self, batch: ImportBatch, options: dict[str, Any]) -> ImportSummary:
        def run(progress: Progress | None) -> ImportSummary:
            return import_manifest(
                manifest=options["manifest"],
                images=options["images"],
                prefix=options["prefix"],
                batch=batch,
                dry_run=options["dry_run"],
                workers=options["workers"],
                progress=progress,
            )

        if not sys.stderr.isatty():
            return run(None)
        with click.progressbar(length=1, label="Importing", file=sys.stderr) as bar:

            def show(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            return run(show)

    def _report(self, batch: ImportBatch, summary: ImportSummary) -> None:
        for error in summary.errors:
            self.stderr.write(str(error))
        if batch.is_dry_run:
            self.stdout.write("Dry run: nothing was imported.")
        if summary.is_cancelled:
            self.stdout.write("The import was cancelled before it was done. What was imported by then stays.")
        verb = "would be imported" if batch.is_dry_run else "imported"
        self.stdout.write(
            f"{summary.row_count} rows: {summary.imported} {verb}, {summary.already_there} already there, "
            f"{summary.failed} failed."
        )
        for note in summary.notes:
            self.stdout.write(note)


def _group(name: str) -> Group | None:
    if not name:
        return None
    group = Group.objects.filter(name=name).first()
    if group is None:
        known = ", ".join(Group.objects.order_by("name").values_list("name", flat=True))
        raise CommandError(f"There is no group {name}. Groups: {known or 'none'}.")
    return group
