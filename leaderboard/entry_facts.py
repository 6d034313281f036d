"""What the page of an entry tells besides its plots: rows of tables, and which images stand out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from imagedb.models import Image
from leaderboard.columns import COLUMNS
from leaderboard.formatting import format_interval, format_number, format_p_value, format_percent
from leaderboard.models import EntryVerdict
from leaderboard.selectors.rows import Row

# From either end of the order of images.
IMAGES_SHOWN = 6
# Where some of these are not for the visitor's eyes, the next ones are.
IMAGES_CONSIDERED = 60


@dataclass(frozen=True)
class Pictured:
    """A modified image with its source (None where the visitor may not see it), and what people answered."""

    image: Image
    source: Image | None
    mean: str
    spread: str
    ratings: int
    misleads: bool | None


def value_rows(entry: Row, decimals: int) -> list[tuple[str, str, str, str]]:
    """Key, name, value and note of all columns that are no drawing, name or flag."""
    shown = [
        column for column in COLUMNS if column.key not in ("attack", "target_model", "interval", "verdict", "flags")
    ]
    rows = []
    for column in shown:
        note = column.note(entry, decimals) if column.note else ""
        if column.key == "rank" and note:
            note = f"90 %: {note}"
        rows.append((column.key, column.name, column.show(entry, decimals), note))
    rows.append(("", "95 % interval", format_interval(entry.ci95_low, entry.ci95_high, decimals), ""))
    rows.append(("", "Standard error", format_number(entry.standard_error, decimals + 1), ""))
    rows.append(("", "Degrees of freedom", format_number(entry.degrees_of_freedom, 1), "Satterthwaite"))
    return rows


def reliability_rows(details: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """How well people agree, over all images and within each kind."""
    names = (("all_images", "All images"), ("modified_images", "Modified images"), ("clean_images", "Clean images"))
    measures = ("icc_single", "icc_mean", "krippendorff_alpha", "split_half")
    found = details.get("reliability", {})
    return [
        (name, [format_number(found[key].get(measure), 2) for measure in measures])
        for key, name in names
        if key in found
    ]


def check_rows(entry: Row, details: dict[str, Any], decimals: int) -> list[tuple[str, str, str, str, str]]:
    """The model's answer beside those of simpler analyses: name, meaning, result, interval, verdict or p."""
    robustness = details.get("robustness", {})
    rows = [
        (
            "Mixed model",
            "People and images both vary; this decides the verdict.",
            format_number(entry.difference, decimals, always_signed=True),
            format_interval(entry.ci90_low, entry.ci90_high, decimals),
            entry.verdict_label,
        )
    ]
    for name, meaning, found in (
        ("Participants’ means", "A t test of each person’s two means.", robustness.get("participant_means")),
        ("Images and their sources", "A t test over the clean sources that were rated too.", details.get("couples")),
    ):
        if found:
            rows.append(
                (
                    name,
                    meaning,
                    format_number(found["difference"], decimals, always_signed=True),
                    format_interval(found["ci90"][0], found["ci90"][1], decimals),
                    str(EntryVerdict(found["verdict"]).label),
                )
            )
    if order := robustness.get("order_of_answers"):
        rows.append(
            (
                "Order of answers",
                "A rank test: how often a person rates a modified image higher than a clean one (50 % is guessing).",
                format_percent(order["probability"]),
                f"[{format_percent(order['ci95'][0])}, {format_percent(order['ci95'][1])}]",
                f"p {format_p_value(order['p_value'])}",
            )
        )
    return rows


def checks_of_participants(details: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Each kind of attention check: how many were passed of how many, and the share."""
    checks = details.get("studies", {}).get("checks", {})
    return [
        (str(name).replace("_", " ").capitalize(), f"{passed:,} of {given:,}", format_percent(passed / given))
        for name, (passed, given) in checks.items()
        if given
    ]


def ends_of_participations(details: dict[str, Any]) -> list[tuple[str, int]]:
    """How participations ended, and how many did so."""
    outcomes = details.get("studies", {}).get("outcomes", {})
    return [(str(name).replace("_", " ").capitalize(), count) for name, count in outcomes.items()]


def image_extremes(details: dict[str, Any], visible: QuerySet[Image], decimals: int) -> dict[str, list[Pictured]]:
    """The modified images that passed best as genuine, and those that gave themselves away, as far as visible.

    At most two queries.
    """
    ordered: Sequence[dict[str, Any]] = details.get("images", {}).get("modified", {}).get("images", [])
    ends = [*ordered[:IMAGES_CONSIDERED], *ordered[-IMAGES_CONSIDERED:]]
    ids = {uuid for found in ends if (uuid := _uuid(found["image"]))}
    if not ids:
        return {"convincing": [], "conspicuous": []}
    images = {image.public_id: image for image in visible.filter(public_id__in=ids).select_related("image_class")}
    sources = {
        image.pk: image
        for image in visible.filter(pk__in={image.source_id for image in images.values() if image.source_id})
    }
    # Halves of all, whoever looks: what gave itself away does not pass as convincing where only that is visible.
    middle = (len(ordered) + 1) // 2
    convincing, conspicuous = (
        [found for found in half if _uuid(found["image"]) in images] for half in (ordered[:middle], ordered[middle:])
    )

    def pictured(found: dict[str, Any]) -> Pictured:
        image = images[UUID(found["image"])]
        return Pictured(
            image=image,
            source=sources.get(image.source_id) if image.source_id else None,
            mean=format_number(found["mean"], decimals),
            spread=format_number(1.96 * found["standard_error"], decimals),
            ratings=found["ratings"],
            misleads=found["misleads"],
        )

    return {
        "convincing": [pictured(found) for found in convincing[:IMAGES_SHOWN]],
        "conspicuous": [pictured(found) for found in reversed(conspicuous[-IMAGES_SHOWN:])],
    }


def _uuid(text: str) -> UUID | None:
    """A public id of the catalogue; images of other studies have ids of their own."""
    try:
        return UUID(text)
    except ValueError:
        return None
