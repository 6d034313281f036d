"""Account pages: log in, sign up, accept the terms, tokens."""

import math
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from imagedb import terms
from imagedb.models import TermsAcceptance
from imagedb.selectors.visibility import may_see_registered
from imagedb.services.terms import accept_terms as store_acceptance
from scooter_site.accounts import tokens
from scooter_site.accounts.forms import SignUpForm, TermsForm, TokenForm
from scooter_site.common.admin_tools import signed_in
from scooter_site.common.throttling import address_of, seconds_to_wait


def account_page(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    """The account page; ``more`` is what the last action has to say."""
    user = signed_in(request)
    context = {
        "page": "account",
        "tokens": user.api_tokens.all(),
        "token_form": TokenForm(),
        "acceptance": TermsAcceptance.objects.filter(user=user, version=terms.CURRENT_VERSION).first(),
        "may_see_registered": may_see_registered(user),
        "groups": list(user.groups.order_by("name").values_list("name", flat=True)),
        **more,
    }
    return render(request, "accounts/account.html", context, status=status)


@require_safe
@never_cache
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """What the account may see, and its tokens."""
    return account_page(request)


@require_POST
@never_cache
@login_required
def create_token(request: HttpRequest) -> HttpResponse:
    """Make a token. The answer is the only page that ever shows its key, so it is no redirect."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return account_page(request, status=400, token_form=form)
    try:
        token, key = tokens.create_token(signed_in(request), form.cleaned_data["name"])
    except ValidationError as error:
        form.add_error(None, error)
        return account_page(request, status=400, token_form=form)
    return account_page(request, new_token=token, new_key=key)


@require_POST
@never_cache
@login_required
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one of one's own tokens."""
    name = tokens.revoke_token(signed_in(request), pk)
    if name is None:
        raise Http404
    messages.success(request, f"The token “{name}” is revoked: its key works no more.")
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def accept_terms(request: HttpRequest) -> HttpResponse:
    """The terms of ImageNet, and a way to accept them; leads back to where they were asked for (``next``)."""
    form = TermsForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        store_acceptance(signed_in(request))
        messages.success(request, "You have accepted the terms. Images for registered accounts are open to you now.")
        return HttpResponseRedirect(next_address(request))
    context = {
        "page": "account",
        "form": form,
        "version": terms.CURRENT_VERSION,
        "acceptance": TermsAcceptance.objects.filter(user=signed_in(request), version=terms.CURRENT_VERSION).first(),
        "next": next_address(request),
    }
    return render(request, "accounts/terms.html", context, status=400 if form.errors else 200)


@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def sign_up(request: HttpRequest) -> HttpResponse:
    """Make an account, where the setting SIGN_UP allows it, and log in."""
    if not settings.SIGN_UP:
        raise Http404
    if request.user.is_authenticated:
        return redirect("account")
    form = SignUpForm(request.POST or None)
    context = {"page": "account", "form": form, "next": next_address(request)}
    if request.method == "POST":
        if (wait := seconds_to_wait("sign_up", address_of(request))) is not None:
            return too_often(request, wait)
        if form.is_valid():
            try:
                with transaction.atomic():
                    user = form.save()
            except IntegrityError:  # somebody took the name at the same moment
                form.add_error("username", "A user with that username already exists.")
            else:
                login(request, user, backend="django.contrib.auth.backends.ModelBackend")
                return HttpResponseRedirect(next_address(request))
    return render(request, "accounts/sign_up.html", context, status=400 if form.errors else 200)


class AccountPage:
    """What the class-based pages have in common."""

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        more = {"page": "account", "sign_up_is_open": settings.SIGN_UP}
        return super().get_context_data(**more, **context)  # type: ignore[misc]


@method_decorator(never_cache, name="dispatch")
class LogIn(AccountPage, auth_views.LoginView):
    """Log in by name and password; ten failures close the account to the address for a while (axes)."""

    template_name = "accounts/log_in.html"
    next_page = "account"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        if (wait := seconds_to_wait("log_in", address_of(request))) is not None:
            return too_often(request, wait)
        return super().post(request, *args, **options)


class LogOut(auth_views.LogoutView):
    """Log out, and go home."""

    next_page = "home"


@method_decorator(never_cache, name="dispatch")
class PasswordChange(AccountPage, auth_views.PasswordChangeView):
    """Change one's own password; sessions elsewhere end, tokens stay."""

    template_name = "accounts/change_password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, "Your password is changed. Tokens still work; revoke those you do not trust.")
        return super().form_valid(form)


def next_address(request: HttpRequest) -> str:
    """Where to go on: ``next``, if it is an address of this site, else the account page."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours else reverse("account")


def too_often(request: HttpRequest, wait: float) -> HttpResponse:
    """Too many tries from one address."""
    seconds = max(math.ceil(wait), 1)
    response = render(request, "accounts/too_often.html", {"minutes": -(-seconds // 60)}, status=429)
    response.headers["Retry-After"] = str(seconds)
    return response
