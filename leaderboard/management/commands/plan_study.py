"""Print how sure a study of so many participants would be, and what it would cost."""

import math
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.statistics.analysis import RatingScale
from leaderboard.statistics.equivalence import LEAST_ALPHA, Verdict, default_bound
from leaderboard.statistics.mixed_model import NotEstimable, VarianceComponents, fit_mixed_model
from leaderboard.statistics.planning import Design, Plan, participants_needed, planning_table, simulated_power
from leaderboard.statistics.ratings_file import UnreadableRatings, read_ratings
from leaderboard.statistics.subsampling import REPEATS, Subsample, subsampling_curve
from scooter_site.common.arguments import money, number, number_between, whole_number

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
        "that a power needs. Variances come from a file of earlier ratings (--like) or are given (--variances). "
        "Or what smaller studies than one that was run would have said: participants of a file are drawn (--subsample)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        asked = parser.add_mutually_exclusive_group()
        asked.add_argument("--participants", type=whole_number(1), nargs="+", metavar="N")
        asked.add_argument(
            "--power", type=number_between(0, 1), nargs="+", metavar="POWER", help="For example 0.8 0.9 0.95."
        )
        parser.add_argument(
            "--images-per-kind", type=whole_number(1), default=50, help="That one participant rates (50)."
        )
        parser.add_argument("--pool-per-kind", type=whole_number(1), default=3000, help="That there are in all (3000).")
        parser.add_argument("--scale-min", type=number, default=-100.0)
        parser.add_argument("--scale-max", type=number, default=100.0)
        parser.add_argument("--high-means", choices=["clean", "modified"], default="modified")
        parser.add_argument(
            "--bound",
            type=number_between(0, math.inf),
            help="Equivalence bound in points (default: 5 %% of the width).",
        )
        parser.add_argument("--difference", type=number, default=0.0, help="True difference in points (default: 0).")
        parser.add_argument("--alpha", type=number_between(LEAST_ALPHA, 0.5), default=0.05)
        parser.add_argument("--pounds", type=money, help="Cost of one valid participant with fees, such as 4.50.")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--like", type=Path, metavar="FILE.csv", help="Ratings of an earlier study on this scale.")
        source.add_argument(
            "--variances",
            type=number,
            nargs=6,
            metavar=("INTERCEPT", "SLOPE", "COVARIANCE", "MODIFIED", "CLEAN", "RESIDUAL"),
            help="Variances in squared points, as analyse_ratings --format json gives them.",
        )
        source.add_argument(
            "--subsample",
            type=Path,
            metavar="FILE.csv",
            help="Draw participants of this study instead of planning one.",
        )
        parser.add_argument(
            "--draws",
            type=whole_number(1),
            default=REPEATS,
            metavar="N",
            help=f"For each number of --subsample ({REPEATS}).",
        )
        parser.add_argument(
            "--simulate", type=whole_number(1), metavar="N", help="Check the power by N simulated studies."
        )
        parser.add_argument("--seed", type=whole_number(0), default=0)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["subsample"]:
                self._subsample(options)
                return
            components = self._components(options)
            design = Design(2, options["images_per_kind"], options["pool_per_kind"])
            settings = {"bound": _bound(options), "difference": options["difference"], "alpha": options["alpha"]}
            numbers = options["participants"] or DEFAULT_PARTICIPANTS
            if options["power"]:
                needed = [participants_needed(power, design, components, **settings) for power in options["power"]]
                numbers = [number for number in needed if number is not None]
                for power, number in zip(options["power"], needed, strict=True):
                    self.stdout.write(f"Power {power:.0%}: " + (f"{number} participants" if number else NEVER))
            plans = planning_table(numbers, design, components, pounds_per_participant=options["pounds"], **settings)
        except (UnreadableRatings, NotEstimable, ValueError) as error:
            raise CommandError(str(error), returncode=2) from error
        except ArithmeticError as error:
            raise CommandError("--variances are too large, or too small, to compute with.", returncode=2) from error
        self.stdout.write(HEADER + ("  simulated" if options["simulate"] else ""))
        for row in plans:
            line = _line(row)
            if options["simulate"]:
                power = simulated_power(
                    row.design, components, repeats=options["simulate"], seed=options["seed"], **settings
                )
                line += f"{power:11.3f}"
            self.stdout.write(line)

    def _subsample(self, options: dict[str, Any]) -> None:
        if options["power"] or options["simulate"]:
            raise CommandError(
                "--subsample draws from a study that was run; leave --power and --simulate away.", returncode=2
            )
        ratings = read_ratings(options["subsample"], _scale(options))
        curve = subsampling_curve(
            ratings,
            options["participants"] or _sizes(ratings.participant_count),
            bound=_bound(options),
            alpha=options["alpha"],
            repeats=options["draws"],
            seed=options["seed"],
            pounds_per_participant=options["pounds"],
        )
        self.stdout.write(SUBSAMPLE_HEADER)
        for step in curve:
            self.stdout.write(_subsample_line(step))

    def _components(self, options: dict[str, Any]) -> VarianceComponents:
        if options["variances"]:
            components = VarianceComponents(**dict(zip(COMPONENTS, options["variances"], strict=True)))
            for name in COMPONENTS:
                if name != "participant_covariance" and getattr(components, name) < 0:
                    raise CommandError(f"--variances: {name} must not be negative.", returncode=2)
            if components.participant_covariance**2 > components.participant_intercept * components.participant_slope:
                raise CommandError("--variances: the covariance is larger than its two variances allow.", returncode=2)
            return components
        return fit_mixed_model(read_ratings(options["like"], _scale(options))).variance_components


def _scale(options: dict[str, Any]) -> RatingScale:
    return RatingScale(options["scale_min"], options["scale_max"], options["high_means"] == "modified")


def _bound(options: dict[str, Any]) -> float:
    if options["bound"] is not None:
        return float(options["bound"])
    scale = _scale(options)
    return default_bound(scale.minimum, scale.maximum)


def _sizes(participants: int) -> list[int]:
    """Tenths of the participants, from 2 to all of them."""
    return sorted({max(2, round(participants * tenth / 10)) for tenth in range(1, 11)})


HEADER = "participants   ratings  interval width   power        cost"
SUBSAMPLE_HEADER = (
    "participants  fitted  difference  spread  interval width  imperceptible  inconclusive  perceptible        cost"
)
NEVER = "not with any number of participants: use more images, or a wider bound"


def _line(row: Plan) -> str:
    ratings = 2 * row.design.participants * row.design.images_per_kind
    cost = "-" if row.cost is None else f"£{row.cost:,.2f}"
    return f"{row.design.participants:12d}{ratings:10d}{row.interval_width:16.3f}{row.power:8.3f}{cost:>12}"


def _subsample_line(step: Subsample) -> str:
    estimates = "".join(
        f"{'-' if value is None else format(value, '.3f'):>{width}}"
        for value, width in ((step.difference, 12), (step.spread, 8), (step.interval_width, 16))
    )
    shares = "".join(
        f"{format(step.verdict_shares[verdict], '.0%') if step.verdict_shares else '-':>{width}}"
        for verdict, width in ((Verdict.IMPERCEPTIBLE, 15), (Verdict.INCONCLUSIVE, 14), (Verdict.PERCEPTIBLE, 13))
    )
    cost = "-" if step.cost is None else f"£{step.cost:,.2f}"
    return f"{step.participants:12d}{step.fitted:8d}{estimates}{shares}{cost:>12}"
