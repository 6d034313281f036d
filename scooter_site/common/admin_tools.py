"""What the admin pages of every app share."""

from typing import Any

from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import cached_property


class ReadOnlyAdmin:
    """Mixin for what the program writes and nobody may change by hand: research data, results, logs."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class StayOnPage:
    """Mixin: saving leads back to the object's own page, where the next step is, instead of to the list."""

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        response: HttpResponse = super().response_add(request, obj, post_url_continue)  # type: ignore[misc]
        return self._to_page(request, obj, response)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        response: HttpResponse = super().response_change(request, obj)  # type: ignore[misc]
        return self._to_page(request, obj, response)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        context.update(show_save_and_continue=False, show_save_and_add_another=False)
        return super().render_change_form(request, context, add, change, form_url, obj)  # type: ignore[misc]

    def _to_page(self, request: HttpRequest, obj: Any, response: HttpResponse) -> HttpResponse:
        if "_popup" in request.POST or "_save" not in request.POST:
            return response
        return HttpResponseRedirect(change_url(obj))


class AtLeast(int):
    """A number of rows that was not counted to the end; shown as what it is."""

    def __str__(self) -> str:
        return f"more than {int(self):,}"


class BoundedPaginator(Paginator):
    """Counts rows up to a limit: a list of a million must not be counted to its end to show its first page.

    Nobody turns so many pages; whoever looks for something further on filters.
    """

    counted_at_most = 10_000

    @cached_property
    def count(self) -> int:
        found = self.object_list.order_by().values("pk")[: self.counted_at_most + 1].count()  # type: ignore[attr-defined]
        return AtLeast(self.counted_at_most) if found > self.counted_at_most else found


def change_url(obj: Any) -> str:
    """Address of the object's page in the admin."""
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[quote(obj.pk)])


def list_url(model: Any, query: str = "") -> str:
    """Address of the model's list in the admin, with an optional query string."""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{address}?{query}" if query else address


def add_url(model: Any, query: str = "") -> str:
    """Address of the model's empty form in the admin."""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add")
    return f"{address}?{query}" if query else address


def signed_in(request: HttpRequest) -> User:
    """The account that asks; in the admin there always is one."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def may(request: HttpRequest, action: str, model: Any) -> bool:
    """Whether the signed-in user has the model permission ``action`` (view, add, change, delete)."""
    return request.user.has_perm(f"{model._meta.app_label}.{action}_{model._meta.model_name}")
