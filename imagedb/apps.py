from django.apps import AppConfig


class ImageDbConfig(AppConfig):
    name = "imagedb"
    verbose_name = "Image catalogue"
