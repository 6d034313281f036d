"""Downloads of a board: tables, plots, and the ratings that its numbers follow from."""

from collections.abc import Iterator

from django.db.models.fields.files import FieldFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from leaderboard import selectors
from leaderboard.board_plots import BOARD_PLOTS, drawable
from leaderboard.exports import FORMATS
from leaderboard.inputs import header
from leaderboard.kept import kept
from leaderboard.plots.drawing import Drawing
from leaderboard.plots.png import png
from leaderboard.plots.svg import svg
from leaderboard.views.asked import public_board, read_asked, refuses_unclear_queries, snapshot_of


@require_safe
@refuses_unclear_queries
def board_table_file(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    """The entries of the page with the same query string, as CSV, JSON or LaTeX."""
    if kind not in FORMATS:
        raise Http404("There is no such format.")
    content_type, write = FORMATS[kind]
    asked = read_asked(public_board(slug), request)
    text = write(asked.snapshot, asked.entries, asked.query, request.build_absolute_uri)
    return as_file(text.encode(), f"{content_type}; charset=utf-8", f"{slug}-snapshot-{asked.snapshot.number}.{kind}")


@require_safe
@refuses_unclear_queries
def board_plot_file(request: HttpRequest, slug: str, name: str, kind: str) -> HttpResponse:
    """A plot of the entries of the page with the same query string, as SVG or PNG."""
    plot = BOARD_PLOTS.get(name)
    if plot is None:
        raise Http404("There is no such plot.")
    asked = read_asked(public_board(slug), request)
    entries = asked.entries if kind == "svg" else [drawable(entry) for entry in asked.entries]
    content = kept(
        asked.snapshot,
        asked.visible,
        name,
        kind,
        asked.query.encoded(),
        is_common=asked.query.is_common,
        compute=lambda: picture(plot.draw(asked.snapshot, entries), kind),
    )
    return plot_response(content, kind, f"{slug}-snapshot-{asked.snapshot.number}-{name}")


def picture(drawing: Drawing, kind: str) -> bytes:
    """The drawing as a file of this kind, svg or png."""
    return svg(drawing).encode() if kind == "svg" else png(drawing)


def plot_response(content: bytes, kind: str, name: str) -> HttpResponse:
    """A plot that a browser shows, and saves under a name that says what it is."""
    return as_file(content, "image/svg+xml; charset=utf-8" if kind == "svg" else "image/png", f"{name}.{kind}")


def as_file(content: bytes, content_type: str, name: str) -> HttpResponse:
    """A response with a file's name; browsers show what they can show."""
    return HttpResponse(
        content, content_type=content_type, headers={"Content-Disposition": f'inline; filename="{name}"'}
    )


@require_safe
def board_inputs(request: HttpRequest, slug: str, number: int) -> HttpResponseBase:
    """All ratings that a snapshot follows from: with them anybody can compute its numbers again."""
    snapshot = snapshot_of(public_board(slug), number)
    response = StreamingHttpResponse(_inputs(selectors.input_files(snapshot)), content_type="application/gzip")
    response["Content-Disposition"] = f'attachment; filename="{slug}-snapshot-{number}-inputs.csv.gz"'
    return response


def _inputs(files: list[FieldFile]) -> Iterator[bytes]:
    """Members of gzip in a row are again a gzip file."""
    yield header()
    for stored in files:
        with stored.open("rb") as file:
            yield from file.chunks()
