"""Tokens of the API: made, used, revoked."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from scooter_site.accounts.models import ApiToken
from scooter_site.accounts.tokens import TOKENS_PER_ACCOUNT, create_token, revoke_token

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/classes/0/"


@pytest.fixture
def account() -> User:
    return User.objects.create_user("ada", password="a-long-password")


def ask(key: str) -> int:
    return APIClient().get(ADDRESS, headers={"Authorization": f"Token {key}"}).status_code


def test_a_key_can_be_found_where_it_leaked_and_is_not_stored(account):
    token, key = create_token(account, " laptop ")
    assert re.fullmatch(r"scooter_[A-Za-z0-9]{40}", key)
    assert (token.name, token.prefix) == ("laptop", key[:12])
    stored = ApiToken.objects.values().get()
    assert key not in str(stored)
    assert len(stored["digest"]) == 64


def test_a_token_opens_the_api_until_it_is_revoked(account):
    token, key = create_token(account, "laptop")
    _, other_key = create_token(account, "server")
    assert ask(key) == ask(other_key) == 200
    assert revoke_token(User.objects.create_user("other"), token.pk) is None, "not one's own"
    assert ask(key) == 200
    assert revoke_token(account, token.pk) == "laptop"
    assert ask(key) == 401
    assert ask(other_key) == 200


@pytest.mark.parametrize(
    "header", ["Token", "Token x", "Token a b", "Token scooter_" + "a" * 40, "Token \x00", "Token é"]
)
def test_what_is_no_token_is_refused(account, header):
    create_token(account, "laptop")
    answer = APIClient().get(ADDRESS, headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Token"


def test_the_digest_is_not_the_key(account):
    token, _ = create_token(account, "laptop")
    assert ask(token.digest) == 401


def test_an_inactive_account_has_no_access(account):
    _, key = create_token(account, "laptop")
    User.objects.update(is_active=False)
    assert ask(key) == 401


def test_last_use_is_noted_once_a_minute(account, django_assert_num_queries):
    token, key = create_token(account, "laptop")
    assert token.last_used_at is None
    with django_assert_num_queries(3):  # the token, its use, the class
        ask(key)
    token.refresh_from_db()
    first = token.last_used_at
    assert timezone.now() - first < timedelta(minutes=1)
    with django_assert_num_queries(2):
        ask(key)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    ask(key)
    token.refresh_from_db()
    assert token.last_used_at >= first


@pytest.mark.parametrize("name", ["", "   ", "x" * 101])
def test_a_token_needs_a_name(account, name):
    with pytest.raises(ValidationError) as error:
        create_token(account, name)
    assert list(error.value.message_dict) == ["name"]
    assert not ApiToken.objects.exists()


def test_an_account_has_not_any_number_of_tokens(account):
    for number in range(TOKENS_PER_ACCOUNT):
        create_token(account, str(number))
    with pytest.raises(ValidationError, match="Revoke one"):
        create_token(account, "one more")
    create_token(User.objects.create_user("other"), "first")


def test_the_admin_shows_and_revokes_but_never_makes_or_shows_keys(admin_client, account):
    token, key = create_token(account, "laptop")
    page = admin_client.get(reverse("admin:accounts_apitoken_changelist")).content.decode()
    assert token.prefix in page
    for secret in (key, token.digest):
        assert secret not in page
        assert (
            secret not in admin_client.get(reverse("admin:accounts_apitoken_change", args=[token.pk])).content.decode()
        )
    assert admin_client.get(reverse("admin:accounts_apitoken_add")).status_code == 403
    admin_client.post(reverse("admin:accounts_apitoken_delete", args=[token.pk]), {"post": "yes"})
    assert ask(key) == 401


def test_the_command_prints_the_key(account, capsys):
    call_command("create_api_token", "ada", "nightly mirror")
    assert ask(capsys.readouterr().out.strip()) == 200
    with pytest.raises(CommandError, match="'nobody'"):
        call_command("create_api_token", "nobody", "x")
    with pytest.raises(CommandError, match="blank"):
        call_command("create_api_token", "ada", "")
