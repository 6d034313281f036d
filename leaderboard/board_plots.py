"""The plots of a board and of an entry, from stored entries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leaderboard.board_table import entry_address
from leaderboard.columns import decision
from leaderboard.formatting import decimals_of, format_interval, format_number, format_percent
from leaderboard.models import Snapshot
from leaderboard.plots.distributions import draw_distributions
from leaderboard.plots.drawing import Drawing, has_letters_of
from leaderboard.plots.heat_map import Cell, draw_heat_map
from leaderboard.plots.image_effects import Effect, draw_image_effects
from leaderboard.plots.intervals import Interval, draw_intervals
from leaderboard.plots.participants import draw_participants
from leaderboard.plots.scatter import Point, draw_scatter
from leaderboard.selectors.rows import Row

# A point of the scale each on a five-point scale, twenty parts on a slider.
PARTS_OF_A_WIDE_SCALE = 20


@dataclass(frozen=True)
class BoardPlot:
    """A plot of a board: its name in addresses, and what it shows in words."""

    name: str
    title: str
    meaning: str
    draw: Callable[[Snapshot, Sequence[Row]], Drawing]
    has_points: Callable[[Sequence[Row]], bool] = bool

    def meaning_at(self, alpha: float) -> str:
        """What the plot shows where each one-sided test is at this level."""
        return self.meaning.format(decision=decision(alpha))


def drawable(entry: Row) -> Row:
    """The entry with names that a PNG can be lettered with: slugs in place of names in scripts that its font lacks.

    The font is the shipped one on every machine; one with all scripts would be larger than the program.
    """
    attack, target_model = entry.attack, entry.target_model
    return replace(
        entry,
        attack=attack if has_letters_of(attack.name) else attack._replace(name=attack.slug),
        target_model=target_model
        if has_letters_of(target_model.name)
        else target_model._replace(name=target_model.slug),
    )


def _value_text(entry: Row, decimals: int) -> str:
    number = format_number(entry.difference, decimals, always_signed=True)
    return f"{number} {format_interval(entry.ci90_low, entry.ci90_high, decimals)}"


def _decimals(snapshot: Snapshot) -> int:
    return decimals_of(snapshot.board.scale_minimum, snapshot.board.scale_maximum)


def intervals(snapshot: Snapshot, entries: Sequence[Row]) -> Drawing:
    decimals = _decimals(snapshot)
    rows = [
        Interval(
            name=str(entry),
            verdict=entry.verdict,
            difference=entry.difference,
            low=entry.ci90_low,
            high=entry.ci90_high,
            value_text="no result" if entry.difference is None else _value_text(entry, decimals),
            address=entry_address(entry),
        )
        for entry in entries
    ]
    return draw_intervals(rows, bound=snapshot.bound, title=f"{_title(snapshot)}: differences with 90 % intervals")


def heat_map(snapshot: Snapshot, entries: Sequence[Row]) -> Drawing:
    decimals = _decimals(snapshot)
    cells = {
        (entry.attack.name, entry.target_model.name): Cell(
            difference=entry.difference,
            text=format_number(entry.difference, decimals, always_signed=True),
            verdict=entry.verdict,
            address=entry_address(entry),
        )
        for entry in entries
    }
    attacks, target_models = rows_and_columns(entries)
    return draw_heat_map(attacks, target_models, cells, title=f"{_title(snapshot)}: attacks against target models")


def rows_and_columns(entries: Sequence[Row]) -> tuple[list[str], list[str]]:
    """The names of attacks and of target models in alphabetical order."""
    attacks = {entry.attack.name for entry in entries}
    target_models = {entry.target_model.name for entry in entries}
    return sorted(attacks, key=str.casefold), sorted(target_models, key=str.casefold)


def scatter(snapshot: Snapshot, entries: Sequence[Row]) -> Drawing:
    decimals = _decimals(snapshot)
    points = [
        Point(
            name=str(entry),
            verdict=entry.verdict,
            difference=entry.difference,
            success=entry.attack_success_rate,
            value_text=f"{_value_text(entry, decimals)}, fools the model {format_percent(entry.attack_success_rate)}",
            address=entry_address(entry),
        )
        for entry in entries
        if entry.difference is not None and entry.attack_success_rate is not None
    ]
    return draw_scatter(points, bound=snapshot.bound, title=f"{_title(snapshot)}: success against perceptibility")


BOARD_PLOTS = {
    plot.name: plot
    for plot in (
        BoardPlot(
            "intervals",
            "Differences with their intervals",
            "Every pair's difference with its 90 % interval, and the shaded band that counts as no difference. "
            "{decision}",
            intervals,
        ),
        BoardPlot(
            "heat-map",
            "Attacks against target models",
            "The difference of every pair: vermilion where people notice, blue where modified images look more genuine "
            "than clean ones, stronger the larger it is. A point: not tested.",
            heat_map,
        ),
        BoardPlot(
            "scatter",
            "Fooling the model, and people",
            "How often the target model is fooled, against how much people notice. The right end of the shaded band "
            "fools the model and nobody notices. Pairs whose rate of success is not known are left out.",
            scatter,
            lambda entries: any(entry.attack_success_rate is not None for entry in entries),
        ),
    )
}


def distributions(entry: Row, details: dict[str, Any]) -> Drawing:
    """How often each part of the scale was chosen, for both kinds."""
    board = entry.snapshot.board
    counts = binned(details.get("distributions", {}), board.scale_minimum, board.scale_maximum)
    title = f"{_title_of(entry)}: ratings of clean and modified images"
    return draw_distributions(
        counts["clean"], counts["modified"], minimum=_edges(board)[0], maximum=_edges(board)[1], title=title
    )


def _edges(board: Any) -> tuple[float, float]:
    """Ends of the drawn scale: of a scale of few whole points each point is a part of its own."""
    if board.scale_maximum - board.scale_minimum < PARTS_OF_A_WIDE_SCALE:
        return board.scale_minimum - 0.5, board.scale_maximum + 0.5
    return board.scale_minimum, board.scale_maximum


def binned(distributions: dict[str, Any], minimum: int, maximum: int) -> dict[str, list[int]]:
    """Counts in equally wide parts of the scale, by kind, from the counts of single values."""
    width = maximum - minimum
    parts = width + 1 if width < PARTS_OF_A_WIDE_SCALE else PARTS_OF_A_WIDE_SCALE
    found = {}
    for kind in ("clean", "modified"):
        counts = [0] * parts
        for value, count in distributions.get(kind, []):
            share = (value - minimum + 0.5) / parts if parts == width + 1 else (value - minimum) / width
            counts[min(int(share * parts), parts - 1)] += count
        found[kind] = counts
    return found


def image_effects(entry: Row, details: dict[str, Any]) -> Drawing:
    """Predicted mean answers to single images of both kinds; of very many, as far as the entry keeps them."""
    kinds = details.get("images", {})
    effects = [
        Effect(kind == "modified", image["mean"], image["standard_error"])
        for kind, found in kinds.items()
        for image in found["images"]
    ]
    board = entry.snapshot.board
    return draw_image_effects(
        effects,
        counts={kind == "modified": kinds[kind]["count"] if kind in kinds else 0 for kind in ("clean", "modified")},
        minimum=board.scale_minimum,
        maximum=board.scale_maximum,
        title=f"{_title_of(entry)}: answers to single images",
    )


def participants(entry: Row, details: dict[str, Any]) -> Drawing:
    """Each participant's own difference."""
    differences = details.get("participants", {}).get("mean_differences", [])
    return draw_participants(
        differences, bound=entry.snapshot.bound, title=f"{_title_of(entry)}: differences of single participants"
    )


ENTRY_PLOTS: dict[str, Callable[[Row, dict[str, Any]], Drawing]] = {
    "distributions": distributions,
    "image-effects": image_effects,
    "participants": participants,
}


def _title(snapshot: Snapshot) -> str:
    return f"{snapshot.board.name}, {snapshot.label}"


def _title_of(entry: Row) -> str:
    """An entry's plots stand in papers without their page: what was retracted says so."""
    return f"{entry} (retracted)" if entry.snapshot.is_retracted else str(entry)


def heat_map_table(snapshot: Snapshot, entries: Sequence[Row]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The table behind the heat map: the target models, and each attack with the texts of its cells."""
    decimals = _decimals(snapshot)
    texts = {
        (entry.attack.name, entry.target_model.name): (
            f"{format_number(entry.difference, decimals, always_signed=True)} ({entry.verdict_label.lower()})"
        )
        for entry in entries
    }
    attacks, target_models = rows_and_columns(entries)
    return target_models, [(attack, [texts.get((attack, model), "") for model in target_models]) for attack in attacks]
