"""The filters of the gallery as a form, as chips that say what is set, and as messages about what makes no sense.

The filters themselves are those of the API (imagedb/filters.py).
"""

from collections.abc import Collection as Names
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Exists, OuterRef
from django.http import QueryDict

from imagedb.filters import ImageFilter
from imagedb.models import Attack, AttackFamily, ImageClass, ImageKind, TargetModel
from imagedb.selectors.collections import visible_collections
from imagedb.selectors.figures import kept
from imagedb.selectors.visibility import visible_images

Options = list[tuple[str, str]]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Field:
    """A filter of the form: a select element, or without options a field to type into."""

    name: str
    label: str
    value: str
    options: Options


@dataclass(frozen=True)
class Chip:
    """A filter that is set, and the address without it."""

    label: str
    value: str
    address_without: str


@dataclass(frozen=True)
class Problem:
    """A parameter that makes no sense, why, and the address without it."""

    name: str
    value: str
    message: str
    address_without: str


def fields(user: AbstractUser | AnonymousUser, given: QueryDict) -> list[Field]:
    """The fields of the form with their values."""
    choices: dict[str, tuple[str, Options]] = {
        "search": ("Search", []),
        "kind": ("Kind", list(ImageKind.choices)),
        "family": ("Family of attacks", list(AttackFamily.choices)),
        "attack": ("Attack", list(Attack.objects.order_by("name").values_list("slug", "name"))),
        "target_model": ("Target model", list(TargetModel.objects.order_by("name").values_list("slug", "name"))),
        "class_index": ("Class", _classes(user)),
        "collection": ("Collection", list(visible_collections(user).order_by("name").values_list("slug", "name"))),
    }
    return [Field(name, label, given.get(name, ""), options) for name, (label, options) in choices.items()]


def chips(path: str, given: QueryDict, fields: list[Field], cursors: Names[str]) -> list[Chip]:
    """What is set, with the words of the form where it has the filter."""
    of_form = {field.name: field for field in fields}
    found = []
    for name, value in pairs(given):
        if name in cursors:
            continue
        field = of_form.get(name)
        label = field.label if field else name.replace("_", " ").capitalize()
        words = dict(field.options).get(value, value) if field else value
        found.append(Chip(label, words, _without(path, given, {name, *cursors})))
    return found


def problems(path: str, given: QueryDict, filters: ImageFilter, cursors: Names[str]) -> list[Problem]:
    """Parameters that are unknown, given twice, or have a value that the filter refuses."""
    offered = sorted(ImageFilter.get_filters())
    found = []
    for name, values in given.lists():
        if name not in offered and name not in cursors:
            message = f"There is no such filter. Known: {', '.join(offered)}."
        elif len(values) > 1:
            message = "It is given more than once."
        elif name in filters.form.errors:
            message = " ".join(filters.form.errors[name])
        else:
            continue
        found.append(problem(path, given, name, message))
    return found


def problem(path: str, given: QueryDict, name: str, message: str) -> Problem:
    """A message about one parameter."""
    return Problem(name, ", ".join(given.getlist(name)), message, _without(path, given, {name}))


def pairs(given: QueryDict) -> Pairs:
    """All parameters in order, those given twice as well."""
    return [(name, value) for name, values in given.lists() for value in values]


def address(path: str, parameters: Pairs) -> str:
    """The path with a query string, if there is anything in it."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def _without(path: str, given: QueryDict, names: Names[str]) -> str:
    return address(path, [pair for pair in pairs(given) if pair[0] not in names])


def _classes(user: AbstractUser | AnonymousUser) -> Options:
    """The classes of which the user may see images: a look into the index ``image_by_class`` for each."""
    images = visible_images(user)
    shown = ImageClass.objects.filter(Exists(images.filter(image_class=OuterRef("pk"))))
    return kept("classes", images, lambda: [(str(index), name) for index, name in shown.values_list("index", "name")])
