"""Accounts and system pages of the admin."""

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import reverse
from unfold.admin import ModelAdmin

from scooter_site.common.groups import RESEARCHERS
from studies.models import Demographics

pytestmark = pytest.mark.django_db

REGISTERED = sorted(admin.site._registry, key=lambda model: model._meta.label)


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model._meta.label)
def test_every_list_and_form_of_the_admin_opens_in_one_dress(admin_client, model):
    model_admin = admin.site._registry[model]
    assert isinstance(model_admin, ModelAdmin)
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    # Who people are is shown in summaries only.
    status = 403 if model is Demographics else 200
    assert admin_client.get(reverse(f"{name}_changelist")).status_code == status
    assert admin_client.get(reverse(f"{name}_changelist"), {"q": "snow"}).status_code == status
    assert admin_client.get(reverse(f"{name}_add")).status_code in {200, 403}


def test_logging_in_leads_to_the_overview(client):
    User.objects.create_superuser("head", password="a-long-password")
    answer = client.post(reverse("admin:login"), {"username": "head", "password": "a-long-password"})
    assert answer.url == reverse("admin:index")


def test_guessing_a_password_is_stopped_after_ten_failures(client, settings):
    User.objects.create_superuser("head", password="a-long-password")
    login = reverse("admin:login")
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        assert client.post(login, {"username": "head", "password": "wrong"}).status_code == 200
    assert client.post(login, {"username": "head", "password": "wrong"}).status_code == 429
    answer = client.post(login, {"username": "head", "password": "a-long-password"})
    assert answer.status_code == 429, "the right password is too late now"
    assert b"closed to your address for 15 minutes" in answer.content
    # An administrator unlocks the account by deleting its row.
    other = User.objects.create_superuser("other")
    client.force_login(other)
    attempt = AccessAttempt.objects.get()
    client.post(reverse("admin:axes_accessattempt_delete", args=[attempt.pk]), {"post": "yes"})
    client.logout()
    answer = client.post(login, {"username": "head", "password": "a-long-password"})
    assert answer.url == reverse("admin:index")


def test_a_new_account_gets_the_researchers_group_by_its_name(admin_client):
    form = {"username": "ada", "password1": "a-long-password-1", "password2": "a-long-password-1"}
    answer = admin_client.post(reverse("admin:auth_user_add"), {**form, "usable_password": "true", "_save": "Save"})
    user = User.objects.get(username="ada")
    assert answer.status_code == 302
    assert str(Group.objects.get(name=RESEARCHERS)) in admin_client.get(answer.url).content.decode()
    assert user.check_password("a-long-password-1")


def test_the_admin_may_evaluate_scripts_and_nothing_else_may(admin_client):
    assert "'unsafe-eval'" in admin_client.get(reverse("admin:index"))["Content-Security-Policy"]
    assert "unsafe" not in admin_client.get("/")["Content-Security-Policy"]
