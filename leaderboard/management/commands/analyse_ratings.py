"""Analyse rating files of any study, without storing anything."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.statistics.analysis import RatingScale, analyse, place
from leaderboard.statistics.ratings_file import UnreadableRatings, read_ratings
from leaderboard.statistics.report import as_json, as_text


class Command(BaseCommand):
    help = (
        "Analyse CSV files of ratings (columns rating, pid, image_type: modified, real or clean, image_id), one file "
        "per attack and target model. Several files are ranked against each other."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv")
        parser.add_argument("--scale-min", type=_finite, required=True, help="Lowest value of the scale, such as -2.")
        parser.add_argument("--scale-max", type=_finite, required=True, help="Highest value of the scale, such as 2.")
        parser.add_argument("--high-means", choices=["clean", "modified"], required=True)
        parser.add_argument("--bound", type=_positive, help="Equivalence bound in points (default: 5 %% of the width).")
        parser.add_argument("--alpha", type=_level, default=0.05, help="Level of each one-sided test (default: 0.05).")
        parser.add_argument("--format", choices=["text", "json"], default="text")
        parser.add_argument("--seed", type=int, default=0, help="Of everything drawn at random (default: 0).")
        parser.add_argument(
            "--bootstrap",
            type=_count,
            default=0,
            metavar="N",
            help="Add intervals from N draws of the participants (slow: N fits; 10 N draws for the AUC).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["scale_min"] >= options["scale_max"]:
            raise CommandError("--scale-min must be below --scale-max.", returncode=2)
        scale = RatingScale(options["scale_min"], options["scale_max"], options["high_means"] == "modified")
        analyses = []
        for path in options["files"]:
            try:
                ratings = read_ratings(path, scale)
            except UnreadableRatings as error:
                raise CommandError(str(error), returncode=2) from error
            analyses.append(
                analyse(
                    ratings,
                    scale,
                    bound=options["bound"],
                    alpha=options["alpha"],
                    seed=options["seed"],
                    bootstrap_repeats=options["bootstrap"],
                )
            )
        several = len(analyses) > 1
        places = place(analyses, seed=options["seed"]) if several else [None] * len(analyses)
        results = list(zip(options["files"], analyses, places, strict=True))
        if options["format"] == "text":
            paragraphs = [(f"{path}: " if several else "") + as_text(one, stands) for path, one, stands in results]
            self.stdout.write("\n\n".join(paragraphs))
            return
        pairs = [{"file": str(path), **as_json(one, stands)} for path, one, stands in results]
        self.stdout.write(json.dumps({"pairs": pairs} if several else pairs[0], indent=1, allow_nan=False))


def _finite(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def _positive(text: str) -> float:
    value = _finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def _level(text: str) -> float:
    value = _finite(text)
    if not 0 < value < 0.5:
        raise argparse.ArgumentTypeError("must lie between 0 and 0.5")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)
