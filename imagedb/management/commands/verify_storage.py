"""``manage.py verify_storage``: do all files that the database knows lie in the storage, unharmed, and no others?"""

import json
from collections import Counter
from typing import Any

from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from imagedb.services.storage_check import CannotCheck, Finding, Problem, Totals, check
from scooter_site.common.file_lists import NotInOrder

SHOWN_PER_PROBLEM = 50
NO_FINDING, FINDINGS_LEFT, COULD_NOT_RUN = 0, 1, 2
WHAT_TO_DO = {
    Problem.MISSING: "--repair makes renditions and thumbnails again. Put the others back from a backup.",
    Problem.EXTRA: "No row has these files; --repair deletes them.",
    Problem.SIZE: "As for missing files.",
    Problem.DIGEST: "As for missing files.",
    Problem.UNREADABLE: "As for missing files.",
    Problem.CONTENT_TYPE: "--repair sets it.",
}


class Command(BaseCommand):
    help = (
        "Compare the files that the database knows with those in the storage. Exits with status 0 if nothing is wrong "
        "or all of it was repaired, 1 if something is left, 2 if the comparison could not be made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--repair",
            action="store_true",
            help="delete files that no row has, make renditions and thumbnails again, set content types",
        )
        parser.add_argument(
            "--digests", action="store_true", help="read every file and compare its SHA-256; takes long"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object per line, the totals last")
        parser.add_argument(
            "--delete-many",
            action="store_true",
            help="with --repair: delete extra files even if they are more than a tenth of all, which rather looks like "
            "the wrong database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        totals = Totals()
        storage: Any = storages["protected"]
        errors = (CannotCheck, NotInOrder, DatabaseError, OSError, *storage.ERRORS)
        report = self._json if options["json"] else self._lines
        try:
            report(
                totals,
                check(
                    totals,
                    digests=options["digests"],
                    repair=options["repair"],
                    delete_many=options["delete_many"],
                ),
            )
        except errors as error:
            raise CommandError(f"Could not compare: {error}", returncode=COULD_NOT_RUN) from error
        if sum(totals.left.values()):
            raise SystemExit(FINDINGS_LEFT)

    def _json(self, totals: Totals, findings: Any) -> None:
        for finding in findings:
            self.stdout.write(
                json.dumps(
                    {
                        "problem": finding.problem,
                        "level": finding.level,
                        "name": finding.name,
                        "rows": [str(owner) for owner in finding.owners],
                        "detail": finding.detail,
                        "is_repaired": finding.is_repaired,
                        "outcome": finding.outcome,
                    }
                )
            )
        self.stdout.write(
            json.dumps(
                {
                    "known": totals.known,
                    "stored": totals.stored,
                    "too_new_to_judge": totals.too_new,
                    "found": totals.found,
                    "left": +totals.left,
                }
            )
        )

    def _whereabouts(self) -> str:
        storage: Any = storages["protected"]
        return storage.whereabouts()

    def _lines(self, totals: Totals, findings: Any) -> None:
        shown: Counter[Problem] = Counter()
        for finding in findings:
            shown[finding.problem] += 1
            if shown[finding.problem] <= SHOWN_PER_PROBLEM:
                self.stdout.write(_line(finding))
            elif shown[finding.problem] == SHOWN_PER_PROBLEM + 1:
                self.stdout.write(f"{finding.problem:<20} ... and more; --json lists all")
        self.stdout.write(f"{totals.known:,} files known to the database, {totals.stored:,} in {self._whereabouts()}.")
        if totals.too_new:
            self.stdout.write(f"{totals.too_new:,} files without a row are less than an hour old and may get one.")
        if not totals.found:
            self.stdout.write("Nothing is wrong.")
        for problem, count in totals.found.items():
            left = totals.left[problem]
            repaired = f", {count - left:,} repaired" if count > left else ""
            self.stdout.write(f"{problem}: {count:,}{repaired}. {WHAT_TO_DO[problem] if left else ''}".rstrip())


def _line(finding: Finding) -> str:
    rows = ", ".join(str(owner) for owner in finding.owners)
    details = "; ".join(part for part in (rows, finding.detail, finding.outcome) if part)
    return f"{finding.problem:<20} {finding.level}/{finding.name}  {details}"
