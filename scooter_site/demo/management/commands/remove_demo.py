from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scooter_site.demo import removal


class Command(BaseCommand):
    help = "Remove everything that load_demo made, with all answers given in its studies, and nothing else."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            removed = removal.remove()
        except removal.StillInUse as error:
            raise CommandError(str(error)) from error
        for name, number in removed.items():
            self.stdout.write(f"{number:6}  {name}")
        self.stdout.write(self.style.SUCCESS("The demonstration is removed."))
