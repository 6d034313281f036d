"""What the database refuses, told on the page instead of as an error."""

from typing import Any

from django.contrib import messages
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from scooter_site.common.triggers import broken_rule


class RulesTold:
    """Mixin: a change that breaks a rule between rows is undone, and the page says which rule."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)  # type: ignore[misc]
        except IntegrityError as error:
            rule = broken_rule(error)
            if rule is None:
                raise
            messages.error(request, f"Nothing was changed. {rule.message}")
            return HttpResponseRedirect(request.path)
