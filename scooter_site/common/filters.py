"""Query parameters of the API: an unknown one is refused with its name, never ignored."""

from typing import Any

from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

# Parameters that paging and content negotiation read, not filters.
GENERAL_PARAMETERS = {"cursor", "page_size", "format"}


class StrictFilterBackend(DjangoFilterBackend):
    """django-filter, closed: a mistyped parameter would otherwise return everything."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        filterset_class = self.get_filterset_class(view, queryset)
        known = set(filterset_class.base_filters) if filterset_class else set()
        if unknown := sorted(set(request.query_params) - known - GENERAL_PARAMETERS):
            raise ValidationError(
                {name: [f"Unknown parameter. Known: {', '.join(sorted(known)) or 'none'}."] for name in unknown}
            )
        return super().filter_queryset(request, queryset, view)
