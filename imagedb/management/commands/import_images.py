"""``manage.py import_images MANIFEST.csv --images DIR_OR_ZIP``."""

import sys
from pathlib import Path
from typing import Any

import click
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from imagedb.models import ImportBatch, Visibility
from imagedb.services.import_run import Progress
from imagedb.services.import_summary import ImportSummary
from imagedb.services.importing import ImportFailed, import_manifest


class Command(BaseCommand):
    help = (
        "Import images that a CSV manifest describes (columns: filename, kind, class_index or synset, "
        "source_filename, attack, target_model, predicted_class_index, confidence). Importing again imports nothing "
        "twice. Exits with status 1 if any row failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("manifest", type=Path, help="the CSV file")
        parser.add_argument("--images", type=Path, required=True, help="the folder or ZIP archive with the images")
        parser.add_argument("--dry-run", action="store_true", help="check everything, write nothing")
        parser.add_argument(
            "--visibility", choices=Visibility.values, default=Visibility.REGISTERED.value, help="default: %(default)s"
        )
        parser.add_argument("--licence", default="", help="licence of these images, for example CC0-1.0")
        parser.add_argument("--attribution", default="", help="author and origin, as the licence asks")

    def handle(self, *args: Any, **options: Any) -> None:
        batch = ImportBatch(
            visibility=options["visibility"], licence=options["licence"], attribution=options["attribution"]
        )
        try:
            batch.clean_fields(exclude=["archive"])
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        try:
            summary = self._import(batch, options)
        except ImportFailed as error:
            raise CommandError(str(error)) from error
        self._report(summary, options["dry_run"])
        if summary.failed:
            raise SystemExit(1)

    def _import(self, batch: ImportBatch, options: dict[str, Any]) -> ImportSummary:
        def run(progress: Progress | None) -> ImportSummary:
            return import_manifest(
                manifest=options["manifest"],
                images=options["images"],
                batch=batch,
                dry_run=options["dry_run"],
                progress=progress,
            )

        if not sys.stderr.isatty():
            return run(None)
        with click.progressbar(length=1, label="Importing", file=sys.stderr) as bar:

            def show(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            return run(show)

    def _report(self, summary: ImportSummary, dry_run: bool) -> None:
        for error in summary.errors:
            self.stderr.write(str(error))
        if dry_run:
            self.stdout.write("Dry run: nothing was written.")
        verb = "would be imported" if dry_run else "imported"
        self.stdout.write(
            f"{summary.row_count} rows: {summary.imported} {verb}, {summary.already_there} already there, "
            f"{summary.failed} failed."
        )
        for note in summary.notes:
            self.stdout.write(note)
