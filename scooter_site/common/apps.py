from django.apps import AppConfig
from django.db.models.signals import post_migrate


class CommonConfig(AppConfig):
    name = "scooter_site.common"
    label = "common"

    def ready(self) -> None:
        from scooter_site.common.groups import keep_researchers_group
        from scooter_site.common.stored_files import delete_files_of_deleted_rows

        delete_files_of_deleted_rows()
        post_migrate.connect(keep_researchers_group, dispatch_uid="keep_researchers_group")
