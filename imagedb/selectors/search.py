"""Full-text search of images.

Words are runs of letters and digits in any letter case, so that ``ILSVRC2012_val_00000293.JPEG`` is four. All words of
a question must be found, each anywhere: "tabby resnet" finds images of the class tabby made against a ResNet. In what
describes many images (class, attack, target model) a word finds words that begin with it; in what an image says itself
(file name, attribution) whole words.

Attacks, target models and classes are few: they are looked through here, and images asked for by their ids. What images
say themselves is in an index of PostgreSQL (column ``own_words``); SQLite, for small catalogues, looks at every row.
"""

import json
import re
from functools import reduce
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import BooleanField, F, Func, Model, Q, QuerySet, Value

from imagedb.models import Attack, Image, ImageClass, TargetModel
from imagedb.selectors.ids_first import ids_first

WORD = re.compile(r"[^\W_]+")
# Images that say a word are looked up first, up to so many; more of those that are described by it, as an index alone
# has their ids. What is met more often is met soon on the way through all images.
OFTEN_SAID = 50_000
OFTEN_DESCRIBED = 200_000

DESCRIBED_BY: dict[str, tuple[type[Model], tuple[str, ...]]] = {
    "image_class": (ImageClass, ("synset", "name", "synonyms")),
    "attack": (Attack, ("name", "slug", "description", "paper_title")),
    "target_model": (TargetModel, ("name", "slug")),
}


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters, each once."""
    return list(dict.fromkeys(WORD.findall(text.lower())))


def search_images(images: QuerySet[Image], question: str) -> QuerySet[Image]:
    """Those of the images in which all words of the question are found; none if it has no words."""
    words = words_of(question)
    if not words:
        return images.none()
    known_words = {field: _words_of_rows(*rows, words) for field, rows in DESCRIBED_BY.items()}
    for word in words:
        described = {
            field: [key for key, known in rows.items() if any(text.startswith(word) for text in known)]
            for field, rows in known_words.items()
        }
        images = images.filter(_any_of(_says(word), [(field, keys) for field, keys in described.items() if keys]))
    return images


def _words_of_rows(model: type[Model], fields: tuple[str, ...], words: list[str]) -> dict[int, list[str]]:
    """The words of the rows that may have one of the words."""
    may_have = reduce(or_, (Q(**{f"{field}__icontains": word}) for field in fields for word in words))
    rows = model._default_manager.filter(may_have).order_by().values_list("pk", *fields)
    return {pk: words_of(" ".join(texts)) for pk, *texts in rows}


def _says(word: str) -> Q:
    """Images whose own words are among others this one."""
    if connection.vendor == "postgresql":
        return Q(_OwnWordsHave(F("pk"), Value(f"'{word}'")))
    whole = rf"(?<![^\W_]){word}(?![^\W_])"
    return Q(original_filename__iregex=whole) | Q(attribution__iregex=whole)


def _any_of(said: Q, described: list[tuple[str, list[int]]]) -> Q:
    """Images that say a word, or are described by it: by rows of the fields, given by their keys."""
    conditions = [Q(**{f"{field}__in": keys}) for field, keys in described]
    if connection.vendor != "postgresql":
        return reduce(or_, conditions, said)
    if _expected_count(said) > OFTEN_SAID or sum(map(_expected_count, conditions)) > OFTEN_DESCRIBED:
        return reduce(or_, conditions, said)
    # Counted rather than asked whether there is one: for the first of many that it expects PostgreSQL reads the table.
    if Image.objects.filter(said).count():
        return ids_first(said, *conditions)
    match described:
        case []:
            return Q(pk__in=[])
        case [(field, [key])]:
            return Q(**{field: key})  # which has an index in the order of ids
        case _:
            return ids_first(*conditions)


def _expected_count(condition: Q) -> int:
    """How many images PostgreSQL expects to meet the condition; it knows which words are frequent."""
    plan = Image.objects.filter(condition).order_by().values("pk").explain(format="json")
    return json.loads(plan)[0]["Plan"]["Plan Rows"]


class _OwnWordsHave(Func):
    """Whether the column ``own_words`` meets a query: a column that only PostgreSQL has, and no model knows.

    Takes the image's key, which says under which name a query knows the table, and the query.
    """

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> tuple[str, Any]:
        key, query = self.get_source_expressions()
        column, _ = compiler.compile(key)
        wanted, parameters = compiler.compile(query)
        table = column.rpartition(".")[0]
        return f"({table}.\"own_words\" @@ to_tsquery('simple', {wanted}))", list(parameters)
