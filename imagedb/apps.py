from django.apps import AppConfig


class ImageDbConfig(AppConfig):
    name = "imagedb"
    verbose_name = "Image catalogue"

    def ready(self) -> None:
        from imagedb.triggers import TRIGGERS

        TRIGGERS.follow_migrations(self)
