"""Full-text search of images.

A word of a question finds words that begin with it, in any letter case; words are runs of letters and digits, so that
``ILSVRC2012_val_00000293.JPEG`` is four. All words of a question must be found, each anywhere: "tabby resnet" finds
images of the class tabby that were made against a ResNet.

Attacks, target models and classes are few: they are looked through here, and the images asked for by their ids, which
have indexes. What images say themselves (file name, attribution) is found by PostgreSQL's full-text index, and on
SQLite, which is for small catalogues, by looking at every row.
"""

import re
from typing import Any

from django.db import connection
from django.db.models import BooleanField, F, Func, Model, Q, QuerySet, Value

from imagedb.models import Attack, Image, ImageClass, TargetModel

WORD = re.compile(r"[^\W_]+")
# Up to so many images that name a word themselves are asked for by their ids.
FEW = 1000

DESCRIBED_BY: dict[type[Model], tuple[str, ...]] = {
    ImageClass: ("synset", "name", "synonyms"),
    Attack: ("name", "slug", "description", "paper_title"),
    TargetModel: ("name", "slug"),
}


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters, each once."""
    return list(dict.fromkeys(WORD.findall(text.lower())))


def search_images(images: QuerySet[Image], question: str) -> QuerySet[Image]:
    """Those of the images in which all words of the question are found; none if it has no words."""
    words = words_of(question)
    if not words:
        return images.none()
    described = {model: _words_of_rows(model, fields) for model, fields in DESCRIBED_BY.items()}
    for word in words:
        images = images.filter(
            _one_of("image_class", _beginning(word, described[ImageClass]))
            | _one_of("attack", _beginning(word, described[Attack]))
            | _one_of("target_model", _beginning(word, described[TargetModel]))
            | _says_itself(word)
        )
    return images


def _words_of_rows(model: type[Model], fields: tuple[str, ...]) -> dict[int, set[str]]:
    rows = model._default_manager.order_by().values_list("pk", *fields)
    return {pk: set(words_of(" ".join(texts))) for pk, *texts in rows}


def _beginning(word: str, rows: dict[int, set[str]]) -> list[int]:
    return [pk for pk, words in rows.items() if any(known.startswith(word) for known in words)]


def _one_of(field: str, keys: list[int]) -> Q:
    match keys:
        case []:
            return Q(pk__in=[])
        case [key]:
            return Q(**{field: key})  # equality, so that an index in the order of ids serves
        case _:
            return Q(**{f"{field}__in": keys})


def _says_itself(word: str) -> Q:
    """Images whose own words begin with it, by their ids if they are few: then the planner need not guess."""
    if connection.vendor == "postgresql":
        condition = Q(_OwnWordsMatch(F("pk"), Value(f"'{word}':*")))
    else:
        begins = rf"(?<![^\W_]){word}"
        condition = Q(original_filename__iregex=begins) | Q(attribution__iregex=begins)
    keys = list(Image.objects.filter(condition).order_by().values_list("pk", flat=True)[: FEW + 1])
    return Q(pk__in=keys) if len(keys) <= FEW else condition


class _OwnWordsMatch(Func):
    """Whether the column ``own_words`` meets a query: a column that only PostgreSQL has, and no model knows.

    Takes the image's key, which says under which name a query knows the table, and the question.
    """

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:
        key, question = self.get_source_expressions()
        column, _ = compiler.compile(key)
        query, parameters = compiler.compile(question)
        return f"({column.rpartition('.')[0]}.\"own_words\" @@ to_tsquery('simple', {query}))", list(parameters)
