"""Simulated participants walk a study over HTTP (studies.bots says how they behave)."""

import sys
from collections import Counter
from typing import Any

import click
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scooter_site.common.arguments import number_from, whole_number
from studies.bots import Behaviour, simulate
from studies.flow import Outcome
from studies.models import Study, StudyStatus


class Command(BaseCommand):
    help = (
        "Send simulated participants through a study, over HTTP and as test participants. Run it beside the site's "
        "database: able bots look the truth up there."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="STUDY_SLUG")
        parser.add_argument("--count", type=whole_number(1), default=1, help="How many (default: 1).")
        parser.add_argument(
            "--base-url",
            default="",
            help="Address of the site, such as http://localhost:8000; default: in this process.",
        )
        parser.add_argument("--concurrency", type=whole_number(1), default=1, help="How many at a time (default: 1).")
        parser.add_argument(
            "--ability", type=number_from(0, 1), default=0.8, help="0: cannot tell images apart ... 1: nearly always."
        )
        parser.add_argument(
            "--carelessness", type=number_from(0, 1), default=0.0, help="Chance to answer a check at random."
        )
        parser.add_argument(
            "--drop-out", type=number_from(0, 1), default=0.0, help="Chance to leave, before each answer."
        )
        parser.add_argument(
            "--bias", type=number_from(-1, 1), default=0.0, help="-1 ... 1: shift of all answers towards modified."
        )
        parser.add_argument("--outcome", choices=[outcome.value for outcome in Outcome], help="Force this end.")
        parser.add_argument("--seed", type=int, help="Makes the answers repeatable.")
        parser.add_argument("--live", action="store_true", help="Do it although real people may be taking part.")

    def handle(self, *args: Any, **options: Any) -> None:
        study = self._study(options["study"], live=options["live"])
        behaviour = Behaviour(
            ability=options["ability"],
            carelessness=options["carelessness"],
            drop_out=options["drop_out"],
            bias=options["bias"],
            outcome=Outcome(options["outcome"]) if options["outcome"] else None,
        )
        walks = simulate(
            study,
            behaviour,
            count=options["count"],
            base_url=options["base_url"],
            concurrency=options["concurrency"],
            seed=options["seed"],
        )
        with click.progressbar(walks, length=options["count"], label="Participants", file=sys.stderr) as bar:
            ends = list(bar)
        for summary, number in Counter(walk.summary for walk in ends).most_common():
            self.stdout.write(f"{number:6}  {summary}")
        self.stdout.write(f"{sum(walk.ratings for walk in ends):6}  ratings")
        if errors := sum(bool(walk.error) for walk in ends):
            raise CommandError(f"{errors} of {len(ends)} participants met an error.")

    def _study(self, slug: str, *, live: bool) -> Study:
        study = Study.objects.filter(slug=slug).first()
        if study is None:
            raise CommandError(f"There is no study with the slug {slug}.")
        if study.status == StudyStatus.RUNNING and not study.is_demo and not live:
            raise CommandError(
                f"The study {slug} is live: real people may be taking part. Answers of simulated participants never "
                "count and take no place from them, but they load the site. Add --live if you mean it."
            )
        return study
