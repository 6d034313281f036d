"""A board as files: the entries that the page shows, in the same order, with the snapshot they are from."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.urls import reverse

from leaderboard import latex
from leaderboard.board_query import BoardQuery
from leaderboard.board_table import entry_address
from leaderboard.columns import BY_KEY
from leaderboard.formatting import decimals_of, format_interval
from leaderboard.models import Snapshot
from leaderboard.selectors.rows import VALUES, Row
from scooter_site.common.csv_text import cell

KEYS = (
    *("attack", "attack_name", "family", "year", "target_model", "target_model_name"),
    *VALUES,
    *("external_citation", "external_source_url", "page"),
)


def entry_values(entry: Row, whole_address: Callable[[str], str]) -> dict[str, Any]:
    """One entry as plain values; ``whole_address`` makes an address of this site one for everywhere."""
    external = entry.external_result
    return {
        "attack": entry.attack.slug,
        "attack_name": entry.attack.name,
        "family": entry.attack.family,
        "year": entry.attack.year,
        "target_model": entry.target_model.slug,
        "target_model_name": entry.target_model.name,
        **{name: getattr(entry, name) for name in VALUES},
        "external_citation": external.citation if external else None,
        "external_source_url": external.source_url if external else None,
        "page": whole_address(entry_address(entry)),
    }


def snapshot_values(snapshot: Snapshot) -> dict[str, Any]:
    """What a snapshot is, and what its entries follow from."""
    return {
        "board": snapshot.board.slug,
        "board_name": snapshot.board.name,
        "number": snapshot.number,
        "status": snapshot.status,
        "published_at": snapshot.published_at,
        "data_cutoff": snapshot.data_cutoff,
        "code_version": snapshot.code_version,
        "seed": snapshot.seed,
        "input_digest": snapshot.input_digest,
        "rules": snapshot.rules,
        "is_demo": snapshot.board.is_demo,
        "retraction_reason": snapshot.retraction_reason or None,
    }


def as_csv(snapshot: Snapshot, entries: Sequence[Row], query: BoardQuery, whole_address: Callable[[str], str]) -> str:
    """One line per entry with every stored value; board and snapshot are the first columns."""
    text = io.StringIO()
    writer = csv.writer(text)
    rows = [entry_values(entry, whole_address) for entry in entries]
    writer.writerow(["board", "snapshot", "snapshot_status", *KEYS])
    for row in rows:
        values = (snapshot.board.slug, snapshot.number, str(snapshot.status), *(row[key] for key in KEYS))
        writer.writerow([cell(_plain(value)) for value in values])
    return text.getvalue()


def as_json(snapshot: Snapshot, entries: Sequence[Row], query: BoardQuery, whole_address: Callable[[str], str]) -> str:
    """The snapshot, the filters, and the entries with every stored value."""
    content = {
        "snapshot": snapshot_values(snapshot),
        "query": query.encoded(snapshot=snapshot.number),
        "entries": [entry_values(entry, whole_address) for entry in entries],
    }
    return json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1) + "\n"


def as_latex(snapshot: Snapshot, entries: Sequence[Row], query: BoardQuery, whole_address: Callable[[str], str]) -> str:
    """The columns of the page, rounded as there, as a table for a paper; drawings stay out."""
    board = snapshot.board
    decimals = decimals_of(board.scale_minimum, board.scale_maximum)
    columns = [BY_KEY[key] for key in query.columns if key != "interval"]
    heads: list[tuple[str, bool]] = []
    for column in columns:
        heads.append((column.name, column.is_number))
        if column.key == "difference":
            heads.append(("90 % interval", False))
    rows = []
    for entry in entries:
        cells: list[str] = []
        for column in columns:
            cells.append(column.show(entry, decimals))
            if column.key == "difference":
                cells.append(format_interval(entry.ci90_low, entry.ci90_high, decimals))
        rows.append(cells)
    published = snapshot.published_at
    caption = (
        f"{board.name}, {snapshot.label} of {published:%Y-%m-%d}: difference of the mean ratings of modified "
        f"and clean images in points of the scale from {board.scale_minimum} to {board.scale_maximum}; equivalence "
        f"bounds ±{snapshot.bound:g}, each one-sided test at the level {snapshot.alpha:g}."
    )
    return latex.table(
        heads,
        rows,
        caption=caption,
        label=f"tab:scooter-{board.slug}-{snapshot.number}",
        comments=[
            r"Needs \usepackage{booktabs}.",
            f"{board.name}, snapshot {snapshot.number} ({snapshot.get_status_display()}), "
            f"input digest {snapshot.input_digest}",
            whole_address(f"{reverse('board', args=[board.slug])}?{query.encoded(snapshot=snapshot.number)}"),
        ],
    )


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


FORMATS = {
    "csv": ("text/csv", as_csv),
    "json": ("application/json", as_json),
    "tex": ("application/x-tex", as_latex),
}
