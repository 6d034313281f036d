"""Paging that shows each row exactly once while rows are being added."""

from typing import Any

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response


class StableCursorPagination(CursorPagination):
    """Cursor paging on the unique id: rows that tie on anything else are neither repeated nor dropped.

    A page size or cursor that makes no sense is refused rather than replaced.
    """

    ordering = "id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request: Request) -> int | None:
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return self.page_size
        if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= self.max_page_size):
            raise ValidationError(
                {self.page_size_query_param: [f"Must be a whole number from 1 to {self.max_page_size}."]}
            )
        return int(given)

    def decode_cursor(self, request: Request) -> Cursor | None:
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            raise self._no_cursor() from None
        # REST framework takes any text for a position; ours are ids, and the database refuses others with an error.
        position = None if cursor is None or cursor.position is None else str(cursor.position)
        if position is not None and not (position.isascii() and position.isdigit() and len(position) <= 18):
            raise self._no_cursor()
        return cursor

    def _no_cursor(self) -> ValidationError:
        return ValidationError(
            {self.cursor_query_param: ["Not a cursor of this list. Follow the links next and previous."]}
        )

    def get_paginated_response(self, data: Any) -> Response:
        """The page, with the addresses of its neighbours in the header Link too: CSV has no other place for them."""
        response = super().get_paginated_response(data)
        neighbours = (("next", response.data["next"]), ("prev", response.data["previous"]))
        if links := ", ".join(f'<{address}>; rel="{rel}"' for rel, address in neighbours if address):
            response.headers["Link"] = links
        return response

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] |= {"minimum": 1, "maximum": self.max_page_size, "default": self.page_size}
        return parameters
