"""``manage.py create_api_token USERNAME NAME``: for programs that nobody logs in for."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scooter_site.accounts.tokens import create_token


class Command(BaseCommand):
    help = "Make an API token for an account and print its key, which cannot be seen again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("name", help="where it is used, for example 'nightly mirror'")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no account {options['username']!r}.")
        try:
            _, key = create_token(user, options["name"])
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.stdout.write(key)
