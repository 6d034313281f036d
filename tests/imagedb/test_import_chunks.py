"""Rows in chunks: which go together, who holds one, and what happens to one that is begun and not finished."""

from datetime import timedelta
from uuid import uuid4

import numpy as np
import pytest
from django.utils import timezone

from imagedb import differences, pixels
from imagedb.manifest import ManifestRow
from imagedb.models import Image, ImportChunk, ImportRow
from imagedb.models.imports import ImportStatus
from imagedb.services import import_chunk, import_commit, import_plan, import_sources, import_state
from imagedb.services.import_chunk import ChunkWork
from imagedb.services.import_plan import CHUNK_ROWS, chunks_of
from imagedb.services.import_rules import RowRules
from imagedb.services.import_run import MAX_ATTEMPTS, Outcome
from tests.factories import png_bytes
from tests.imagedb import pictures
from tests.imagedb.manifests import assert_sound, clean, modified, planned, stored, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_storage")]


def row(number: int, source: int | str | None = None) -> ManifestRow:
    kind = "clean" if source is None else "modified"
    return ManifestRow(
        number, f"{number}.png", kind, 1, "", f"{source or ''}.png", "a" if source else "", "", None, None
    )


def grouped(*rows: ManifestRow) -> list[tuple[list[int], int | None]]:
    sources = {row.number: int(row.source_filename[:-4]) for row in rows if row.source_filename[:-4].isdigit()}
    return [([row.number for row in chunk.rows], chunk.after) for chunk in chunks_of(rows, sources)]


class TestGrouping:
    def test_modified_images_are_with_their_source_which_is_first(self):
        assert grouped(row(2, 4), row(3), row(4), row(5, 3), row(6, 4)) == [([4, 2, 6, 3, 5], None)]

    def test_those_of_a_source_in_the_catalogue_are_together(self):
        assert grouped(row(2, "x"), row(3, "y"), row(4, "x")) == [([2, 4, 3], None)]

    def test_a_group_is_not_torn_apart_for_a_full_chunk(self, monkeypatch):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 4)
        assert grouped(row(2), row(3, 2), row(4, 2), row(5), row(6, 5)) == [([2, 3, 4], None), ([5, 6], None)]

    def test_very_many_of_one_source_come_after_it(self, monkeypatch):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 2)
        rows = [row(2), *[row(number, 2) for number in range(3, 7)], row(7)]
        assert grouped(*rows) == [([2, 3], None), ([4, 5], 0), ([6], 0), ([7], None)]

    def test_of_a_source_in_the_catalogue_there_is_nothing_to_wait_for(self, monkeypatch):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 2)
        assert grouped(*[row(number, "x") for number in range(2, 5)]) == [([2, 3], None), ([4], None)]

    def test_every_row_is_in_exactly_one_chunk(self):
        rows = [row(number, None if number % 3 else number - number % 9 + 1) for number in range(2, 500)]
        chunks = grouped(*rows)
        assert sorted(number for numbers, _ in chunks for number in numbers) == list(range(2, 500))
        assert max(len(numbers) for numbers, _ in chunks) <= CHUNK_ROWS


class TestPixels:
    def test_a_source_is_decoded_once_for_all_that_was_made_from_it(self, monkeypatch):
        decoded, decode = [], pixels.decode

        def note(content):
            decoded.append(content)
            return decode(content)

        monkeypatch.setattr(pixels, "decode", note)
        rows = [clean("a.png"), clean("b.png")]
        rows += [modified(f"{source}{n}.png", source_filename=f"{source}.png") for n in range(3) for source in "ab"]
        work_on(planned(rows))
        assert len(decoded) == len(rows) == Image.objects.count()

    def test_a_source_in_the_catalogue_is_read_once(self, monkeypatch):
        work_on(planned([clean()]))
        opened, read = [], import_chunk._stored_rendition
        monkeypatch.setattr(import_chunk, "_stored_rendition", lambda image: opened.append(image.pk) or read(image))
        work_on(planned([modified(f"{number}.png") for number in range(3)], contents={"0.png": png_bytes(7)}))
        assert opened == [Image.objects.get(kind="clean").pk]

    @pytest.mark.parametrize("chunk_rows", [1, 32])
    def test_distances_are_those_of_the_renditions(self, monkeypatch, chunk_rows):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", chunk_rows)
        source = pictures.noise()
        changed = np.asarray(source).copy()
        changed[0, 0] = changed[0, 0] ^ 1
        contents = {
            "clean.png": pictures.encoded(source),
            "close.png": pictures.encoded(pictures.Image.fromarray(changed)),
            "half.png": pictures.encoded(source.resize((20, 15))),
            "other.png": pictures.encoded(pictures.noise(1, (30, 30))),
        }
        rows = [clean(), modified("close.png"), modified("half.png"), modified("other.png")]
        work_on(planned(rows, contents=contents))
        close, half, other = Image.objects.filter(kind="modified").order_by("original_filename")
        assert (close.comparison, close.linf, close.changed_share) == ("same_size", 1, 1 / 1200)
        assert close.l2 == pytest.approx(3**0.5 / 255)
        assert half.comparison == "resampled"
        assert (other.comparison, other.linf, other.l2, other.changed_share, other.ssim, other.ciede2000) == (
            "not_comparable", None, None, None, None, None,
        )  # fmt: skip
        for image in (close, half):
            of_renditions = differences.measure(
                *[np.asarray(pixels.decode(stored(one.rendition)).image) for one in (image, image.source)]
            )
            assert (image.linf, image.l2, image.changed_share, image.ssim, image.ciede2000) == (
                of_renditions.linf, of_renditions.l2, of_renditions.changed_share, of_renditions.ssim,
                of_renditions.ciede2000,
            )  # fmt: skip
        clean_image = Image.objects.get(kind="clean")
        assert (clean_image.comparison, clean_image.linf, clean_image.ssim) == ("", None, None)

    def test_all_facts_of_a_file(self):
        profile = pictures.rgb_profile("Adobe RGB (1998)", pictures.ADOBE_RGB, 2.2)
        content = pictures.encoded(pictures.noise(), "JPEG", icc_profile=profile)
        work_on(planned([clean("a.jpg")], contents={"a.jpg": content}))
        image = Image.objects.get()
        assert (image.original_format, image.original_mode, image.original_profile) == (
            "JPEG",
            "RGB",
            "Adobe RGB (1998)",
        )
        assert (image.original_bytes, image.original_crc32) == (len(content), pictures.zlib.crc32(content))
        rendition = stored(image.rendition)
        assert (image.rendition_bytes, image.rendition_crc32) == (len(rendition), pictures.zlib.crc32(rendition))


class TestLeases:
    def test_each_chunk_is_one_workers(self, monkeypatch):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 1)
        batch = planned([clean("a.png"), clean("b.png")])
        first, second = import_state.claim_chunk(batch, uuid4()), import_state.claim_chunk(batch, uuid4())
        assert {first.chunk.number, second.chunk.number} == {0, 1}
        assert import_state.claim_chunk(batch, uuid4()) is None
        assert work_on(batch) is Outcome.OTHERS_ARE_AT_IT
        assert not Image.objects.exists()

    @pytest.mark.parametrize(("minutes", "is_free"), [(1, False), (3, True)])
    def test_a_chunk_is_free_again_when_its_worker_is_gone(self, minutes, is_free):
        batch = planned([clean()])
        assert not import_state.claim_chunk(batch, uuid4()).is_again
        batch.chunks.update(claimed_at=timezone.now() - timedelta(minutes=minutes))
        claim = import_state.claim_chunk(batch, uuid4())
        assert (claim is not None) == is_free
        assert claim is None or claim.is_again

    def test_a_task_that_is_delivered_again_takes_up_its_own_chunk_at_once(self):
        batch, worker = planned([clean()]), uuid4()
        import_state.claim_chunk(batch, worker)
        assert work_on(batch, worker) is Outcome.OVER
        assert Image.objects.count() == 1

    def test_a_lease_is_renewed_while_work_goes_on(self):
        batch = planned([clean()])
        claim = import_state.claim_chunk(batch, uuid4())
        long_ago = timezone.now() - timedelta(seconds=100)
        claim.chunk.claimed_at = long_ago
        batch.chunks.update(claimed_at=long_ago)
        import_state.renew_lease(claim)
        assert timezone.now() - batch.chunks.get().claimed_at < timedelta(seconds=5)

    def test_a_chunk_waits_for_that_of_its_source(self, monkeypatch):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 2)
        batch = planned([clean(), *[modified(f"{number}.png") for number in range(4)]])
        worker = uuid4()
        assert import_state.claim_chunk(batch, worker).chunk.number == 0
        assert import_state.claim_chunk(batch, uuid4()) is None
        assert work_on(batch, worker) is Outcome.OVER
        assert Image.objects.filter(kind="modified").exclude(linf=None).count() == 4
        assert_sound()


def begun(batch, worker=None, **changes):
    """A chunk whose worker was killed when all files were written and nothing was stored."""
    claim = import_state.claim_chunk(batch, worker or uuid4())
    with import_sources.opened(batch) as files:
        findings = ChunkWork(batch, claim.chunk, files, RowRules(batch)).findings(lambda: None)
    ImportChunk.objects.filter(pk=claim.chunk.pk).update(
        **{"claimed_at": timezone.now() - timedelta(minutes=3), **changes}
    )
    return claim, findings


class TestBegunAndNotFinished:
    def test_it_is_done_again_over_the_same_files(self):
        batch = planned([clean(), modified()])
        begun(batch)
        assert work_on(batch) is Outcome.OVER
        assert Image.objects.count() == 2
        assert_sound()

    def test_files_of_a_row_that_is_there_by_then_go(self):
        contents = {"clean.png": png_bytes(1), "modified.png": png_bytes(2)}
        batch = planned([clean(), modified()], contents=contents)
        begun(batch)
        work_on(planned([clean()], contents=contents))
        assert work_on(batch) is Outcome.OVER
        assert [row.result for row in batch.rows.all()] == ["already_there", "imported"]
        assert Image.objects.count() == 2
        assert_sound()

    def test_a_worker_that_was_only_slow_stores_nothing(self):
        batch = planned([clean(), modified()])
        slow, findings = begun(batch)
        work_on(batch)
        before = list(Image.objects.values())
        with pytest.raises(import_state.ImportTakenOver):
            import_commit.commit(batch, slow, findings, RowRules(batch))
        assert list(Image.objects.values()) == before
        batch.refresh_from_db()
        assert (batch.status, batch.imported_count) == (ImportStatus.DONE, 2)
        assert_sound()

    def test_one_that_is_over_stores_nothing(self):
        batch = planned([clean()])
        claim, findings = begun(batch, claimed_at=timezone.now())
        import_state.close(batch, ImportStatus.FAILED, "stopped")
        with pytest.raises(import_state.ImportTakenOver):
            import_commit.commit(batch, claim, findings, RowRules(batch))
        assert not Image.objects.exists()
        assert_sound()


class TestRowsThatKill:
    def test_rows_of_such_a_chunk_are_tried_one_by_one(self):
        batch = planned([clean("a.png"), modified(source_filename="a.png"), clean("b.png")])
        batch.chunks.update(attempts=MAX_ATTEMPTS, claimed_by=uuid4())
        assert work_on(batch) is Outcome.OVER
        assert [row.chunk.number for row in batch.rows.all()] == [1, 3, 2]
        assert Image.objects.count() == 3
        batch.refresh_from_db()
        assert batch.imported_count == 3
        assert_sound()

    def test_one_alone_is_given_up_and_the_others_go_in(self):
        batch = planned([clean("a.png"), clean("b.png"), modified(source_filename="b.png")])
        claim = import_state.claim_chunk(batch, uuid4())
        import_state.split(claim, list(claim.chunk.rows.all()))
        killer = batch.rows.get(filename="b.png")
        ImportChunk.objects.filter(pk=killer.chunk_id).update(attempts=MAX_ATTEMPTS, claimed_by=uuid4())
        assert work_on(batch) is Outcome.OVER
        assert [row.result for row in batch.rows.all()] == ["imported", "failed", "failed"]
        assert "worker was lost 3 times" in batch.rows.get(filename="b.png").message
        assert "mend its row first" in batch.rows.get(filename="modified.png").message
        batch.refresh_from_db()
        assert (batch.status, batch.imported_count, batch.failed_count) == (ImportStatus.DONE, 1, 2)
        assert_sound()

    def test_chunks_that_wait_for_the_source_go_on_waiting(self, monkeypatch):
        monkeypatch.setattr(import_plan, "CHUNK_ROWS", 2)
        batch = planned([clean(), *[modified(f"{number}.png") for number in range(3)]])
        batch.chunks.filter(number=0).update(attempts=MAX_ATTEMPTS, claimed_by=uuid4())
        assert work_on(batch) is Outcome.OVER
        assert ImportRow.objects.filter(result="imported").count() == 4

    def test_an_error_that_is_told_does_not_count(self, monkeypatch):
        batch = planned([clean()])

        def storage_is_away(*arguments):
            raise ConnectionError

        monkeypatch.setattr(ChunkWork, "_read", storage_is_away)
        for _ in range(MAX_ATTEMPTS + 2):
            with pytest.raises(ConnectionError):
                work_on(batch)
        monkeypatch.undo()
        assert work_on(batch) is Outcome.OVER
        assert Image.objects.count() == 1
