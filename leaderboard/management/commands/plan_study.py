"""Print how sure a study of so many participants would be, and what it would cost."""

import argparse
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.statistics.analysis import RatingScale
from leaderboard.statistics.equivalence import default_bound
from leaderboard.statistics.mixed_model import NotEstimable, VarianceComponents, fit_mixed_model
from leaderboard.statistics.planning import Design, Plan, participants_needed, planning_table, simulated_power
from leaderboard.statistics.ratings_file import UnreadableRatings, read_ratings

DEFAULT_PARTICIPANTS = (50, 100, 200, 300, 400, 500, 600, 700)
COMPONENTS = (
    "participant_intercept",
    "participant_slope",
    "participant_covariance",
    "image_modified",
    "image_clean",
    "residual",
)


class Command(BaseCommand):
    help = (
        "Power of the equivalence test, width of the interval and cost, for numbers of participants or the number "
        "that a power needs. Variances come from a file of earlier ratings (--like) or are given (--variances)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        asked = parser.add_mutually_exclusive_group()
        asked.add_argument("--participants", type=_number, nargs="+", default=DEFAULT_PARTICIPANTS, metavar="N")
        asked.add_argument("--power", type=_share, nargs="+", metavar="POWER", help="For example 0.8 0.9 0.95.")
        parser.add_argument("--images-per-kind", type=_number, default=50, help="That one participant rates (50).")
        parser.add_argument("--pool-per-kind", type=_number, default=3000, help="That there are in all (3000).")
        parser.add_argument("--scale-min", type=float, default=-100.0)
        parser.add_argument("--scale-max", type=float, default=100.0)
        parser.add_argument("--high-means", choices=["clean", "modified"], default="modified")
        parser.add_argument("--bound", type=float, help="Equivalence bound in points (default: 5 %% of the width).")
        parser.add_argument("--difference", type=float, default=0.0, help="True difference in points (default: 0).")
        parser.add_argument("--alpha", type=float, default=0.05)
        parser.add_argument("--pounds", type=_pounds, help="Cost of one valid participant with fees, such as 4.50.")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--like", type=Path, metavar="FILE.csv", help="Ratings of an earlier study on this scale.")
        source.add_argument(
            "--variances",
            type=float,
            nargs=6,
            metavar=("INTERCEPT", "SLOPE", "COVARIANCE", "MODIFIED", "CLEAN", "RESIDUAL"),
            help="Variances in squared points, as analyse_ratings --format json gives them.",
        )
        parser.add_argument("--simulate", type=_number, metavar="N", help="Check the power by N simulated studies.")
        parser.add_argument("--seed", type=int, default=0)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            components = self._components(options)
            design = Design(2, options["images_per_kind"], options["pool_per_kind"])
            bound = options["bound"] or default_bound(options["scale_min"], options["scale_max"])
            settings = {"bound": bound, "difference": options["difference"], "alpha": options["alpha"]}
            numbers = options["participants"]
            if options["power"]:
                needed = [participants_needed(power, design, components, **settings) for power in options["power"]]
                numbers = [number for number in needed if number is not None]
                for power, number in zip(options["power"], needed, strict=True):
                    self.stdout.write(f"Power {power:.0%}: " + (f"{number} participants" if number else NEVER))
            plans = planning_table(numbers, design, components, pounds_per_participant=options["pounds"], **settings)
        except (UnreadableRatings, NotEstimable, ValueError) as error:
            raise CommandError(str(error), returncode=2) from error
        self.stdout.write(HEADER + ("  simulated" if options["simulate"] else ""))
        for row in plans:
            line = _line(row)
            if options["simulate"]:
                power = simulated_power(
                    row.design, components, repeats=options["simulate"], seed=options["seed"], **settings
                )
                line += f"{power:11.3f}"
            self.stdout.write(line)

    def _components(self, options: dict[str, Any]) -> VarianceComponents:
        if options["variances"]:
            components = VarianceComponents(**dict(zip(COMPONENTS, options["variances"], strict=True)))
            for name in COMPONENTS:
                if name != "participant_covariance" and getattr(components, name) < 0:
                    raise CommandError(f"--variances: {name} must not be negative.", returncode=2)
            if components.participant_covariance**2 > components.participant_intercept * components.participant_slope:
                raise CommandError("--variances: the covariance is larger than its two variances allow.", returncode=2)
            return components
        scale = RatingScale(options["scale_min"], options["scale_max"], options["high_means"] == "modified")
        return fit_mixed_model(read_ratings(options["like"], scale)).variance_components


HEADER = "participants   ratings  interval width   power        cost"
NEVER = "not with any number of participants: use more images, or a wider bound"


def _line(row: Plan) -> str:
    ratings = 2 * row.design.participants * row.design.images_per_kind
    cost = "-" if row.cost is None else f"£{row.cost:,.2f}"
    return f"{row.design.participants:12d}{ratings:10d}{row.interval_width:16.3f}{row.power:8.3f}{cost:>12}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number between 0 and 1")
    return value


def _pounds(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(-1)
    if not (value.is_finite() and value >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of money, such as 4.50")
    return value
