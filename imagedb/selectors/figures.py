"""Counts for pages, bounded and kept for a while: no request adds up a million rows."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.db.models import Count, QuerySet, Sum

KEEP_SECONDS = 120
COUNTED_AT_MOST = 100_000

Figures = TypeVar("Figures")


@dataclass(frozen=True)
class Extent:
    """How many images there are and how large their original files are; both are lower bounds if ``is_at_least``."""

    count: int
    bytes: int
    is_at_least: bool


def extent(images: QuerySet[Any]) -> Extent:
    """Count images and add up their sizes, up to COUNTED_AT_MOST; kept for KEEP_SECONDS."""

    def count() -> Extent:
        rows = images.order_by().values("pk", "original_bytes")[: COUNTED_AT_MOST + 1]
        found = rows.aggregate(count=Count("pk"), bytes=Sum("original_bytes"))
        is_more = found["count"] > COUNTED_AT_MOST
        return Extent(COUNTED_AT_MOST if is_more else found["count"], found["bytes"] or 0, is_more)

    return kept("extent", images, count)


def kept(what: str, images: QuerySet[Any], compute: Callable[[], Figures], *, seconds: int = KEEP_SECONDS) -> Figures:
    """The result of ``compute``, at most some seconds old.

    It is kept under the very question that is asked, the SQL of ``images``: whoever may see other images asks another
    question, and never gets the answer to somebody else's.
    """
    try:
        sql, parameters = images.query.sql_with_params()
    except EmptyResultSet:
        return compute()
    digest = hashlib.sha256(repr((sql, parameters)).encode()).hexdigest()
    return cache.get_or_set(f"figures-{what}-{digest}", compute, seconds)  # type: ignore[return-value]
