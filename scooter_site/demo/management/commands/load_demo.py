from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scooter_site.demo import content
from scooter_site.demo.photographs import PhotographsMissing


class Command(BaseCommand):
    help = "Load the demonstration: photographs, stand-in attacks, an open study and closed ones. Safe to run again."

    def handle(self, *args: Any, **options: Any) -> None:
        if content.is_loaded():
            self.stdout.write("The demonstration is loaded already.")
            return
        try:
            content.load(self.stdout.write)
        except (content.DemoImpossible, PhotographsMissing) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(self.style.SUCCESS("The demonstration is loaded."))
