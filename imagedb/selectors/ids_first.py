"""How a page of a long list is found without going through all of it."""

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import BooleanField, F, Func, Q

from imagedb.models import Image


def ids_first(*conditions: Q) -> Q:
    """Images that meet any of the conditions: their ids are looked up first, each condition by its own index.

    A list is in the order of ids and ends after a page, so that PostgreSQL goes through all images in that order if it
    expects to meet enough of them on the way. It cannot know that those of one import lie together, maybe at the very
    end. With the ids in hand it reads the page alone. A condition with one index in the order of ids (``attack=3``)
    needs no such help; one with several (``attack__in``) does.
    """
    if connection.vendor != "postgresql":
        any_of_them = Q(pk__in=[])
        for condition in conditions:
            any_of_them |= condition
        return any_of_them
    first, *others = (Image.objects.filter(condition).order_by().values("pk") for condition in conditions)
    return Q(_IsAnyOf(F("pk"), ArraySubquery(first.union(*others, all=True))))


class _IsAnyOf(Func):
    """Whether the first expression is among those of the array that is the second."""

    template = "(%(expressions)s))"
    arg_joiner = " = ANY("
    output_field = BooleanField()
