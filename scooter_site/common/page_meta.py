"""What a page tells search engines and those who share a link to it."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.text import Truncator

DESCRIPTION_LENGTH = 160


@dataclass(frozen=True)
class PageMeta:
    """``title`` without the site's name, ``address`` is the one to cite, ``image`` one that anybody may see."""

    title: str
    description: str
    address: str
    image: str = ""
    image_description: str = ""


def page_meta(
    request: HttpRequest,
    title: str,
    description: str,
    *,
    query: str = "",
    image: str = "",
    image_description: str = "",
) -> dict[str, Any]:
    """The context that templates/partials/meta.html shows; addresses become whole ones.

    ``query`` is the part of the page's query string that makes it another page. ``image`` is the address of a public
    image: these lines are read by programs that show them to everybody.
    """
    address = request.build_absolute_uri(request.path)
    return {
        "meta": PageMeta(
            title=title,
            description=Truncator(" ".join(description.split())).chars(DESCRIPTION_LENGTH),
            address=f"{address}?{query}" if query else address,
            image=request.build_absolute_uri(image) if image else "",
            image_description=image_description,
        )
    }
