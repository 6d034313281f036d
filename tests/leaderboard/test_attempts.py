"""How often an attack was tried, in the entries of its pair."""

import io

import pytest
from django.core.management import call_command
from django.urls import reverse

from imagedb.models import AttackEvaluation, Visibility
from leaderboard import tasks
from leaderboard.columns import BY_KEY
from leaderboard.models import Entry, ExternalResult, Recomputation
from leaderboard.results import stated_success_rate
from leaderboard.selectors import visible_entries
from leaderboard.services.external import add_external_result
from leaderboard.services.publication import publish
from leaderboard.services.recompute import recompute_pair
from tests import factories
from tests.leaderboard import boards, rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair():
    """Four modified images, of which three are known to fool, rated like clean ones by four people."""
    attack, target_model = factories.attack(), factories.target_model()
    modified = [factories.modified_image(attack=attack, target_model=target_model) for _ in range(4)]
    for image in modified[:3]:
        image.predictions.create(target_model=target_model, predicted_class=factories.image_class(5))
    study = rows.study(attack, target_model)
    for person in range(4):
        places = list(enumerate(modified))
        answers = [(image, (7 * person + 5 * place) % 13) for place, image in places]
        answers += [(image.source, (11 * person + 3 * place) % 13) for place, image in places]
        rows.finished(study, answers)
    return {"attack": attack, "target_model": target_model}


def state(pair, attacked, fooling):
    AttackEvaluation.objects.update_or_create(**pair, defaults={"images_attacked": attacked, "images_fooling": fooling})


def recompute(pair):
    return recompute_pair(pair["attack"].pk, pair["target_model"].pk)


def rates(entry):
    return entry.attack_success_rate, entry.images_attacked, entry.images_fooling, entry.fools_unnoticed


@pytest.mark.parametrize(
    ("attacked", "fooling", "expected"),
    [
        (120, 90, {"attack_success_rate": 0.75}),
        (50, 0, {"attack_success_rate": 0.0}),
        (50, 50, {"attack_success_rate": 1.0}),
        (None, None, {}),
    ],
)
def test_values(attacked, fooling, expected):
    assert stated_success_rate(attacked, fooling) == expected


def test_the_draft_follows_what_is_stated(pair, django_capture_on_commit_callbacks):
    recompute(pair)
    # Of the three images that are known to fool, nobody notices one, whatever is stated of attempts.
    assert rates(Entry.objects.get()) == (None, None, None, 1.0)
    for attacked, fooling, rate in ((120, 90, 0.75), (50, 0, 0.0)):
        with django_capture_on_commit_callbacks(execute=True):
            state(pair, attacked, fooling)
        assert Recomputation.objects.get().requested_at is None, "a worker has done it"
        assert rates(Entry.objects.get()) == (rate, attacked, fooling, 1.0)
    with django_capture_on_commit_callbacks(execute=True):
        AttackEvaluation.objects.get().delete()
    assert rates(Entry.objects.get()) == (None, None, None, 1.0)


def test_a_published_entry_keeps_what_was_stated_then(pair):
    state(pair, 120, 90)
    (board,) = recompute(pair)
    snapshot = publish(board)
    state(pair, 240, 180)  # the same rate, of more attempts
    recompute(pair)
    assert rates(snapshot.entries.get()) == (0.75, 120, 90, 1.0)
    output = io.StringIO()
    call_command("verify_snapshot", f"{board.slug}/{snapshot.number}", stdout=output)
    assert "equal (1 entries computed again)" in output.getvalue()
    newer = publish(board, only_if_changed=True)
    assert rates(newer.entries.get()) == (0.75, 240, 180, 1.0)


def test_what_is_stated_while_ratings_are_computed_is_not_lost(pair, monkeypatch):
    """A worker that read the older statement does not store it over the newer one."""
    from leaderboard.services import recompute as service

    compute, calls = service.compute, []

    def meanwhile(*args, **kwargs):
        calls.append(1)
        if len(calls) == 1:
            state(pair, 120, 90)
        return compute(*args, **kwargs)

    monkeypatch.setattr(service, "compute", meanwhile)
    recompute(pair)
    assert (len(calls), Entry.objects.get().images_attacked) == (2, 120)


def test_an_external_result_keeps_the_rate_stated_with_it(pair):
    board = boards.board()
    other = {"attack": factories.attack(), "target_model": factories.target_model()}
    content = "rating,pid,image_type,image_id\n" + "".join(
        f"{value},{person},{kind},{kind}{place}\n"
        for person in "ab"
        for place in (1, 2)
        for kind, value in (("modified", 9 * place), ("clean", -5 * place))
    )
    add_external_result(
        board=board,
        **other,
        content=content.encode(),
        name="ratings.csv",
        high_means="modified",
        citation="Someone 2026",
        attack_success_rate=0.93,
        added_by=None,
    )
    state(other, 120, 90)
    recompute(other)
    assert ExternalResult.objects.exists()
    assert rates(Entry.objects.get(attack=other["attack"]))[:3] == (0.93, None, None)


def test_a_board_names_the_attempts(pair):
    state(pair, 1200, 900)
    (board,) = recompute(pair)
    snapshot = publish(board)
    (row,) = visible_entries(snapshot)
    success, both = BY_KEY["attack_success_rate"], BY_KEY["fools_unnoticed"]
    assert (success.show(row, 1), success.note(row, 1)) == ("75 %", "of 1,200 attempts")
    assert (both.show(row, 1), both.note(row, 1)) == ("100 %", "75 % of attempts")
    row.attack_success_rate = None
    assert (both.show(row, 1), both.note(row, 1)) == ("100 %", "")


def test_pages_of_attack_and_target_model_tell_what_is_stated(client, pair):
    state(pair, 1200, 900)
    AttackEvaluation.objects.update(citation="Someone 2026", source_url="https://example.org/rates")
    state({"attack": factories.attack(), "target_model": factories.target_model()}, 7, 5)
    for kind, other in (("attack", "target_model"), ("target_model", "attack")):
        address = reverse(kind.replace("_", "-"), args=[pair[kind].slug])
        pair["attack"].images.update(visibility=Visibility.PUBLIC)
        page = client.get(address).content.decode()
        assert ("75 %" in page, "900 of 1,200 images" in page, "5 of 7 images" in page) == (True, True, False)
        assert '<a href="https://example.org/rates" rel="noopener">Someone 2026</a>' in page
        assert f'href="{reverse(other.replace("_", "-"), args=[pair[other].slug])}">{pair[other].name}</a>' in page
        pair["attack"].images.update(visibility=Visibility.PRIVATE)
        assert "900 of 1,200 images" not in client.get(address).content.decode()


def test_a_statement_on_a_pair_without_ratings_makes_no_entry(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        state({"attack": factories.attack(), "target_model": factories.target_model()}, 120, 90)
    tasks.refresh_entries()
    assert not Entry.objects.exists()
