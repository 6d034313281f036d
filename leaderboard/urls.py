"""The public pages: home, leaderboard, and what is known of attacks and target models."""

from django.urls import path, register_converter
from django.views.decorators.gzip import gzip_page as compressed

from leaderboard import views
from leaderboard.feeds import SnapshotFeed


class PlotKind:
    """The formats that a plot can be had in."""

    regex = "svg|png"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(PlotKind, "plot_kind")

BOARD = "leaderboard/<slug:slug>/"
ENTRY = f"{BOARD}<slug:attack>/<slug:target_model>/"

# Compressed: what has tables of hundreds of rows, which shrink to a tenth; so a site needs no proxy for it. Django pads
# what it compresses and masks its tokens anew each time, so that lengths betray nothing.
urlpatterns = [
    path("", views.home, name="home"),
    path("leaderboard/", compressed(views.leaderboard), name="leaderboard"),
    path("leaderboard/feed.atom", SnapshotFeed(), name="board-feed"),
    path(BOARD, compressed(views.board), name="board"),
    path(f"{BOARD}snapshots/", views.snapshots, name="board-snapshots"),
    path(f"{BOARD}snapshots/<int:number>/inputs.csv.gz", views.board_inputs, name="board-inputs"),
    path(f"{BOARD}table.<slug:kind>", compressed(views.board_table_file), name="board-table-file"),
    path(f"{BOARD}plots/<slug:name>.<plot_kind:kind>", views.board_plot_file, name="board-plot-file"),
    path(f"{BOARD}<slug:name>/", compressed(views.board_plot), name="board-plot"),
    path(ENTRY, compressed(views.entry), name="entry"),
    path(f"{ENTRY}badge.svg", views.entry_badge, name="entry-badge"),
    path(f"{ENTRY}plots/<slug:name>.<plot_kind:kind>", views.entry_plot_file, name="entry-plot-file"),
    path("attacks/", views.attacks, name="attacks"),
    path("attacks/<slug:slug>/", views.attack, name="attack"),
    path("target-models/", views.target_models, name="target-models"),
    path("target-models/<slug:slug>/", views.target_model, name="target-model"),
]
