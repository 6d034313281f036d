"""One entry: what its page tells, its plots and its badge."""

import html
import re

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from imagedb.models import Visibility
from leaderboard.board_plots import binned
from leaderboard.board_table import entry_address
from leaderboard.models import ExternalResult
from leaderboard.results import code_version
from leaderboard.services.external import withdraw_external_result
from tests import factories
from tests.leaderboard import boards

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept():
    cache.clear()


@pytest.fixture
def board():
    return boards.board(name="Slider", slug="slider")


@pytest.fixture
def pair():
    return {
        "attack": factories.attack(name="cAdv", slug="cadv", family="colour", year=2020),
        "target_model": factories.target_model(name="ResNet-50", slug="resnet-50"),
    }


def address(board, pair, name="entry", *more):
    return reverse(name, args=[board.slug, pair["attack"].slug, pair["target_model"].slug, *more])


def text_of(page):
    page = re.sub(r"<(script|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


def get(client, board, pair, **parameters):
    response = client.get(address(board, pair), parameters)
    assert response.status_code == 200
    return response.content.decode()


def test_a_page_tells_the_result_in_words_and_numbers(client, board, pair):
    boards.publish_entries(board, [{**pair, "difference": 4.0, "flags": ["few_raters"]}])
    text = text_of(get(client, board, pair))
    for words in (
        "cAdv on ResNet-50",
        "Imperceptible +4.0 90 % interval [0.6, 7.4]",
        "the mean difference is shown to be smaller than ±10 points",
        "Rank 1 of 1",
        "30 participants, 3,000 ratings of 120 modified and 130 clean images",
        "Few raters",
        "Participants’ means",
        "Order of answers",
        "55 % [50 %, 60 %] p 0.060",
        "All images 0.20 0.80 0.20 0.70",
        "Corrupted 98 % 88 of 90",
        "Attention failed 2",
        "two one-sided t tests at the level 0.05 reject both bounds of ±10 points",
        "Degrees of freedom 29.0 Satterthwaite",
        f"program {code_version()}.",
    ):
        assert words in text, words


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (50.0, "People notice"),
        (-50.0, "The modified images look more genuine than the clean ones"),
        (9.0, "This is no evidence of being imperceptible"),
        (None, "The ratings do not determine a difference"),
    ],
)
def test_every_verdict_is_put_into_words(client, board, pair, difference, words):
    boards.publish_entries(board, [{**pair, "difference": difference}])
    assert words in text_of(get(client, board, pair))


def test_an_entry_is_cited_with_its_snapshot(client, board, pair):
    snapshot = boards.publish_entries(board, [pair])
    page = html.unescape(get(client, board, pair))
    assert "@misc{scooter-slider-1-cadv-resnet-50," in page
    assert "url    = {http://testserver/leaderboard/slider/cadv/resnet-50/?snapshot=1}" in page
    assert f"snapshot 1 of {snapshot.published_at:%Y-%m-%d}, input digest {snapshot.input_digest[:16]}" in page
    assert "http://testserver/leaderboard/slider/cadv/resnet-50/badge.svg" in page


def test_versions_are_listed_and_lead_to_one_another(client, board, pair):
    boards.publish_entries(board, [{**pair, "difference": 4.0}])
    boards.publish_entries(board, [{**pair, "difference": -60.0}])
    page = get(client, board, pair)
    versions = text_of(page[page.index('id="versions"') :])
    assert re.search(
        r"Snapshot 2 .* Perceptible −60.0 \[−63.4, −56.6\] 30 .*Snapshot 1 .* \+4.0 \[0.6, 7.4\]", versions
    )
    assert "Perceptible −60.0" in text_of(page)
    old = get(client, board, pair, snapshot=1)
    assert "Imperceptible +4.0" in text_of(old)
    assert "The newest is 2" in old


def test_a_version_that_was_withdrawn_is_not_listed(client, board, pair):
    external = ExternalResult.objects.create(
        board=board, **pair, file_sha256="0" * 64, file_bytes=1, secret="s", citation="Someone, 2024.", file="x"
    )
    boards.publish_entries(board, [{**pair, "difference": -60.0, "external_result": external, "flags": ["external"]}])
    boards.publish_entries(board, [{**pair, "difference": 4.0}])
    assert "−60.0" in text_of(get(client, board, pair))
    withdraw_external_result(external, reason="The file was another one.")
    page = text_of(get(client, board, pair))
    assert ("−60.0" in page, "Snapshot 2" in page) == (False, True)


def details_of_images(images):
    details = boards.details()
    details["images"]["modified"]["images"] = [
        {"image": name, "source": "", "misleads": True, "ratings": 12, "mean": 10.0 * place, "standard_error": 5.0}
        for place, name in enumerate(images)
    ]
    return details


def test_images_are_shown_from_both_ends_as_far_as_the_visitor_may_see_them(client, board, pair):
    images = [factories.modified_image(**pair) for _ in range(16)]
    private = images[0]
    type(private).objects.filter(pk=private.pk).update(visibility=Visibility.PRIVATE)
    names = [str(image.public_id) for image in images]
    boards.publish_entries(board, [{**pair, "details": details_of_images([*names[:8], "foreign", *names[8:]])}])
    page = get(client, board, pair)
    start, middle = page.index("Most convincing"), page.index("Least convincing")
    end = page.index('id="people"')

    def shown(part):
        return re.findall(r'class="picture" href="/catalogue/images/([0-9a-f-]+)/"', part)

    assert shown(page[start:middle]) == names[1:7]
    assert shown(page[middle:end]) == names[:-7:-1]
    assert f"<strong>{10 * 16}.0</strong> ± 9.8" in page[middle:end]


def test_what_gave_itself_away_never_passes_as_convincing(client, board, pair):
    names = [str(factories.modified_image(**pair).public_id) for _ in range(3)]
    hidden = [f"foreign {number}" for number in range(3)]
    boards.publish_entries(board, [{**pair, "details": details_of_images([*hidden, *names])}])
    page = get(client, board, pair)
    assert ("Most convincing" in page, "Least convincing" in page) == (False, True)
    assert all(name in page for name in names)
    assert "None of these images can be shown" not in page


def test_an_external_result_is_marked_with_its_citation(client, board, pair):
    external = ExternalResult.objects.create(
        board=board, **pair, file_sha256="0" * 64, file_bytes=1, secret="s", citation="Someone, 2024.", file="x"
    )
    boards.publish_entries(board, [{**pair, "external_result": external, "flags": ["external"]}])
    text = text_of(get(client, board, pair))
    assert "External result. These ratings were collected elsewhere: Someone, 2024." in text
    assert "participants checked, the cited work says; only the analysis was made here." in text
    assert "in random order" not in text


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({}, ("level 0.05", "as perceptible if its 90 % interval", "this site’s default for every board")),
        (
            {"alpha": 0.01, "equivalence_bound": 12},
            ("level 0.01", "as perceptible if its 98 % interval", "The bounds were chosen for this board."),
        ),
    ],
)
def test_the_method_is_that_of_the_snapshot_s_rules(client, pair, rules, words):
    board = boards.board(**rules)
    boards.publish_entries(board, [pair])
    type(board).objects.update(alpha=0.2, equivalence_bound=50)
    text = text_of(get(client, board, pair))
    assert [phrase for phrase in words if phrase not in text] == []
    assert "before ratings were seen" not in text


def test_queries_do_not_grow_with_images_or_rows(client, board, pair):
    counts = []
    for number in (3, 30):
        names = [str(factories.modified_image(**pair).public_id) for _ in range(number)]
        others = [{"difference": 5.0 + place} for place in range(number)]
        boards.publish_entries(board, [{**pair, "details": details_of_images(names)}, *others])
        with CaptureQueriesContext(connection) as queries:
            get(client, board, pair)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 11


@pytest.mark.parametrize("name", ["distributions", "image-effects", "participants"])
def test_plots_are_files(client, board, pair, name):
    boards.publish_entries(board, [pair])
    svg = client.get(address(board, pair, "entry-plot-file", name, "svg"))
    assert svg["Content-Disposition"] == f'inline; filename="cadv-resnet-50-snapshot-1-{name}.svg"'
    png = client.get(address(board, pair, "entry-plot-file", name, "png"), {"snapshot": 1})
    assert png.content.startswith(b"\x89PNG")
    assert client.get(address(board, pair, "entry-plot-file", "pie", "svg")).status_code == 404


def test_the_badge_follows_the_newest_snapshot_unless_told(client, board, pair):
    boards.publish_entries(board, [{**pair, "difference": 4.0}])
    boards.publish_entries(board, [{**pair, "difference": 60.0}])
    newest = client.get(address(board, pair, "entry-badge"))
    assert newest["Content-Type"].startswith("image/svg+xml")
    assert newest["Cache-Control"] == "public, max-age=300"
    assert "<title>Scooter: #1 · perceptible (+60.0)</title>" in newest.content.decode()
    old = client.get(address(board, pair, "entry-badge"), {"snapshot": 1}).content.decode()
    assert "imperceptible (+4.0)" in old


def test_what_is_not_there_is_not_found_and_what_is_unclear_refused(client, board, pair):
    boards.publish_entries(board, [pair])
    assert client.get(reverse("entry", args=["slider", "cadv", "unknown"])).status_code == 404
    assert client.get(address(board, pair), {"snapshot": 2}).status_code == 404
    assert client.get(address(board, pair), {"verdict": "perceptible"}).status_code == 400


def test_an_entry_whose_details_are_few_still_has_a_page(client, board, pair):
    boards.publish_entries(board, [{**pair, "difference": None, "details": {}}])
    assert "None of these images can be shown here." in get(client, board, pair)


@pytest.mark.parametrize(
    ("ends", "values", "counts"),
    [
        ((-2, 2), [[-2, 1], [0, 3], [2, 5]], [1, 0, 3, 0, 5]),
        ((-100, 100), [[-100, 1], [-91, 1], [-90, 2], [99, 4], [100, 8]], [2, 2, *[0] * 17, 12]),
    ],
)
def test_values_are_counted_in_parts_of_the_scale(ends, values, counts):
    assert binned({"modified": values}, *ends) == {"clean": [0] * len(counts), "modified": counts}


def test_addresses_of_entries_are_those_that_lead_there(board, pair):
    snapshot = boards.publish_entries(board, [pair])
    assert entry_address(snapshot.entries.get()) == f"{address(board, pair)}?snapshot=1"
