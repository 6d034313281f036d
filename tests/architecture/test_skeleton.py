import pytest
from django.core.management import call_command

from tests import factories


@pytest.mark.django_db
def test_models_and_migrations_agree():
    call_command("makemigrations", "--check", "--dry-run")


@pytest.mark.django_db
def test_factories_make_valid_rows():
    modified = factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    modified.full_clean()
    assert modified.source.kind == "clean"
