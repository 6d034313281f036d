"""Paging that shows each row exactly once while rows are being added."""

from rest_framework.pagination import CursorPagination


class StableCursorPagination(CursorPagination):
    """Cursor paging on the unique id; page size capped."""

    ordering = "id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
