from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "scooter_site.accounts"
    label = "accounts"
