import hashlib
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from leaderboard import selectors, tasks
from leaderboard.models import Board, Entry
from leaderboard.services.recompute import recompute_pair
from studies.flow import Outcome
from studies.models import Participation, ParticipationKind, ScaleDirection
from studies.signals import valid_ratings_changed
from tests import factories
from tests.leaderboard import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair():
    return factories.attack(), factories.target_model()


@pytest.fixture
def images(pair):
    """(modified, clean)"""
    attack, target_model = pair
    modified = factories.modified_image(attack=attack, target_model=target_model)
    return modified, factories.clean_image()


def recompute(pair):
    recompute_pair(pair[0].pk, pair[1].pk)


def numbers(entry):
    return {
        field: getattr(entry, field)
        for field in ("pk", "participants", "ratings", "mean_modified", "sd_modified", "mean_clean", "input_digest")
    }


def test_stores_the_numbers_of_a_pair(pair, images):
    modified, clean = images
    study = rows.study(*pair)
    one = rows.finished(study, [(modified, 80), (clean, 0)])
    other = rows.finished(study, [(clean, -50), (modified, 20)])
    recompute(pair)
    entry = Entry.objects.get()
    assert (entry.attack, entry.target_model) == pair
    assert (entry.participants, entry.ratings) == (2, 4)
    assert (entry.images_modified, entry.images_clean, entry.ratings_modified, entry.ratings_clean) == (1, 1, 2, 2)
    assert (entry.mean_modified, entry.mean_clean, entry.mean_difference) == (50.0, -25.0, 75.0)
    assert entry.sd_modified == pytest.approx(42.426406871)
    assert entry.sd_clean == pytest.approx(35.355339059)
    assert entry.snapshot.board.is_demo is False
    today = one.finished_at.date().isoformat()
    assert entry.details["studies"] == {
        "protocols": ["paper"],
        "outcomes": {"completed": 2},
        "checks": {"instructed": [2, 2]},
        "first_rated": today,
        "last_rated": today,
    }
    assert entry.data_cutoff == other.finished_at
    lines = [
        f"{one.public_id},{modified.public_id},modified,80,{modified.source.public_id},",
        f"{one.public_id},{clean.public_id},clean,0,,",
        f"{other.public_id},{clean.public_id},clean,-50,,",
        f"{other.public_id},{modified.public_id},modified,20,{modified.source.public_id},",
    ]
    text = "".join(f"{line}\n" for line in sorted(lines))
    assert entry.input_digest == hashlib.sha256(text.encode()).hexdigest()


def test_names_the_board_of_a_new_scale_and_keeps_its_new_name(pair, images):
    rows.finished(rows.study(*pair), [(images[0], 80)])
    recompute(pair)
    board = Board.objects.get()
    assert (board.name, board.slug) == ("Scale −100 to 100", "scale-minus-100-to-100")
    Board.objects.update(name="Slider of the paper")
    recompute(pair)
    assert Entry.objects.get().snapshot.board.name == "Slider of the paper"


def test_running_twice_is_running_once(pair, images):
    rows.finished(rows.study(*pair), [(images[0], 80), (images[1], 7)])
    recompute(pair)
    first = numbers(Entry.objects.get())
    recompute(pair)
    assert numbers(Entry.objects.get()) == first


def test_new_ratings_change_the_same_row(pair, images):
    study = rows.study(*pair)
    rows.finished(study, [(images[0], 80), (images[1], 0)])
    recompute(pair)
    before = Entry.objects.get()
    rows.finished(study, [(images[0], 40), (images[1], 0)])
    recompute(pair)
    after = Entry.objects.get()
    assert after.pk == before.pk
    assert (before.mean_difference, after.mean_difference) == (80.0, 60.0)
    assert after.input_digest != before.input_digest
    assert after.computed_at > before.computed_at


@pytest.mark.parametrize(
    "fields",
    [
        {"is_valid": False},
        {"is_valid": False, "outcome": Outcome.ATTENTION_FAILED},
        {"kind": ParticipationKind.TEST},
        {"kind": ParticipationKind.PREVIEW},
    ],
    ids=["invalid", "attention failed", "test", "preview"],
)
def test_what_does_not_count_makes_no_row(pair, images, fields):
    rows.finished(rows.study(*pair), [(images[0], 80), (images[1], 0)], **fields)
    recompute(pair)
    assert not Entry.objects.exists()


def test_the_row_goes_with_its_last_valid_rating(pair, images):
    participation = rows.finished(rows.study(*pair), [(images[0], 80)])
    recompute(pair)
    assert Entry.objects.count() == 1
    Participation.objects.filter(pk=participation.pk).update(is_valid=False)
    recompute(pair)
    assert not Entry.objects.exists()


def test_other_pairs_are_left_alone(pair, images):
    other = rows.entry()
    rows.finished(rows.study(*pair), [(images[0], 80)])
    recompute(pair)
    recompute((factories.attack(), factories.target_model()))
    assert Entry.objects.filter(pk=other.pk).exists()
    assert Entry.objects.count() == 3  # the other one is in a draft, too


def test_each_scale_has_its_own_entry_and_mirrored_scales_are_turned(pair, images):
    modified, clean = images
    rows.finished(rows.study(*pair), [(modified, 80), (clean, 0)])
    field_version = rows.study(*pair, scale_minimum=-2, scale_maximum=2, scale_direction=ScaleDirection.HIGHER_IS_CLEAN)
    rows.finished(field_version, [(modified, -2), (clean, 1)])
    recompute(pair)
    slider, likert = Entry.objects.order_by("snapshot__board__scale_minimum")
    assert (slider.snapshot.board.scale_maximum, slider.mean_difference) == (100, 80.0)
    assert (likert.snapshot.board.scale_maximum, likert.mean_modified, likert.mean_clean, likert.mean_difference) == (
        2,
        2,
        -1,
        3,
    )
    # One of the two goes when only its ratings go.
    Participation.objects.filter(study=field_version).update(is_valid=False)
    recompute(pair)
    assert Entry.objects.get() == slider


def test_two_studies_of_a_pair_on_one_scale_are_one_entry(pair, images):
    for value in (10, 30):
        rows.finished(rows.study(*pair), [(images[0], value)])
    recompute(pair)
    assert (Entry.objects.get().participants, Entry.objects.get().mean_modified) == (2, 20.0)


def test_bots_of_a_demonstration_count_there_and_say_so(pair, images):
    rows.finished(rows.study(*pair, is_demo=True), [(images[0], 80)], kind=ParticipationKind.TEST)
    recompute(pair)
    assert Entry.objects.get().snapshot.board.is_demo is True


@pytest.mark.parametrize("demo", ["attack", "target_model"])
def test_stand_ins_of_the_demonstration_are_marked(demo):
    attack = factories.attack(is_demo=demo == "attack")
    target_model = factories.target_model(is_demo=demo == "target_model")
    image = factories.modified_image(attack=attack, target_model=target_model)
    rows.finished(rows.study(attack, target_model), [(image, 80)])
    recompute((attack, target_model))
    assert Entry.objects.get().snapshot.board.is_demo is True


def test_a_pair_that_is_gone_is_no_error():
    recompute_pair(123456, 654321)
    assert not Entry.objects.exists()


def test_the_signal_leads_to_the_row(pair, images, django_capture_on_commit_callbacks):
    rows.finished(rows.study(*pair), [(images[0], 80)])
    with django_capture_on_commit_callbacks(execute=True):
        valid_ratings_changed.send(sender=None, attack_id=pair[0].pk, target_model_id=pair[1].pk)
        assert not Entry.objects.exists()  # not before the ratings are committed
    assert Entry.objects.get().mean_modified == 80.0


class TestReconciling:
    """recompute_outdated_entries finds what a lost message left behind."""

    def test_a_missed_participation(self, pair, images, django_capture_on_commit_callbacks):
        rows.finished(rows.study(*pair), [(images[0], 80)])
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                tasks.recompute_outdated_entries()
            assert Entry.objects.get().participants == 1
            assert selectors.outdated_pairs() == []

    def test_a_missed_exclusion(self, pair, images):
        study = rows.study(*pair)
        rows.finished(study, [(images[0], 80)])
        excluded = rows.finished(study, [(images[0], 80)])
        recompute(pair)
        Participation.objects.filter(pk=excluded.pk).update(is_valid=False)
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]

    def test_the_last_participation_excluded(self, pair, images):
        participation = rows.finished(rows.study(*pair), [(images[0], 80)])
        recompute(pair)
        Participation.objects.filter(pk=participation.pk).update(is_valid=False)
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]

    def test_one_out_and_one_in(self, pair, images):
        study = rows.study(*pair)
        excluded = rows.finished(study, [(images[0], 80)])
        recompute(pair)
        Participation.objects.filter(pk=excluded.pk).update(is_valid=False)
        rows.finished(study, [(images[0], 70)], finished_at=timezone.now() + timedelta(seconds=1))
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]

    def test_one_out_and_an_older_one_in(self, pair, images):
        """The number is the same, and nobody finished since: only the time of the decision tells."""
        study = rows.study(*pair)
        excluded = rows.finished(study, [(images[0], 80)])
        earlier = rows.finished(
            study, [(images[0], 10)], is_valid=False, finished_at=timezone.now() - timedelta(days=1)
        )
        recompute(pair)
        assert selectors.outdated_pairs() == []
        now = timezone.now()
        Participation.objects.filter(pk=excluded.pk).update(is_valid=False, validity_changed_at=now)
        Participation.objects.filter(pk=earlier.pk).update(is_valid=True, validity_changed_at=now)
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]
        recompute(pair)
        assert (Entry.objects.get().mean_modified, selectors.outdated_pairs()) == (10.0, [])

    def test_a_pair_without_any_valid_participation_left_is_done_when_its_row_is_gone(self, pair, images):
        excluded = rows.finished(rows.study(*pair), [(images[0], 80)])
        recompute(pair)
        Participation.objects.filter(pk=excluded.pk).update(is_valid=False, validity_changed_at=timezone.now())
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]
        recompute(pair)
        assert (Entry.objects.count(), selectors.outdated_pairs()) == (0, [])

    def test_another_scale(self, pair, images):
        rows.finished(rows.study(*pair), [(images[0], 80)])
        recompute(pair)
        rows.finished(rows.study(*pair, scale_minimum=-2, scale_maximum=2), [(images[0], 1)])
        assert selectors.outdated_pairs() == [(pair[0].pk, pair[1].pk)]

    def test_what_does_not_count_is_not_missed(self, pair, images):
        study = rows.study(*pair)
        rows.finished(study, [(images[0], 80)], kind=ParticipationKind.TEST)
        rows.finished(study, [(images[0], 80)], is_valid=False)
        assert selectors.outdated_pairs() == []

    def test_takes_two_queries_whatever_the_number_of_pairs(self):
        for _ in range(4):
            attack, target_model = factories.attack(), factories.target_model()
            image = factories.modified_image(attack=attack, target_model=target_model)
            rows.finished(rows.study(attack, target_model), [(image, 80)])
            recompute((attack, target_model))
        with CaptureQueriesContext(connection) as queries:
            assert selectors.outdated_pairs() == []
        assert len(queries) == 2
