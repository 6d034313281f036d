"""Loading and removing a small demonstration, beside material that is not of it."""

import dataclasses
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from imagedb.models import Attack, Collection, CollectionVersion, Image, ImportBatch, TargetModel, Visibility
from imagedb.services.collections import add_images, create_collection, recompute_manifest
from leaderboard.models import Board, Entry
from leaderboard.services.recompute import recompute_pair
from scooter_site.demo import OPEN_STUDY_SLUG, content
from scooter_site.demo.photographs import CROP_SIDE, PHOTOGRAPHS
from studies.bots import Behaviour, simulate
from studies.flow import Outcome
from studies.models import ColourPlate, Participation, Rating, Stimulus, Study, StudyStatus
from studies.services.plate_pool import PLATE_POOL
from tests import factories

REAL_STUDIES = list(content.STUDIES)
NUMBERS = {name: value for name, value in factories.SMALL_STUDY.items() if name != "contact_email"}
CROPS_EACH = 10
BOTS_EACH = 2


@pytest.fixture(autouse=True)
def _small_demonstration(monkeypatch):
    photographs = [dataclasses.replace(photograph, most_crops=CROPS_EACH) for photograph in PHOTOGRAPHS[:2]]
    studies = [
        dataclasses.replace(study, numbers=NUMBERS, bots=study.bots and (Behaviour(ability=ability),) * BOTS_EACH)
        for study, ability in zip(content.STUDIES, (0, 1, 0), strict=True)
    ]
    monkeypatch.setattr(content, "PHOTOGRAPHS", photographs)
    monkeypatch.setattr(content, "STUDIES", studies)
    for signal in (request_started, request_finished):  # the connection holds the test's transaction
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def plates(db):
    factories.plate_pool()


def load() -> str:
    output = StringIO()
    call_command("load_demo", stdout=output)
    return output.getvalue()


def remove() -> str:
    output = StringIO()
    call_command("remove_demo", stdout=output)
    return output.getvalue()


def counts() -> dict[str, int]:
    models = (
        Attack,
        TargetModel,
        Image,
        ImportBatch,
        Collection,
        CollectionVersion,
        Study,
        Participation,
        Rating,
        Stimulus,
        Entry,
        ColourPlate,
    )
    return {model.__name__: model.objects.count() for model in models}


def stored_files() -> set[Path]:
    return {path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()}


def test_load_makes_images_studies_and_results_and_removal_takes_them(plates, django_capture_on_commit_callbacks):
    before, files = counts(), stored_files()
    assert "The demonstration is loaded." in load()
    assert counts() == {
        "Attack": 2,
        "TargetModel": 1,
        "Image": 2 * CROPS_EACH * 3,
        "ImportBatch": 2,
        "Collection": 1,
        "CollectionVersion": 2,
        "Study": 3,
        "Participation": 2 * BOTS_EACH,
        "Rating": 2 * BOTS_EACH * 8,
        "Stimulus": 3 * (2 * 3 + 2 * 3 + 1),
        "Entry": 4,  # in the draft, and in a snapshot
        "ColourPlate": len(PLATE_POOL),
    }
    for image in Image.objects.select_related("import_batch"):
        assert image.is_demo
        assert image.visibility == Visibility.PUBLIC
        assert image.licence in {"CC0 1.0", "Public domain"}
        assert "scikit-image" in image.attribution
        assert "nearest" in image.attribution
        assert (image.width, image.height) == (CROP_SIDE, CROP_SIDE)
    assert all(thing.is_demo for model in (Attack, TargetModel, Study, Board) for thing in model.objects.all())
    assert all("not verified" in attack.description for attack in Attack.objects.all())
    assert all(attack.parameters["turn_degrees"] for attack in Attack.objects.all())
    first, second = CollectionVersion.objects.order_by("pk")
    assert (first.version, first.image_count) == ("1.0", 2 * CROPS_EACH * 3)
    assert (second.version, second.image_count) == ("1.1", 2 * CROPS_EACH * 3 - 3)
    for version in (first, second):
        assert version.is_frozen
        assert version.collection.is_demo
        manifest = recompute_manifest(version)
        assert (manifest.sha256, manifest.image_count) == (version.manifest_sha256, version.image_count)
    studies = {study.slug: study for study in Study.objects.all()}
    assert {slug: study.status for slug, study in studies.items()} == {
        OPEN_STUDY_SLUG: StudyStatus.RUNNING,
        "demo-a": StudyStatus.CLOSED,
        "demo-b": StudyStatus.CLOSED,
    }
    strong, subtle = (
        Entry.objects.get(attack__slug=f"demo-{name}-recolouring", snapshot__number=1) for name in ("strong", "subtle")
    )
    assert strong.participants == subtle.participants == BOTS_EACH
    assert strong.difference > 80
    assert abs(subtle.difference) < 60

    loaded, loaded_files = counts(), stored_files()
    assert "loaded already" in load()
    assert (counts(), stored_files()) == (loaded, loaded_files)

    with django_capture_on_commit_callbacks(execute=True):
        output = remove()
    assert "3  studies" in output
    assert counts() == {**before, "ColourPlate": 0}
    assert stored_files() < files  # the plates went as well
    assert "0  studies" in remove()


def test_the_real_open_study_is_the_papers():
    open_study = next(study for study in REAL_STUDIES if study.slug == OPEN_STUDY_SLUG)
    assert set(open_study.numbers) == {"dataset_count"}
    assert {bot.outcome for study in REAL_STUDIES for bot in study.bots} == {
        None,
        Outcome.COLOUR_CHECK_FAILED,
        Outcome.COMPREHENSION_FAILED,
        Outcome.ATTENTION_FAILED,
    }


def test_an_interrupted_loading_goes_on(plates, monkeypatch):
    real_simulate = content.simulate
    calls = []

    def interrupted(*arguments, **options):
        calls.append(options)
        if len(calls) == BOTS_EACH:
            raise KeyboardInterrupt
        return real_simulate(*arguments, **options)

    monkeypatch.setattr(content, "simulate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load()
    assert not content.is_loaded()
    load()
    assert content.is_loaded()
    assert Image.objects.count() == 2 * CROPS_EACH * 3
    assert Participation.objects.count() == 2 * BOTS_EACH


def test_a_study_of_ones_own_at_its_address_is_not_touched(db):
    own = factories.study(slug=OPEN_STUDY_SLUG)
    with pytest.raises(CommandError, match="has the address demo, which the demonstration needs"):
        load()
    own.refresh_from_db()
    assert own.status == StudyStatus.DRAFT
    assert not Image.objects.exists()


def test_a_collection_of_ones_own_with_its_name_is_not_touched(db):
    own = create_collection(None, name="My own", slug="demo-photographs").collection
    with pytest.raises(
        CommandError, match=r"“My own” \(demo-photographs\) has the name that the demonstration's needs"
    ):
        load()
    assert [version.version for version in own.versions.all()] == ["1.0"]
    assert not Image.objects.exists()


def test_removal_leaves_everything_else(plates, django_capture_on_commit_callbacks):
    own = factories.running_study()
    own_collection = create_collection(None, name="My own", slug="my-own")
    add_images(own_collection, Image.objects.filter(is_demo=False), "All of mine.", None)
    with django_capture_on_commit_callbacks(execute=True):
        assert [walk.error for walk in simulate(own, Behaviour(), count=1)] == [""]
    Participation.objects.update(kind="real")
    recompute_pair(own.attack_id, own.target_model_id)
    before, files = counts(), stored_files()
    assert before["Entry"] == 1
    load()

    user = factories.study(attack=Attack.objects.get(slug="demo-subtle-recolouring"), title="My own study")
    loaded = counts()
    with pytest.raises(CommandError, match="study “My own study”"):
        remove()
    assert counts() == loaded
    user.delete()
    user.target_model.delete()

    with django_capture_on_commit_callbacks(execute=True):
        remove()
    assert (counts(), stored_files()) == (before, files)
    assert Board.objects.exists()
