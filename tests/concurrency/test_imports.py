"""Imports at the same time: two of the same images, and two workers of one; each image goes in once."""

import threading
from collections import Counter
from uuid import uuid4

import pytest

from imagedb.models import Attack, Image, ImportChunk, ImportRow, TargetModel
from imagedb.models.imports import ImportStatus
from imagedb.services import import_commit, import_plan, import_state
from imagedb.services.import_run import Outcome
from tests import factories
from tests.concurrency.threads import at_once
from tests.factories import png_bytes
from tests.imagedb.manifests import assert_sound, clean, modified, planned, work_on

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_storage")]

SOURCES = 8


@pytest.fixture(autouse=True)
def classes():
    factories.image_class()


def pairs() -> tuple[list[dict], dict[str, bytes]]:
    """Clean images with a modified version each, and their contents."""
    rows = []
    for number in range(SOURCES):
        rows.append(clean(f"clean{number}.png"))
        rows.append(modified(f"modified{number}.png", source_filename=f"clean{number}.png"))
    return rows, {row["filename"]: png_bytes(seed) for seed, row in enumerate(rows)}


@pytest.mark.parametrize("looks_again", [False, True], ids=["without a second look", "with a second look"])
def test_two_imports_of_the_same_images(monkeypatch, looks_again):
    """Both have decided that every image is new before either has stored one."""
    rows, contents = pairs()
    batches = [planned(rows, contents=contents), planned(rows[::-1], contents=contents)]
    both_have_decided, store, waited = threading.Barrier(2), import_commit._store, threading.local()

    def wait_for_the_other(*arguments):
        if not hasattr(waited, "once"):
            waited.once = True
            both_have_decided.wait(timeout=60)
        store(*arguments)

    monkeypatch.setattr(import_commit, "_store", wait_for_the_other)
    if not looks_again:
        monkeypatch.setattr(import_commit, "_look_again", lambda findings, rules: None)
        monkeypatch.setattr(import_commit, "_put_in_one_by_one", import_commit._put_in)
    at_once([lambda batch=batch: work_on(batch) for batch in batches])
    for batch in batches:
        batch.refresh_from_db()
    statuses = sorted(batch.status for batch in batches)
    if not looks_again:
        assert statuses == [ImportStatus.DONE, ImportStatus.FAILED]
        return
    assert statuses == [ImportStatus.DONE, ImportStatus.DONE]
    assert Image.objects.count() == len(rows)
    assert (Attack.objects.count(), TargetModel.objects.count()) == (1, 1)
    results = Counter(ImportRow.objects.values_list("result", flat=True))
    assert results == {"imported": len(rows), "already_there": len(rows)}
    assert sum(batch.imported_count for batch in batches) == len(rows)
    assert not Image.objects.filter(kind="modified", linf=None).exists()
    assert_sound()


def test_two_workers_of_one_import(monkeypatch):
    monkeypatch.setattr(import_plan, "CHUNK_ROWS", 2)
    rows, contents = pairs()
    batch = planned(rows, contents=contents)
    done, mark_done = [], import_state.mark_done

    def note(claim, *arguments):
        mark_done(claim, *arguments)
        done.append(claim.chunk.number)

    monkeypatch.setattr(import_state, "mark_done", note)
    outcomes = at_once([lambda: work_on(batch)] * 2)
    assert Outcome.OVER in outcomes
    assert sorted(done) == list(range(SOURCES))
    batch.refresh_from_db()
    assert (batch.status, batch.imported_count, batch.failed_count) == (ImportStatus.DONE, len(rows), 0)
    assert (Attack.objects.count(), TargetModel.objects.count()) == (1, 1)
    assert batch.notes.count("Created attack") == 1
    assert_sound()


@pytest.mark.parametrize("checks", [False, True], ids=["without a condition", "with a condition"])
def test_one_chunk_is_claimed_by_one_worker(monkeypatch, checks):
    batch = planned([clean()])
    both_have_looked, queryset = threading.Barrier(2), type(ImportChunk.objects.all())
    first = queryset.first

    def wait_for_the_other(self):
        chunk = first(self)
        if chunk is not None and self.model is ImportChunk:
            both_have_looked.wait(timeout=60)
        return chunk

    monkeypatch.setattr(queryset, "first", wait_for_the_other)
    if not checks:
        update = queryset.update
        monkeypatch.setattr(queryset, "update", lambda self, **fields: update(ImportChunk.objects.all(), **fields))
    claims = at_once([lambda: import_state.claim_chunk(batch, uuid4())] * 2)
    assert sum(claim is not None for claim in claims) == (1 if checks else 2)


def test_two_planners_of_one_import():
    rows, contents = pairs()
    batch = planned(rows, contents=contents)
    type(batch).objects.update(status=ImportStatus.WAITING)
    plans = at_once([lambda: import_plan.plan_import(batch.pk)] * 2)
    assert sum(plan is not None for plan in plans) == 1
    assert batch.rows.count() == len(rows)
    work_on(batch)
    assert_sound()
