"""The gallery: the images that a visitor may see, filtered as in the API, a page at a time. The address says it all."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_safe
from rest_framework.exceptions import ValidationError

from imagedb.downloads import downloads
from imagedb.filters import ImageFilter
from imagedb.models import Image
from imagedb.selectors import visible_images
from imagedb.selectors.figures import extent
from imagedb.selectors.visibility import images_after_terms
from imagedb.views import filter_form
from imagedb.views.paging import image_page
from scooter_site.common.page_meta import page_meta

PAGE_SIZE = 48  # fills rows of 2, 3, 4, 6 and 8
CURSORS = ("after", "before")


@require_safe
def gallery(request: HttpRequest) -> HttpResponse:
    """Images as a grid. Parameters that make no sense are named, never ignored: status 400."""
    given = request.GET
    if not all(value.strip() for _, value in filter_form.pairs(given)):
        # A form sends its empty fields, too; the address that people pass on is the short one.
        wanted = [pair for pair in filter_form.pairs(given) if pair[1].strip()]
        return HttpResponseRedirect(filter_form.address(request.path, wanted))
    images, problems = _filtered(request, visible_images(request.user))
    cursors: dict[str, Image] = {}
    for name in CURSORS:
        if name in given and not any(problem.name == name for problem in problems):
            place = _place(request, given[name])
            if place is None:
                message = "That place in the list is not there (any more)."
                problems.append(filter_form.problem(request.path, given, name, message))
            else:
                cursors[name] = place
    fields = filter_form.fields(request.user, given)
    chips = filter_form.chips(request.path, given, fields, CURSORS)
    wanted = [pair for pair in filter_form.pairs(given) if pair[0] not in CURSORS]
    title = ", ".join(["Images", *(chip.value for chip in chips)])
    context: dict[str, Any] = {
        "page": "gallery",
        "fields": fields,
        "chips": chips,
        # Filters that the form has no field for stay in force when it is sent again.
        "kept": [pair for pair in wanted if pair[0] not in {field.name for field in fields}],
        "problems": problems,
        **page_meta(
            request,
            title,
            "Clean images and adversarial examples, to look through, filter and download.",
            query=filter_form.address("", wanted).removeprefix("?"),
        ),
    }
    if problems:
        return render(request, "imagedb/gallery.html", context, status=400)
    shown = image_page(images.select_related("image_class", "attack", "target_model"), PAGE_SIZE, **cursors)
    after_terms, _ = _filtered(request, images_after_terms(request.user))
    context |= {
        "images": shown.images,
        "previous": _turn(request, wanted, "before", shown.before),
        "next": _turn(request, wanted, "after", shown.after),
        "extent": extent(images),
        "after_terms": extent(after_terms),
        "downloads": downloads(dict(wanted)),
    }
    return render(request, "imagedb/gallery.html", context)


def _filtered(request: HttpRequest, images: QuerySet[Image]) -> tuple[QuerySet[Image], list[filter_form.Problem]]:
    """Those of the images that fit the address, and what does not make sense in it; then no image fits."""
    filters = ImageFilter(request.GET, images, request=request)
    problems = filter_form.problems(request.path, request.GET, filters, CURSORS)
    if problems:
        return images.none(), problems
    try:
        return filters.qs, []
    except ValidationError as error:
        # What only several parameters together, or a look into the database, can tell.
        messages = error.detail.items() if isinstance(error.detail, dict) else []
        return images.none(), [
            filter_form.problem(request.path, request.GET, name, " ".join(map(str, texts))) for name, texts in messages
        ]


def _place(request: HttpRequest, given: str) -> Image | None:
    try:
        return visible_images(request.user).filter(public_id=UUID(given)).first()
    except ValueError:
        return None


def _turn(request: HttpRequest, wanted: list[tuple[str, str]], name: str, cursor: UUID | None) -> str:
    return filter_form.address(request.path, [*wanted, (name, str(cursor))]) if cursor else ""
