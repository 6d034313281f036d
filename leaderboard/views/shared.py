"""What the pages of attacks and of target models have in common."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from imagedb.downloads import downloads
from imagedb.measures import MEASURES
from imagedb.models import Image, Visibility
from imagedb.selectors.evaluations import public_evaluations
from imagedb.selectors.examples import Example, Pair, examples_of, figures_of
from imagedb.selectors.figures import extent
from imagedb.selectors.visibility import images_after_terms
from leaderboard.board_query import BoardQuery
from leaderboard.board_table import Table, by_snapshot, make_table
from leaderboard.formatting import format_percent
from leaderboard.selectors.rows import Row

EXAMPLE_COUNT = 7  # a large one and two rows of three


def catalogue_context(
    request: HttpRequest, visible: QuerySet[Image], pairs: list[Pair], entries: list[Row], **of: Any
) -> dict[str, Any]:
    """Examples, distances, results, stated success rates and downloads of an attack or of a target model.

    ``visible`` are the images that the visitor may see, ``entries`` the published results of all boards; ``of`` is
    ``attack=`` or ``target_model=`` with its row, as filters of images and of the API call it.
    """
    parameters = {name: row.slug for name, row in of.items()}
    return {
        "examples": examples_of(visible, pairs, EXAMPLE_COUNT),
        "figures": figures_of(visible, pairs),
        "measures": MEASURES,
        "tables": _tables(entries),
        "evaluations": [
            (evaluation, format_percent(evaluation.images_fooling / evaluation.images_attacked))
            for evaluation in public_evaluations().filter(**of).select_related("attack", "target_model")
        ],
        "extent": extent(visible.filter(**of)),
        "after_terms": extent(images_after_terms(request.user).filter(**of)),
        "downloads": downloads(parameters),
        "gallery_url": f"{reverse('imagedb:gallery')}?{urlencode(parameters)}",
    }


def _tables(entries: Iterable[Row]) -> list[Table]:
    """One table per board, in the order of the boards."""
    return [make_table(snapshot, of_board, BoardQuery()) for snapshot, of_board in by_snapshot(entries)]


def public_image(examples: Iterable[Example]) -> dict[str, str]:
    """The first example that anybody may see, as ``page_meta`` takes it."""
    for example in examples:
        image = example.modified
        if image.visibility == Visibility.PUBLIC:
            return {
                "image": reverse("imagedb:image-file", args=[image.public_id]),
                "image_description": f"A modified image of the class {image.image_class.name}",
            }
    return {}
