"""Account pages: log in and out, sign up, terms, tokens, password."""

import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.urls import reverse
from rest_framework.test import APIClient

from imagedb import terms
from imagedb.models import TermsAcceptance
from imagedb.selectors import has_accepted_terms
from scooter_site.accounts.models import ApiToken
from scooter_site.accounts.tokens import TOKENS_PER_ACCOUNT, create_token
from scooter_site.common.rates import Rate

pytestmark = pytest.mark.django_db
PASSWORD = "a-long-password"


@pytest.fixture
def account() -> User:
    return User.objects.create_user("ada", email="ada@example.org", password=PASSWORD)


@pytest.fixture
def page(client, account):
    """A function that gives the account page's text."""
    client.force_login(account)

    def text() -> str:
        return re.sub(r"\s+", " ", client.get(reverse("account")).content.decode())

    return text


@pytest.fixture
def sign_up_open(settings) -> None:
    settings.SIGN_UP = True


class TestLogIn:
    def test_leads_to_the_account_page_and_out_again(self, client, account):
        answer = client.post(reverse("log-in"), {"username": "ada", "password": PASSWORD})
        assert answer.url == reverse("account")
        assert b"ada@example.org" in client.get(answer.url).content
        assert client.post(reverse("log-out")).url == reverse("home")
        assert client.get(reverse("account")).url == f"{reverse('log-in')}?next=/account/"

    def test_leads_to_where_one_came_from(self, client, account):
        form = {"username": "ada", "password": PASSWORD, "next": "/catalogue/?kind=clean"}
        assert client.post(reverse("log-in"), form).url == "/catalogue/?kind=clean"

    @pytest.mark.parametrize("address", ["https://example.org/", "//example.org", "javascript:alert(1)"])
    def test_leads_to_no_other_site(self, client, account, address):
        form = {"username": "ada", "password": PASSWORD, "next": address}
        assert client.post(reverse("log-in"), form).url == reverse("account")

    def test_a_wrong_password_is_told_in_the_form(self, client, account):
        answer = client.post(reverse("log-in"), {"username": "ada", "password": "wrong"})
        assert b"Please enter a correct username and password" in answer.content

    def test_guessing_is_stopped(self, client, account, settings):
        form = {"username": "ada", "password": "wrong"}
        answers = [client.post(reverse("log-in"), form).status_code for _ in range(settings.AXES_FAILURE_LIMIT)]
        assert answers[-1] == 429
        assert client.post(reverse("log-in"), {**form, "password": PASSWORD}).status_code == 429

    def test_one_address_does_not_try_all_names(self, client, settings):
        cache.clear()
        settings.THROTTLE_RATES = {**settings.THROTTLE_RATES, "log_in": Rate(2, 3600)}
        for name in ("a", "b"):
            assert client.post(reverse("log-in"), {"username": name, "password": "x"}).status_code == 200
        answer = client.post(reverse("log-in"), {"username": "c", "password": "x"})
        assert answer.status_code == 429
        assert int(answer["Retry-After"]) > 0
        assert client.get(reverse("log-in")).status_code == 200
        cache.clear()

    def test_only_posting_logs_out(self, page, client):
        assert client.get(reverse("log-out")).status_code == 405
        assert client.get(reverse("account")).status_code == 200


@pytest.mark.usefixtures("sign_up_open")
class TestSignUp:
    FORM = {"username": "ada", "email": "ada@example.org", "password1": PASSWORD, "password2": PASSWORD}

    def test_makes_an_account_that_may_do_nothing_special(self, client):
        answer = client.post(reverse("sign-up"), self.FORM)
        assert answer.url == reverse("account")
        user = User.objects.get()
        assert (user.email, user.is_staff, user.is_superuser, user.is_active) == ("ada@example.org", False, False, True)
        assert user.check_password(PASSWORD)
        assert client.get(reverse("account")).status_code == 200
        assert client.get(reverse("sign-up")).url == reverse("account")

    def test_leads_on(self, client):
        assert client.post(reverse("sign-up"), {**self.FORM, "next": "/account/terms/"}).url == "/account/terms/"

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"username": ""}, "This field is required"),
            ({"username": "a b"}, "Enter a valid username"),
            ({"username": "ADA "}, "already exists"),
            ({"email": ""}, "This field is required"),
            ({"email": "nobody"}, "Enter a valid email"),
            ({"password2": "another-password"}, "didn’t match"),
            ({"password1": "short", "password2": "short"}, "too short"),
            ({"username": "a\x00b"}, "Null characters"),
        ],
    )
    def test_what_is_wrong_is_told(self, client, changes, message):
        if changes.get("username") == "ADA ":
            User.objects.create_user("ada")
        before = User.objects.count()
        answer = client.post(reverse("sign-up"), {**self.FORM, **changes})
        assert answer.status_code == 400
        assert message in answer.content.decode()
        assert User.objects.count() == before

    def test_is_throttled_by_address(self, client, settings):
        cache.clear()
        settings.THROTTLE_RATES = {**settings.THROTTLE_RATES, "sign_up": Rate(1, 3600)}
        client.post(reverse("sign-up"), {**self.FORM, "email": ""})
        assert client.post(reverse("sign-up"), self.FORM).status_code == 429
        assert not User.objects.exists()
        cache.clear()

    def test_closed_there_is_no_such_page(self, client, settings):
        assert b"Sign up" in client.get(reverse("log-in")).content
        settings.SIGN_UP = False
        assert client.get(reverse("sign-up")).status_code == 404
        assert client.post(reverse("sign-up"), self.FORM).status_code == 404
        assert b"Sign up" not in client.get(reverse("log-in")).content
        assert not User.objects.exists()


class TestTerms:
    def accept(self, client, **fields):
        return client.post(reverse("accept-terms"), {"version": terms.CURRENT_VERSION, "accept": "on", **fields})

    def test_version_and_time_are_stored_once(self, page, client, account):
        assert not has_accepted_terms(account)
        assert "ImageNet does not own the copyright" in client.get(reverse("accept-terms")).content.decode()
        assert self.accept(client, next="/catalogue/").url == "/catalogue/"
        acceptance = TermsAcceptance.objects.get()
        assert (acceptance.user, acceptance.version) == (account, terms.CURRENT_VERSION)
        self.accept(client)
        assert TermsAcceptance.objects.get().accepted_at == acceptance.accepted_at
        assert has_accepted_terms(account)
        assert "You accepted these terms on" in client.get(reverse("accept-terms")).content.decode()

    def test_the_box_must_be_ticked(self, page, client):
        answer = client.post(reverse("accept-terms"), {"version": terms.CURRENT_VERSION})
        assert answer.status_code == 400
        assert b"Tick the box" in answer.content
        assert not TermsAcceptance.objects.exists()

    def test_who_read_older_terms_reads_the_new_ones(self, page, client):
        answer = self.accept(client, version="2001-01")
        assert answer.status_code == 400
        assert b"have changed" in answer.content
        assert f'name="version" value="{terms.CURRENT_VERSION}"'.encode() in answer.content
        assert not TermsAcceptance.objects.exists()

    def test_strangers_log_in_first(self, client):
        assert "log-in" in client.get(reverse("accept-terms")).url


class TestWhatOneMaySee:
    def test_step_by_step(self, page, client, account):
        assert "Not yet." in page()
        assert "You are in no group" in page()
        TestTerms().accept(client)
        assert f"(version {terms.CURRENT_VERSION})" in page()
        for name in ("Lab B", "Lab A"):
            account.groups.add(Group.objects.create(name=name))
        assert "what belongs to your groups: Lab A, Lab B." in page()

    def test_staff_and_superusers(self, page, account):
        account.is_staff = True
        account.save()
        assert "Not yet." in page()
        assert reverse("admin:index") in page()
        account.user_permissions.add(Permission.objects.get(codename="view_image"))
        assert "Yes, as staff who may view images." in page()
        account.is_superuser = True
        account.save()
        assert "you see every image" in page()


class TestTokens:
    def test_a_key_is_shown_once_and_works(self, page, client):
        answer = client.post(reverse("create-token"), {"name": "laptop"})
        key = re.search(r"scooter_[A-Za-z0-9]{40}", answer.content.decode())[0]
        assert "no-store" in answer["Cache-Control"]
        assert key not in page()
        assert "laptop" in page()
        assert key[:12] in page()
        assert "never" in page()
        api = APIClient()
        assert api.get("/api/v1/classes/0/", headers={"Authorization": f"Token {key}"}).status_code == 200
        assert "never" not in page()
        answer = client.post(reverse("revoke-token", args=[ApiToken.objects.get().pk]), follow=True)
        assert "The token “laptop” is revoked" in answer.content.decode()
        assert api.get("/api/v1/classes/0/", headers={"Authorization": f"Token {key}"}).status_code == 401
        assert "You have no tokens." in page()

    @pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\x00b"])
    def test_a_name_is_needed(self, page, client, name):
        assert client.post(reverse("create-token"), {"name": name}).status_code == 400
        assert not ApiToken.objects.exists()

    def test_not_any_number(self, page, client, account):
        for number in range(TOKENS_PER_ACCOUNT):
            create_token(account, str(number))
        answer = client.post(reverse("create-token"), {"name": "more"})
        assert answer.status_code == 400
        assert b"Revoke one that you do not use" in answer.content

    def test_only_ones_own(self, page, client):
        token, _ = create_token(User.objects.create_user("ben"), "his")
        assert "his" not in page()
        assert client.post(reverse("revoke-token", args=[token.pk])).status_code == 404
        assert ApiToken.objects.exists()

    def test_strangers_have_none(self, client):
        assert "log-in" in client.post(reverse("create-token"), {"name": "x"}).url
        assert "log-in" in client.post(reverse("revoke-token", args=[1])).url

    def test_names_are_text(self, page, client):
        client.post(reverse("create-token"), {"name": "<b>x</b>"})
        assert "<b>x</b>" not in page()


class TestPassword:
    def test_is_changed_and_stays_logged_in(self, page, client, account):
        form = {"old_password": PASSWORD, "new_password1": "another-password", "new_password2": "another-password"}
        assert client.post(reverse("change-password"), form).url == reverse("account")
        assert "Your password is changed" in page()
        account.refresh_from_db()
        assert account.check_password("another-password")

    def test_the_old_one_is_asked_for(self, page, client, account):
        form = {"old_password": "wrong", "new_password1": "another-password", "new_password2": "another-password"}
        assert b"entered incorrectly" in client.post(reverse("change-password"), form).content
        account.refresh_from_db()
        assert account.check_password(PASSWORD)

    def test_strangers_log_in_first(self, client):
        assert "log-in" in client.get(reverse("change-password")).url


@pytest.mark.parametrize("name", ["account", "accept-terms", "change-password", "log-in"])
def test_no_page_is_kept_by_caches(client, account, name):
    if name != "log-in":
        client.force_login(account)
    assert "no-store" in client.get(reverse(name))["Cache-Control"]
