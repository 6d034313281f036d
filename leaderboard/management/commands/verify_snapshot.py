"""Say whether a published snapshot follows from its inputs."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.inputs import UnreadableInputs, read_inputs
from leaderboard.models import Snapshot
from leaderboard.services.verification import verify

SHOWN = 50


class Command(BaseCommand):
    help = (
        "Compute a published snapshot again from the ratings that it follows from, and say that it is equal (exit "
        "status 0) or where not (1). What cannot be read ends with 2."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("snapshot", metavar="ID", help="Its id, or BOARD/NUMBER as in its address.")
        parser.add_argument(
            "--inputs",
            type=Path,
            metavar="FILE",
            help="The inputs as downloaded from its page, instead of the files stored here.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        snapshot = _snapshot(options["snapshot"])
        try:
            path = options["inputs"]
            result = verify(snapshot, None if path is None else read_inputs(path.read_bytes(), str(path)))
        except (UnreadableInputs, OSError) as error:
            raise CommandError(str(error), returncode=2) from error
        for remark in result.remarks:
            self.stdout.write(remark)
        for difference in result.differences[:SHOWN]:
            self.stdout.write(str(difference))
        if len(result.differences) > SHOWN:
            self.stdout.write(f"... and {len(result.differences) - SHOWN} more")
        if result.differences:
            raise CommandError(f"{snapshot}: {len(result.differences)} values are not what the inputs give.")
        self.stdout.write(f"{snapshot}: equal ({result.entries} entries computed again).")


def _snapshot(name: str) -> Snapshot:
    """By id, or by board and number."""
    published = Snapshot.objects.exclude(number=None).select_related("board")
    board, _, number = name.partition("/")
    if name.isdecimal():
        found = published.filter(pk=int(name)).first()
    else:
        found = published.filter(board__slug=board, number=int(number)).first() if number.isdecimal() else None
    if found is None:
        raise CommandError(f"{name}: there is no such published snapshot. Give its id, or BOARD/NUMBER.", returncode=2)
    return found
