"""Query parameters of the API: what is not understood is refused with its name, never ignored."""

from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

# Parameters of lists that paging reads, and of every address that content negotiation reads.
PAGING_PARAMETERS = {"cursor", "page_size"}
GENERAL_PARAMETERS = {"format"}


class StrictFilterBackend(DjangoFilterBackend):
    """django-filter, closed: a mistyped parameter would otherwise return everything.

    Lists know the parameters of their filter set and of paging. A single object has no filters; what its addresses
    do read, a view lists by action in ``detail_parameters``.
    """

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        if getattr(view, "detail", False):
            known = set(getattr(view, "detail_parameters", {}).get(view.action, ()))
            refuse_unclear_parameters(request, known)
            return queryset
        filterset_class = self.get_filterset_class(view, queryset)
        filters = set(filterset_class.base_filters) if filterset_class else set()
        refuse_unclear_parameters(request, filters | PAGING_PARAMETERS)
        return super().filter_queryset(request, queryset, view)


def refuse_unclear_parameters(request: Request, known: set[str]) -> None:
    """Raise ValidationError for query parameters that are unknown, empty or given twice, with their names."""
    problems = {}
    for name, values in request.query_params.lists():
        if name not in known | GENERAL_PARAMETERS:
            problems[name] = [f"Unknown parameter. Known: {', '.join(sorted(known)) or 'none'}."]
        elif len(values) > 1:
            problems[name] = ["Given more than once."]
        elif not values[0].strip():
            problems[name] = ["Empty. Leave the parameter out, or give a value."]
    if problems:
        raise ValidationError(problems)


@extend_schema_field(OpenApiTypes.BOOL)
class BooleanFilter(django_filters.TypedChoiceFilter):
    """``true`` or ``false``. (django-filter's own takes any other word for "no filter".)"""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[("true", "true"), ("false", "false")], coerce=lambda word: word == "true", **options)


class IntegerFilter(django_filters.NumberFilter):
    """A whole number."""

    field_class = forms.IntegerField


@extend_schema_field(OpenApiTypes.STR)
class SlugFilter(django_filters.ModelChoiceFilter):
    """One row by its slug; a slug that does not exist is an error, not an empty list."""

    def __init__(self, queryset: QuerySet, **options: object) -> None:
        super().__init__(
            queryset=queryset,
            to_field_name="slug",
            error_messages={"invalid_choice": f"No {queryset.model._meta.verbose_name} has this slug."},
            **options,
        )
