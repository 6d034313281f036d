"""One board: its table, filters, plots, snapshots, and who sees what."""

import gzip
import html
import re

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from imagedb.models import Visibility
from leaderboard.plots.svg import svg
from leaderboard.services.publication import publish, retract
from tests import factories
from tests.leaderboard import boards
from tests.leaderboard.page_tables import table_rows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept():
    cache.clear()


def address(board, name="board", *more):
    return reverse(name, args=[board.slug, *more])


def get(client, board, status=200, follow=False, **parameters):
    response = client.get(address(board), parameters, follow=follow)
    assert response.status_code == status
    return response.content.decode()


def heads(page):
    return re.findall(r'aria-label="What does (.*?) mean\?"', html.unescape(page))


@pytest.fixture
def resnet():
    return factories.target_model(name="ResNet-50", slug="resnet-50")


def entry(name, model, difference=4.0, **fields):
    attack = factories.attack(
        name=name, slug=name.lower(), family=fields.pop("family", "colour"), year=fields.pop("year", 2020)
    )
    return {"attack": attack, "target_model": model, "difference": difference, **fields}


def test_a_row_shows_the_stored_numbers(client, resnet):
    board = boards.board()
    row = entry("cAdv", resnet, 45.22, error=2.0, participants=1612, attack_success_rate=0.876, fools_unnoticed=0.5)
    boards.publish_entries(board, [{**row, "flags": ["few_raters", "boundary_fit"]}])
    assert table_rows(get(client, board)) == [
        [
            "1 1",
            "cAdv Colour",
            "ResNet-50",
            "+45.2 [41.8, 48.6]",
            "",
            "Perceptible",
            "88 % of 120 attempts",
            "50 % 44 % of attempts",
            "1,612",
            "Few raters Boundary fit",
        ]
    ]


def test_most_imperceptible_first_ties_share_and_unscored_last(client, resnet):
    board = boards.board()
    rows = [("E", None), ("D", 30.0), ("c", -20.0), ("B", 20.0), ("A", 0.0)]
    boards.publish_entries(board, [entry(name, resnet, difference) for name, difference in rows])
    shown = [(cells[0].split()[0], cells[1][0], cells[3].split()[0]) for cells in table_rows(get(client, board))]
    assert shown == [("1", "A", "0.0"), ("2", "B", "+20.0"), ("2", "c", "−20.0"), ("4", "D", "+30.0"), ("–", "E", "–")]


def test_stored_values_decide_not_displayed_ones(client, resnet):
    board = boards.board()
    boards.publish_entries(board, [entry("A", resnet, 20.04), entry("B", resnet, 20.01)])
    shown = [(cells[0].split()[0], cells[1][0], cells[3].split()[0]) for cells in table_rows(get(client, board))]
    assert shown == [("1", "B", "+20.0"), ("2", "A", "+20.0")]


def test_a_five_point_board_names_its_scale_and_rounds_to_it(client, resnet):
    board = boards.board(scale_minimum=-2, scale_maximum=2)
    boards.publish_entries(board, [entry("A", resnet, 1.986, error=0.1)])
    page = get(client, board)
    assert "Scale from −2 (certainly unmodified) to 2 (certainly modified)" in re.sub(r"\s+", " ", page)
    assert "±0.2 points" in page
    assert table_rows(page)[0][3] == "+1.99 [1.82, 2.16]"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"target_model": "vit"}, ["C"]),
        ({"family": "texture"}, ["B"]),
        ({"verdict": "perceptible"}, ["C"]),
        ({"year": "2024"}, ["B"]),
        ({"min_raters": "31"}, ["C"]),
        ({"family": "texture", "min_raters": "31"}, []),
        ({"sort": "-difference"}, ["C", "B", "A", "D"]),
        ({"sort": "attack"}, ["A", "B", "C", "D"]),
        ({"sort": "-attack"}, ["D", "C", "B", "A"]),
        ({"sort": "difference"}, ["A", "B", "C", "D"]),
    ],
)
def test_filters_and_order(client, resnet, query, names):
    board = boards.board()
    vit = factories.target_model(name="ViT", slug="vit")
    rows = [
        entry("A", resnet, 1.0),
        entry("B", resnet, 8.0, family="texture", year=2024),
        entry("C", vit, 50.0, participants=31),
        entry("D", resnet, None),
    ]
    boards.publish_entries(board, rows)
    ranks = {"A": "1", "B": "2", "C": "3", "D": "–"}
    shown = table_rows(get(client, board, **query))
    assert [cells[1][0] for cells in shown] == names
    assert [cells[0].split()[0] for cells in shown] == [ranks[name] for name in names]


def test_columns_can_be_chosen_and_stay_in_the_order_of_the_board(client):
    board = boards.published(1).board
    page = get(client, board, columns=["auc", "difference"], follow=True)
    assert heads(page) == ["Rank", "Attack", "Target model", "Difference", "AUC"]
    for key in ("rank", "flags", "auc", "year"):
        assert f'id="column-{key}"' in page


def test_what_a_form_sends_becomes_the_one_spelling_of_the_address(client):
    board = boards.published(1).board
    assert '<input type="hidden" name="columns" value="rank">' in get(client, board)
    bare = get(client, board, columns=["rank"], follow=True)
    assert [len(cells) for cells in table_rows(bare)] == [3] * len(table_rows(bare))
    form = {"target_model": "", "family": "", "verdict": "perceptible", "year": "", "min_raters": "", "columns": "auc"}
    response = client.get(address(board), form)
    assert response.status_code == 302
    assert response["Location"] == (
        f"{address(board)}?verdict=perceptible&columns=rank&columns=attack&columns=target_model&columns=auc"
    )
    assert client.get(response["Location"]).status_code == 200


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"atack": "x"}, "atack"),
        ({"verdict": "maybe"}, "maybe"),
        ({"year": "soon"}, "soon"),
        ({"year": "9" * 5000}, "year"),
        ({"min_raters": "-1"}, "-1"),
        ({"sort": "colour"}, "colour"),
        ({"columns": "all"}, "all"),
        ({"target_model": "unknown"}, "target_model"),
        ({"target_model": "\x00"}, "target_model"),
        ({"year": ["2020", "2021"]}, "more than once"),
    ],
)
@pytest.mark.parametrize("name", ["board", "csv", "plot"])
def test_what_makes_no_sense_is_refused_by_name(client, query, word, name):
    board = boards.published(1).board
    target = {
        "board": address(board),
        "csv": address(board, "board-table-file", "csv"),
        "plot": address(board, "board-plot-file", "intervals", "svg"),
    }[name]
    response = client.get(target, query)
    assert response.status_code == 400
    assert word in response.content.decode()


def test_names_are_text_never_markup(client, resnet):
    board = boards.board(name="<b>Board</b>", description="<i>")
    attack = factories.attack(name="<script>alert(1)</script>")
    model = factories.target_model(name='"><img src=x>')
    boards.publish_entries(board, [{"attack": attack, "target_model": model, "attack_success_rate": 0.5}])
    for place in (address(board), reverse("leaderboard"), address(board, "board-plot", "heat-map")):
        page = client.get(place, follow=True).content.decode()
        for markup in ("<script>alert", "<img src=x", "<b>Board", "<i>"):
            assert markup not in page
        assert "&lt;script&gt;alert(1)" in page


def test_an_old_snapshot_stays_as_it_was_and_says_so(client, resnet):
    board = boards.board()
    boards.publish_entries(board, [entry("A", resnet, 1.0)])
    boards.publish_entries(board, [entry("B", resnet, 2.0)])
    old, new = get(client, board, snapshot=1), get(client, board)
    assert [table_rows(page)[0][1] for page in (old, new)] == ["A Colour", "B Colour"]
    assert "The newest is 2" in old
    assert "The newest is" not in new
    assert "snapshot=1" in re.search(r'<a href="([^"]*)" download>CSV', old).group(1)


def test_a_retracted_snapshot_gives_way_and_says_why(client, django_user_model, resnet):
    board = boards.board()
    boards.publish_entries(board, [entry("A", resnet, 1.0)])
    second = boards.publish_entries(board, [entry("B", resnet, 2.0)])
    assert table_rows(get(client, board))[0][1] == "B Colour"
    retract(second, by=django_user_model.objects.create_user("curator"), reason="Wrong images.")
    assert table_rows(get(client, board))[0][1] == "A Colour"
    assert "Snapshot 2 was retracted" in get(client, board, snapshot=2)
    assert "Wrong images." in get(client, board, snapshot=2)


def test_drafts_and_boards_that_are_not_public_are_not_there(client):
    hidden = boards.published(1, is_public=False).board
    draft = boards.board(name="Waiting")
    boards.add_entry(boards.draft_of(draft))
    assert client.get(address(hidden)).status_code == 404
    assert "Nothing is published yet" not in get(client, draft)
    assert table_rows(get(client, draft)) == []
    for name, more in (("board-table-file", ["csv"]), ("board-plot", ["intervals"]), ("board-inputs", [1])):
        assert client.get(address(hidden, name, *more)).status_code == 404
        assert client.get(address(draft, name, *more)).status_code == 404
    assert client.get(address(draft), {"snapshot": 1}).status_code == 404


def hide(row):
    """All images of a pair become private."""
    image = factories.modified_image(attack=row["attack"], target_model=row["target_model"])
    type(image).objects.filter(pk=image.pk).update(visibility=Visibility.PRIVATE)


def test_a_private_pair_shows_nowhere_and_leaves_no_gap(client, resnet):
    board = boards.board()
    rows = [entry("First", resnet, 1.0), entry("Covert", resnet, 2.0), entry("Third", resnet, 30.0)]
    boards.publish_entries(board, rows)
    assert len(table_rows(get(client, board))) == 3
    hide(rows[1])
    page = get(client, board)
    assert [(cells[0].split()[0], cells[1].split()[0]) for cells in table_rows(page)] == [
        ("1", "First"),
        ("2", "Third"),
    ]
    hidden = reverse("entry", args=[board.slug, "covert", "resnet-50"])
    assert client.get(hidden).status_code == 404
    for place in ("badge.svg", "plots/distributions.svg"):
        assert client.get(hidden + place).status_code == 404
    places = [
        address(board),
        reverse("leaderboard"),
        *(address(board, "board-plot", name) for name in ("intervals", "heat-map", "scatter")),
        *(address(board, "board-plot-file", name, "svg") for name in ("intervals", "heat-map", "scatter")),
        *(address(board, "board-table-file", kind) for kind in ("csv", "json", "tex")),
        address(board, "board-snapshots") + "?older=1&newer=1",
        reverse("leaderboard-entry-list"),
        reverse("leaderboard-entry-list") + "?snapshot=1",
        reverse("board-feed"),
    ]
    for place in places:
        response = client.get(place, follow=True)
        assert response.status_code == 200, place
        assert "covert" not in response.content.decode().lower(), place
    ranks = [row["rank"] for row in client.get(reverse("leaderboard-entry-list")).json()["results"]]
    assert ranks == [1, 2]


def test_only_a_publication_makes_a_page_anew(client, resnet):
    board = boards.board()
    boards.publish_entries(board, [entry("A", resnet, 1.0)])
    first = get(client, board)
    draft = boards.draft_of(board)
    boards.add_entry(draft, **entry("B", resnet, 2.0))
    type(board).objects.filter(pk=board.pk).update(description="Changed after publication.")
    again = get(client, board)
    assert "Changed after publication." not in again.split("<main")[1]
    assert table_rows(again) == table_rows(first)
    publish(board)
    assert len(table_rows(get(client, board))) == 2
    assert "Changed after publication." in get(client, board).split("<main")[1]


def test_a_page_that_is_kept_costs_the_same_few_queries(client):
    board = boards.published(3).board
    counts = []
    for _ in range(2):
        boards.published(30, of=board)
        for _ in range(2):
            with CaptureQueriesContext(connection) as queries:
                get(client, board)
            counts.append(len(queries))
    assert counts == [counts[0]] * 4
    assert counts[0] <= 5


def test_without_a_cache_pages_are_made_all_the_same(client, monkeypatch):
    board = boards.published(2).board

    def away(*arguments, **options):
        raise ConnectionError

    monkeypatch.setattr("leaderboard.kept.cache.get", away)
    assert len(table_rows(get(client, board))) == 2


@pytest.mark.parametrize("name", ["intervals", "heat-map", "scatter"])
def test_every_plot_has_its_page_table_and_files(client, name):
    board = boards.published(4).board
    page = client.get(address(board, "board-plot", name)).content.decode()
    assert '<svg class="plot"' in page
    assert "The same as a table" in page
    assert "<table" in page
    svg = client.get(address(board, "board-plot-file", name, "svg"))
    assert svg["Content-Type"].startswith("image/svg+xml")
    assert svg["Content-Disposition"] == f'inline; filename="{board.slug}-snapshot-1-{name}.svg"'
    png = client.get(address(board, "board-plot-file", name, "png"))
    assert png.content.startswith(b"\x89PNG")


def test_plots_show_what_is_filtered(client, resnet):
    board = boards.board()
    rows = [entry("Recolour", resnet, 1.0), entry("Texturise", resnet, 50.0, family="texture")]
    boards.publish_entries(board, rows)
    content = client.get(address(board, "board-plot-file", "intervals", "svg"), {"family": "texture"}).content.decode()
    assert "Texturise" in content
    assert "Recolour" not in content


def test_plots_and_tables_that_do_not_exist_are_not_found(client):
    board = boards.published(1).board
    for name, more in (("board-plot", ["pie"]), ("board-plot-file", ["pie", "svg"]), ("board-table-file", ["xls"])):
        assert client.get(address(board, name, *more)).status_code == 404


def test_a_shared_link_has_a_title_and_a_picture(client):
    board = boards.published(2, name="Slider").board
    page = get(client, board)
    assert '<meta property="og:title" content="Slider">' in page
    assert f'/leaderboard/{board.slug}/plots/intervals.png?snapshot=1">' in page


def test_a_rate_of_success_that_nobody_knows_is_said_to_be_unknown(client, resnet):
    """The catalogue takes successes alone; a rate of 100 % would be made of what was left out."""
    board = boards.board()
    unknown = {"attack_success_rate": None, "images_unverified": 20}
    boards.publish_entries(board, [entry("A", resnet, 1.0, **unknown)])
    page = get(client, board)
    assert table_rows(page)[0][6] == "not known 100 of 120 images fool it"
    assert 'id="plot-heat-map"' in page
    assert 'id="plot-scatter"' not in page, "a plot without a point"
    assert client.get(address(board, "board-plot", "scatter")).status_code == 200
    stated = {"attack_success_rate": 0.93, "images_unverified": 120}
    boards.publish_entries(board, [entry("B", resnet, 1.0, **unknown), entry("C", resnet, 2.0, **stated)])
    page = get(client, board)
    assert table_rows(page)[1][6] == "93 % as stated with the ratings"
    assert 'id="plot-scatter"' in page


def test_a_png_is_lettered_with_slugs_where_its_font_lacks_the_letters(client, monkeypatch, resnet):
    """In the SVG, which the reader's own fonts write, names stay what they are."""
    board = boards.board()
    foreign = factories.attack(name="色彩攻撃", slug="colour-attack")
    boards.publish_entries(board, [{"attack": foreign, "target_model": resnet}, entry("Атака", resnet, 8.0)])
    written = []
    monkeypatch.setattr("leaderboard.views.board_files.png", lambda drawing: written.append(svg(drawing)) or b"")
    for name in ("intervals", "heat-map", "scatter"):
        assert client.get(address(board, "board-plot-file", name, "png")).status_code == 200
        assert "colour-attack" in written[-1]
        assert "色" not in written[-1]
        assert "Атака" in written[-1]
        picture = client.get(address(board, "board-plot-file", name, "svg")).content.decode()
        assert "色彩攻撃" in picture


def test_what_is_long_is_compressed_where_the_visitor_takes_it(client):
    board = boards.published(30).board
    place = address(board)
    plain = client.get(place).content
    packed = client.get(place, headers={"accept-encoding": "gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain
    assert len(packed.content) < len(plain) / 4
    for name, more in (("board-table-file", ["csv"]), ("board-plot", ["intervals"])):
        response = client.get(address(board, name, *more), headers={"accept-encoding": "gzip"})
        assert response["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("alpha", "level", "decides"),
    [
        (0.05, "Below 0.05 the verdict is imperceptible", "Wholly inside the band: imperceptible"),
        (0.01, "Below 0.01 the verdict is imperceptible", "not the drawn interval decides but that of 98 %"),
    ],
)
def test_the_legend_says_which_interval_decides_at_the_board_s_level(client, alpha, level, decides):
    board = boards.published(1, alpha=alpha).board
    page = get(client, board)
    assert level in page
    assert page.count(decides) == 2  # of the column and of the plot
    assert decides in client.get(address(board, "board-plot", "intervals")).content.decode()
