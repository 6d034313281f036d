from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "scooter_site.demo"
    label = "demo"
