from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "scooter_site.common"
    label = "common"
