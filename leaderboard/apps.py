from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    name = "leaderboard"
    verbose_name = "Leaderboard"

    def ready(self) -> None:
        from leaderboard import receivers  # noqa: F401 - connects the signal receivers
        from leaderboard.triggers import TRIGGERS

        TRIGGERS.follow_migrations(self)
