"""Analyse rating files of any study, without storing anything."""

import json
import math
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.image_effects_file import UnwritableFile, write_image_effects
from leaderboard.statistics.analysis import RatingScale, analyse, compare_all, place
from leaderboard.statistics.equivalence import LEAST_ALPHA
from leaderboard.statistics.ratings_file import (
    UnreadableRatings,
    read_ratings,
    read_ratings_and_sources,
    scale_in_doubt,
)
from leaderboard.statistics.report import as_json, as_text, comparison_as_json, comparison_as_text
from scooter_site.common.arguments import number, number_between, whole_number


class Command(BaseCommand):
    help = (
        "Analyse CSV files of ratings (columns rating, pid, image_type: modified, real or clean, image_id), one file "
        "per attack and target model. Several files are ranked against each other."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv")
        parser.add_argument("--scale-min", type=number, required=True, help="Lowest value of the scale, such as -2.")
        parser.add_argument("--scale-max", type=number, required=True, help="Highest value of the scale, such as 2.")
        parser.add_argument("--high-means", choices=["clean", "modified"], required=True)
        parser.add_argument(
            "--bound",
            type=number_between(0, math.inf),
            help="Equivalence bound in points (default: 5 %% of the width).",
        )
        parser.add_argument(
            "--alpha",
            type=number_between(LEAST_ALPHA, 0.5),
            default=0.05,
            help="Level of each one-sided test (default: 0.05).",
        )
        parser.add_argument("--format", choices=["text", "json"], default="text")
        parser.add_argument(
            "--seed", type=whole_number(0), default=0, help="Of everything drawn at random (default: 0)."
        )
        parser.add_argument(
            "--bootstrap",
            type=whole_number(0),
            default=0,
            metavar="N",
            help="Add intervals from N draws of the participants (slow: N fits; 10 N draws for the AUC).",
        )
        parser.add_argument(
            "--source-column",
            metavar="NAME",
            help="Column that gives, for modified images, the image_id of their own clean source: compares the two.",
        )
        parser.add_argument(
            "--image-effects",
            type=Path,
            metavar="OUT.csv",
            help="Write what the mixed model predicts of every single image to this file.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            scale = RatingScale(options["scale_min"], options["scale_max"], options["high_means"] == "modified")
        except ValueError as error:
            raise CommandError(f"--scale-min, --scale-max: {error}", returncode=2) from error
        resolved = [path.resolve() for path in options["files"]]
        if len(set(resolved)) < len(resolved):
            raise CommandError("A file is named twice; each attack and target model has its own.", returncode=2)
        if options["image_effects"] and options["image_effects"].resolve() in resolved:
            raise CommandError("--image-effects: names a file of ratings; give another name.", returncode=2)
        read, analyses, source_column = [], [], options["source_column"]
        for path in options["files"]:
            try:
                ratings, source_of = (
                    read_ratings_and_sources(path, scale, source_column)
                    if source_column
                    else (read_ratings(path, scale), {})
                )
            except UnreadableRatings as error:
                raise CommandError(str(error), returncode=2) from error
            if doubt := scale_in_doubt(ratings, scale):
                self.stderr.write(self.style.WARNING(f"{path}: {doubt}"))
            read.append(ratings)
            analyses.append(
                analyse(
                    ratings,
                    scale,
                    bound=options["bound"],
                    alpha=options["alpha"],
                    seed=options["seed"],
                    bootstrap_repeats=options["bootstrap"],
                    source_of=source_of,
                )
            )
        several = len(analyses) > 1
        places = place(analyses, seed=options["seed"]) if several else [None] * len(analyses)
        names = [str(path) for path in options["files"]]
        comparisons = compare_all(analyses)
        results = list(zip(names, analyses, places, strict=True))
        if options["image_effects"]:
            fitted = zip(names, read, [one.mixed_model for one in analyses], strict=True)
            try:
                write_image_effects(options["image_effects"], fitted)
            except UnwritableFile as error:
                raise CommandError(str(error), returncode=2) from error
        if options["format"] == "text":
            paragraphs = [(f"{name}: " if several else "") + as_text(one, stands) for name, one, stands in results]
            paragraphs += [comparison_as_text(comparison, names) for comparison in comparisons]
            self.stdout.write("\n\n".join(paragraphs))
            return
        pairs = [{"file": name, **as_json(one, stands)} for name, one, stands in results]
        board = {"pairs": pairs, "comparisons": [comparison_as_json(comparison, names) for comparison in comparisons]}
        self.stdout.write(json.dumps(board if several else pairs[0], indent=1, allow_nan=False))
