"""Imports that workers do: asked for, planned once, run again, handed out again, cancelled. Each task runs twice."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.utils import timezone

from imagedb import tasks
from imagedb.models import Image, ImportBatch, ImportChunk, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services import import_chunk, import_plan, import_state
from imagedb.services.import_run import Outcome
from imagedb.services.importing import cancel_import, request_import
from tests.factories import png_bytes
from tests.imagedb.manifests import assert_sound, clean, manifest_text, modified, planned, uploaded, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_storage")]

ROWS = [clean(), modified()]
GOOD = {"manifest.csv": manifest_text(ROWS), "clean.png": png_bytes(1), "modified.png": png_bytes(2)}


def later(batch: ImportBatch, **fields) -> None:
    ImportBatch.objects.filter(pk=batch.pk).update(**fields)


def state(batch: ImportBatch) -> tuple[str, int, int, int]:
    batch.refresh_from_db()
    return batch.status, batch.imported_count, batch.already_there_count, batch.failed_count


@pytest.fixture
def one_row_a_chunk(monkeypatch):
    monkeypatch.setattr(import_plan, "CHUNK_ROWS", 1)


class TestRequest:
    def test_a_worker_runs_it_after_the_commit(self, django_capture_on_commit_callbacks):
        batch = uploaded(GOOD, visibility="private")
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
            assert not Image.objects.exists()
        assert state(batch) == (ImportStatus.DONE, 2, 0, 0)
        assert batch.finished_at >= batch.started_at
        assert set(Image.objects.values_list("visibility", flat=True)) == {"private"}
        assert_sound()

    def test_again_tries_only_what_failed(self, django_capture_on_commit_callbacks):
        batch = uploaded({**GOOD, "modified.png": b"no image"})
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                request_import(batch)
            assert state(batch) == (ImportStatus.DONE, 1, 0, 1)
            assert [row.result for row in batch.rows.all()] == ["imported", "failed"]
        assert_sound()

    @pytest.mark.parametrize(
        ("members", "words"),
        [
            ({"clean.png": png_bytes(1)}, "has no manifest"),
            ({**GOOD, "b/manifest.csv": "x"}, "several manifests"),
            ({**GOOD, "manifest.csv": "nothing,useful\n1,2\n"}, "lacks the columns"),
        ],
    )
    def test_archives_that_cannot_be_used(self, members, words, django_capture_on_commit_callbacks):
        batch = uploaded(members)
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
        assert state(batch)[0] == ImportStatus.FAILED
        assert words in batch.error

    def test_no_archive_at_all(self):
        batch = ImportBatch(source_name="upload.zip")
        batch.archive.save("upload.zip", ContentFile(b"no archive"), save=False)
        batch.save()
        tasks.plan_import(batch.pk)
        assert state(batch)[0] == ImportStatus.FAILED
        assert "not a ZIP archive" in batch.error

    @pytest.mark.parametrize("lost_after_planning", [False, True])
    def test_the_storage_has_lost_the_archive(self, lost_after_planning, django_capture_on_commit_callbacks):
        batch = uploaded(GOOD)
        if lost_after_planning:
            assert import_plan.plan_import(batch.pk)
        batch.archive.storage.delete(batch.archive.name)
        if lost_after_planning:
            assert work_on(batch) is Outcome.OVER
        else:
            tasks.plan_import(batch.pk)
        assert state(batch)[0] == ImportStatus.FAILED
        assert "no longer in the storage" in batch.error

    def test_manifest_in_a_folder(self, django_capture_on_commit_callbacks):
        batch = uploaded({f"set/{name}": content for name, content in GOOD.items()})
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
        assert state(batch)[:2] == (ImportStatus.DONE, 2)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("images.csv", GOOD["manifest.csv"]),
            ("images.jsonl", '{"filename": "clean.png", "kind": "clean", "class_index": 281}\n'),
        ],
    )
    def test_the_only_table_is_the_manifest(self, name, content, django_capture_on_commit_callbacks):
        members = {name: content for name, content in GOOD.items() if name != "manifest.csv"}
        batch = uploaded({**members, name: content})
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
        assert state(batch)[0] == ImportStatus.DONE
        assert name not in batch.notes


class TestTwice:
    def test_planning_twice_plans_once(self):
        batch = uploaded(GOOD)
        tasks.plan_import(batch.pk)
        before = list(ImportRow.objects.values()), list(ImportChunk.objects.values())
        tasks.plan_import(batch.pk)
        assert (list(ImportRow.objects.values()), list(ImportChunk.objects.values())) == before
        assert state(batch)[0] == ImportStatus.RUNNING

    def test_working_twice_does_nothing_the_second_time(self):
        batch = planned(ROWS)
        for _ in range(2):
            tasks.work_on_import(batch.pk, batch.handout)
            assert state(batch) == (ImportStatus.DONE, 2, 0, 0)
        assert (batch.rows.count(), Image.objects.count()) == (2, 2)
        assert_sound()

    def test_reconciling_twice(self, django_capture_on_commit_callbacks):
        batch = uploaded(GOOD)
        later(batch, created_at=timezone.now() - timedelta(minutes=3))
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                tasks.resume_interrupted_imports()
            assert state(batch) == (ImportStatus.DONE, 2, 0, 0)
        assert_sound()

    def test_planning_that_was_cut_off_begins_anew(self, monkeypatch):
        batch = uploaded(GOOD)
        planning_goes_on, calls = import_state.planning_goes_on, []

        def lose_the_worker(batch):
            calls.append(1)
            planning_goes_on(batch)
            if ImportChunk.objects.exists():
                raise SystemExit

        monkeypatch.setattr(import_state, "planning_goes_on", lose_the_worker)
        with pytest.raises(SystemExit):
            import_plan.plan_import(batch.pk)
        monkeypatch.undo()
        assert (state(batch)[0], ImportChunk.objects.count()) == (ImportStatus.PLANNING, 1)
        later(batch, heartbeat_at=timezone.now() - timedelta(minutes=11))
        import_state.put_right()
        assert import_plan.plan_import(batch.pk)
        assert (batch.rows.count(), batch.chunks.count()) == (2, 1)
        assert work_on(batch) is Outcome.OVER
        assert state(batch) == (ImportStatus.DONE, 2, 0, 0)

    def test_a_planner_that_was_given_up_writes_nothing_more(self):
        batch = uploaded(GOOD)
        first = import_state.begin_planning(batch.pk)
        later(batch, status=ImportStatus.WAITING)
        second = import_state.begin_planning(batch.pk)
        with pytest.raises(import_state.ImportTakenOver):
            import_state.planning_goes_on(first)
        import_state.planning_goes_on(second)

    @pytest.mark.parametrize("stage", ["planning", "working"])
    def test_what_a_later_try_can_mend_waits_for_it(self, monkeypatch, stage):
        batch = uploaded(GOOD)
        if stage == "working":
            assert import_plan.plan_import(batch.pk)

        def storage_is_away(*arguments, **options):
            raise ConnectionError("away")

        monkeypatch.setattr(import_chunk.ChunkWork, "_read", storage_is_away)
        monkeypatch.setattr(import_plan, "make_plan", storage_is_away)
        with pytest.raises(ConnectionError):
            import_plan.plan_import(batch.pk) if stage == "planning" else work_on(batch)
        assert state(batch)[0] == (ImportStatus.WAITING if stage == "planning" else ImportStatus.RUNNING)
        assert batch.finished_at is None
        monkeypatch.undo()
        if stage == "planning":
            assert import_plan.plan_import(batch.pk)
        assert work_on(batch) is Outcome.OVER
        assert state(batch) == (ImportStatus.DONE, 2, 0, 0)


class TestHandingOut:
    def test_chunks_are_handed_out_to_as_many_tasks_as_the_setting_says(self, monkeypatch):
        sent = []
        monkeypatch.setattr(tasks, "enqueue", lambda task, *ids, **options: sent.append((task.name, ids)))
        batch = uploaded(GOOD)
        tasks.plan_import(batch.pk)
        batch.refresh_from_db()
        assert sent == [("imagedb.tasks.work_on_import", (batch.pk, batch.handout))] * settings.IMPORT_TASKS == sent

    @pytest.mark.parametrize(
        ("outcome", "again"),
        [(Outcome.OVER, []), (Outcome.TIME_IS_UP, [None]), (Outcome.OTHERS_ARE_AT_IT, [10])],
    )
    def test_a_task_queues_up_again_while_there_is_work(self, monkeypatch, settings, outcome, again):
        sent = []
        settings.CELERY_TASK_ALWAYS_EAGER = False
        monkeypatch.setattr(tasks, "enqueue", lambda task, *ids, countdown=None: sent.append(countdown))
        monkeypatch.setattr(tasks.import_run, "work", lambda *arguments, **options: outcome)
        tasks.work_on_import(1, 1)
        assert sent == again

    def test_a_turn_ends_when_its_time_is_up(self, one_row_a_chunk):
        batch = planned([clean(f"{number}.png") for number in range(3)])
        assert work_on(batch, seconds=-1) is Outcome.TIME_IS_UP
        assert not Image.objects.exists()
        assert work_on(batch, seconds=60) is Outcome.OVER

    @pytest.mark.parametrize(
        ("status", "heartbeat_minutes", "created_minutes", "is_resumed"),
        [
            (ImportStatus.WAITING, None, 3, True),
            (ImportStatus.WAITING, None, 1, False),
            (ImportStatus.PLANNING, 11, 20, True),
            (ImportStatus.PLANNING, 9, 20, False),
            (ImportStatus.PLANNING, None, 20, True),
            (ImportStatus.DONE, 11, 20, False),
            (ImportStatus.FAILED, 11, 20, False),
            (ImportStatus.CANCELLED, 11, 20, False),
        ],
    )
    def test_lost_imports_are_handed_out_again(
        self, status, heartbeat_minutes, created_minutes, is_resumed, django_capture_on_commit_callbacks
    ):
        now = timezone.now()
        batch = uploaded(GOOD)
        heartbeat = None if heartbeat_minutes is None else now - timedelta(minutes=heartbeat_minutes)
        later(batch, status=status, heartbeat_at=heartbeat, created_at=now - timedelta(minutes=created_minutes))
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                tasks.resume_interrupted_imports()
        assert Image.objects.exists() == is_resumed

    @pytest.mark.parametrize(("heartbeat", "lease", "is_resumed"), [(4, 3, True), (2, 3, False), (4, 1, False)])
    def test_chunks_that_nobody_is_at_are_handed_out_again(
        self, heartbeat, lease, is_resumed, django_capture_on_commit_callbacks
    ):
        now = timezone.now()
        batch = planned(ROWS)
        assert import_state.claim_chunk(batch, batch.public_id)
        batch.chunks.update(claimed_at=now - timedelta(minutes=lease))
        later(batch, heartbeat_at=now - timedelta(minutes=heartbeat))
        with django_capture_on_commit_callbacks(execute=True):
            tasks.resume_interrupted_imports()
        assert (state(batch)[0] == ImportStatus.DONE) == is_resumed

    def test_what_was_handed_out_first_is_dropped_once_something_newer_was_begun(self, one_row_a_chunk):
        """And not before: the queue may be so long that nothing else would ever be begun."""
        batch = planned([clean(f"{number}.png") for number in range(3)])
        old, new = batch.handout, import_state.hand_out(batch.pk)
        assert import_state.begin_work(batch.pk, old) is not None
        first = import_state.begin_work(batch.pk, old)
        second = import_state.begin_work(batch.pk, new)
        assert second is not None
        assert import_state.begin_work(batch.pk, old) is None
        assert not import_state.may_go_on(first)
        assert import_state.may_go_on(second)
        assert import_state.begin_work(batch.pk, new + 1) is None

    def test_a_stopped_command_is_marked_and_its_files_go(self, one_row_a_chunk, folder, monkeypatch):
        folder.add("a.png", "b.png")
        mark_done = import_state.mark_done

        def lose_the_process(claim, *arguments):
            if claim.chunk.number == 1:
                raise SystemExit
            mark_done(claim, *arguments)

        monkeypatch.setattr(import_state, "mark_done", lose_the_process)
        monkeypatch.setattr(import_state, "close", lambda *arguments: None)
        monkeypatch.setattr(import_state, "give_back", lambda *arguments: None)
        with pytest.raises(SystemExit):
            folder.run(clean("a.png"), clean("b.png"))
        monkeypatch.undo()
        batch = ImportBatch.objects.get()
        with pytest.raises(AssertionError):
            assert_sound()  # the files of b.png are there
        long_ago = timezone.now() - timedelta(minutes=11)
        batch.chunks.update(claimed_at=long_ago)
        later(batch, heartbeat_at=long_ago)
        tasks.resume_interrupted_imports()
        assert state(batch) == (ImportStatus.FAILED, 1, 0, 0)
        assert "run it again" in batch.error
        assert_sound()


class TestCancel:
    def test_one_that_waits(self):
        batch = uploaded(GOOD)
        cancel_import(batch)
        assert state(batch)[0] == ImportStatus.CANCELLED
        tasks.plan_import(batch.pk)
        assert state(batch)[0] == ImportStatus.CANCELLED

    def test_one_that_is_being_planned(self):
        batch = uploaded(GOOD)
        ours = import_state.begin_planning(batch.pk)
        cancel_import(batch)
        assert state(batch)[0] == ImportStatus.PLANNING
        with pytest.raises(import_state.ImportTakenOver):
            import_state.planning_goes_on(ours)
        assert state(batch)[0] == ImportStatus.CANCELLED

    def test_one_that_is_running_stops_at_the_next_chunk_and_keeps_what_is_in(self, one_row_a_chunk):
        batch = planned([clean(f"{number}.png") for number in range(4)])
        rows = []

        def cancel_at_the_second() -> None:
            rows.append(1)
            if len(rows) == 2:
                cancel_import(batch)
                assert state(batch)[0] == ImportStatus.RUNNING  # its worker is still at it

        assert work_on(batch, after_row=cancel_at_the_second) is Outcome.OVER
        assert state(batch) == (ImportStatus.CANCELLED, 2, 0, 0)
        assert batch.finished_at
        assert Image.objects.count() == 2
        assert_sound()

    def test_one_whose_workers_are_gone_leaves_no_files(self, one_row_a_chunk):
        batch = planned([clean("a.png"), clean("b.png")])
        claim = import_state.claim_chunk(batch, batch.public_id)
        files = import_plan.import_sources.opened(batch)
        with files as opened:
            import_chunk.ChunkWork(batch, claim.chunk, opened, import_chunk.RowRules(batch)).findings(lambda: None)
        cancel_import(batch)
        assert state(batch)[0] == ImportStatus.RUNNING
        batch.chunks.filter(pk=claim.chunk.pk).update(claimed_at=timezone.now() - timedelta(minutes=3))
        for _ in range(2):
            tasks.resume_interrupted_imports()
            assert state(batch) == (ImportStatus.CANCELLED, 0, 0, 0)
            assert_sound()

    def test_it_can_be_run_again_and_does_the_rest(self, one_row_a_chunk, django_capture_on_commit_callbacks):
        batch = planned([clean("a.png"), clean("b.png")])
        work_on(batch, after_row=lambda: cancel_import(batch))
        assert state(batch) == (ImportStatus.CANCELLED, 1, 0, 0)
        with django_capture_on_commit_callbacks(execute=True):
            request_import(batch)
        assert state(batch) == (ImportStatus.DONE, 2, 0, 0)
        assert_sound()

    @pytest.mark.parametrize("status", [ImportStatus.DONE, ImportStatus.FAILED])
    def test_what_is_over_stays_as_it_is(self, status):
        batch = uploaded(GOOD, status=status)
        cancel_import(batch)
        assert state(batch)[0] == status
        assert batch.cancel_requested_at is None
