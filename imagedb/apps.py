from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class ImageDbConfig(AppConfig):
    name = "imagedb"
    verbose_name = "Image catalogue"

    def ready(self) -> None:
        from imagedb import triggers

        pre_migrate.connect(triggers.remove_before_migrations, sender=self, dispatch_uid="remove_catalogue_rules")
        post_migrate.connect(triggers.install_after_migrations, sender=self, dispatch_uid="install_catalogue_rules")
