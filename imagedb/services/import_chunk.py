"""What becomes of the rows of one chunk: each is read, held against the rules, decoded and measured.

Files of new images are written on the way; rows of the database only at the end, all at once (import_commit).
"""

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import numpy.typing as npt

from imagedb import differences, pixels
from imagedb.image_files import FileProblem, ImageFiles
from imagedb.manifest import ManifestRow
from imagedb.models import Image, ImageKind, ImportBatch, ImportChunk, ImportRow
from imagedb.services import import_notes, import_store
from imagedb.services.import_rules import (
    Candidate,
    RowProblem,
    RowRules,
    check_source_class,
    compare_with_existing,
    image_already_there,
    only_clean,
)

Pixels = npt.NDArray[np.uint8]  # (height, width, 3), sRGB
Result = ImportRow.Result


@dataclass
class Finding:
    """What is to become of a row: ``row`` says it, not saved yet. A new image is not saved either."""

    row: ImportRow
    candidate: Candidate | None = None  # None if it failed
    image: Image | None = None
    pixels: Pixels | None = field(default=None, repr=False)  # of a clean image just decoded, while its group is at work
    _messages: list[str] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        return self.row.result == Result.IMPORTED

    def fail(self, column: str, message: str) -> None:
        """The row cannot go in."""
        import_notes.fail(self.row, [(column, message)])
        self.image = self.pixels = None

    def is_there(self, image: Image, messages: list[str]) -> None:
        """The catalogue has the image already."""
        self.row.result, self.image = Result.ALREADY_THERE, image
        self._messages = messages
        self.say([])

    def is_to_be_imported(self, image: Image, messages: Iterable[str]) -> None:
        """The row's image is new."""
        self.row.result, self.image = Result.IMPORTED, image
        self.row.message = "; ".join(messages)

    def say(self, added: list[str]) -> None:
        """What has been added to an image that was there, instead of what an earlier try to do so said."""
        self.row.message = "; ".join([*self._messages, *added])


@dataclass
class _Source:
    """The clean image of a modified one, and its pixels once they are asked for."""

    image: Image
    pixels: Callable[[], Pixels]


class ChunkWork:
    """Handles the rows of one chunk. Little is in memory at a time: one image, and the one it was made from."""

    def __init__(self, batch: ImportBatch, chunk: ImportChunk, files: ImageFiles, rules: RowRules) -> None:
        self._batch = batch
        self._files = files
        self._rules = rules
        self.rows = list(chunk.rows.filter(result=Result.WAITING).order_by("row_number"))
        self._manifest_rows = {row.row_number: ManifestRow(**row.values["manifest"]) for row in self.rows}
        self._found: dict[int, Finding] = {}
        self._new_images: dict[str, list[Image]] = defaultdict(list)  # of this chunk, by digest
        self._pixels: tuple[object, Pixels] | None = None  # of the latest source read, and which it is
        self._rows_of_sources = self._load_rows_of_sources()
        self._catalogue = rules.sources_in_catalogue(
            {
                self._manifest_rows[row.row_number].source_filename
                for row in self.rows
                if self._is_modified(row) and "source_row" not in row.values
            }
        )

    def findings(self, after_row: Callable[[], None]) -> list[Finding]:
        """Handle every row; ``after_row`` is called after each. Writes the files of new images, unless it is dry."""
        for group in self._groups():
            for row in group:
                finding = self._found[row.row_number] = Finding(row)
                try:
                    self._handle(finding)
                except RowProblem as problem:
                    finding.fail(problem.column, problem.message)
                after_row()
            for row in group:
                self._found[row.row_number].pixels = None
        return list(self._found.values())

    def _is_modified(self, row: ImportRow) -> bool:
        return self._manifest_rows[row.row_number].kind == ImageKind.MODIFIED

    def _groups(self) -> list[list[ImportRow]]:
        """The rows by source, each source before what was made from it."""
        groups: dict[object, list[ImportRow]] = defaultdict(list)
        for row in self.rows:
            if self._is_modified(row):
                name = self._manifest_rows[row.row_number].source_filename
                groups[row.values.get("source_row", name)].append(row)
            else:
                groups[row.row_number].insert(0, row)
        return list(groups.values())

    def _load_rows_of_sources(self) -> dict[int, ImportRow]:
        elsewhere = {row.values["source_row"] for row in self.rows if "source_row" in row.values} - set(
            self._manifest_rows
        )
        rows = self._batch.rows.filter(row_number__in=elsewhere).select_related("image__image_class")
        return {row.row_number: row for row in rows} if elsewhere else {}

    def _handle(self, finding: Finding) -> None:
        row = self._manifest_rows[finding.row.row_number]
        image_class = self._rules.image_class(row)
        predicted_class = self._rules.predicted_class(row, image_class)
        source = None
        if row.kind == ImageKind.MODIFIED:
            source = self._source(finding.row, row)
            check_source_class(row, image_class, source.image)
        content = self._read(finding.row)
        finding.candidate = candidate = Candidate(
            row=row,
            digest=hashlib.sha256(content).hexdigest(),
            image_class=image_class,
            predicted_class=predicted_class,
            source=source.image if source else None,
            attack=self._rules.attack(row),
            target_model=self._rules.target_model(row),
        )
        same_bytes = self._rules.images_of_digest(candidate.digest) + self._new_images[candidate.digest]
        existing = image_already_there(candidate, same_bytes)
        if existing is not None:
            finding.is_there(existing, compare_with_existing(candidate, existing))
            return
        self._decode(finding, candidate, content, source)

    def _read(self, row: ImportRow) -> bytes:
        try:
            return self._files.read(row.values["file"])
        except KeyError as error:
            raise RowProblem("filename", f"{row.values['file']} has gone from {self._files.label}") from error
        except FileProblem as problem:
            raise RowProblem("filename", str(problem)) from problem

    def _decode(self, finding: Finding, candidate: Candidate, content: bytes, source: _Source | None) -> None:
        decoded = _decoded(content)
        own_pixels = np.asarray(decoded.image)
        image = Image(
            kind=candidate.row.kind,
            image_class=candidate.image_class,
            source=candidate.source,
            attack=candidate.attack,
            target_model=candidate.target_model if source else None,
            original_filename=candidate.row.filename,
            original_sha256=candidate.digest,
            original_bytes=len(content),
            original_crc32=zlib.crc32(content),
            original_format=decoded.format,
            original_mode=decoded.mode,
            original_profile=decoded.profile,
            width=decoded.width,
            height=decoded.height,
            visibility=self._batch.visibility,
            group=self._batch.group,
            licence=self._batch.licence,
            attribution=self._batch.attribution,
            is_demo=self._batch.is_demo,
            uploaded_by=self._batch.created_by,
            import_batch=self._batch,
        )
        if source is not None:
            source_pixels = source.pixels()
            if np.array_equal(own_pixels, source_pixels):
                raise RowProblem("filename", f"no pixel differs from its source {source.image.original_filename}")
            if not self._batch.is_dry_run:
                _say_distances(image, differences.measure(own_pixels, source_pixels))
        else:
            finding.pixels = own_pixels
        if not self._batch.is_dry_run:
            self._write(finding.row, image, content, decoded)
        self._new_images[candidate.digest].append(image)
        finding.is_to_be_imported(image, decoded.notes)

    def _write(self, row: ImportRow, image: Image, content: bytes, decoded: pixels.DecodedImage) -> None:
        rendition = pixels.rendition_png(decoded.image)
        image.rendition_sha256 = hashlib.sha256(rendition).hexdigest()
        image.rendition_bytes = len(rendition)
        image.rendition_crc32 = zlib.crc32(rendition)
        import_store.write_files(
            row,
            image,
            image_format=decoded.format,
            original=content,
            rendition=rendition,
            thumbnail=pixels.thumbnail(decoded.image),
        )

    def _source(self, row: ImportRow, manifest_row: ManifestRow) -> _Source:
        """Find the image a row was made from. Raises RowProblem."""
        number = row.values.get("source_row")
        if number is None:
            filename = manifest_row.source_filename
            image = only_clean(filename, self._catalogue[filename])
            return _Source(image, lambda: self._rendition_of(image))
        if number in self._found:
            return self._source_in_chunk(self._found[number])
        return self._source_in_other_chunk(self._rows_of_sources.get(number), manifest_row.source_filename)

    def _source_in_chunk(self, source: Finding) -> _Source:
        image, own_pixels = source.image, source.pixels
        if image is None:
            raise source_failed(source.row.filename)
        if own_pixels is not None:
            return _Source(image, lambda: own_pixels)
        if image.pk is None:  # a row like it has brought it, earlier in this chunk, in a group of its own
            return _Source(image, lambda: self._decoded_anew(source.row))
        return _Source(image, lambda: self._rendition_of(image))

    def _source_in_other_chunk(self, row: ImportRow | None, filename: str) -> _Source:
        if row is None or row.result not in (Result.IMPORTED, Result.ALREADY_THERE):
            raise source_failed(filename)
        image = row.image
        if image is not None:
            return _Source(image, lambda: self._rendition_of(image))
        if not self._batch.is_dry_run:
            raise RowProblem("source_filename", f"{filename} was imported and then deleted; import it again")
        stand_in = Image(
            kind=ImageKind.CLEAN,
            image_class=self._rules.image_class(ManifestRow(**row.values["manifest"])),
            original_filename=row.filename,
            original_sha256=row.values["planned"][0],
        )
        return _Source(stand_in, lambda: self._decoded_anew(row))

    def _rendition_of(self, image: Image) -> Pixels:
        return self._kept(image.pk, lambda: _stored_rendition(image))

    def _decoded_anew(self, row: ImportRow) -> Pixels:
        return self._kept(row.file_token, lambda: np.asarray(_decoded(self._read(row)).image))

    def _kept(self, key: int | UUID, read: Callable[[], Pixels]) -> Pixels:
        """The pixels of a source, read once for all that was made from it."""
        if self._pixels is None or self._pixels[0] != key:
            self._pixels = None  # first, so that there are never two in memory
            self._pixels = (key, read())
        return self._pixels[1]


def _decoded(content: bytes) -> pixels.DecodedImage:
    try:
        return pixels.decode(content)
    except pixels.UnreadableImage as error:
        raise RowProblem("filename", error.reason) from error


def _stored_rendition(image: Image) -> Pixels:
    try:
        with image.rendition.open("rb") as file:
            content = file.read()
    except FileNotFoundError as error:
        raise RowProblem(
            "source_filename",
            f"the storage has lost the file of {image.original_filename} ({image.public_id}); ask an administrator to "
            "run verify_storage",
        ) from error
    return np.asarray(_decoded(content).image)


def source_failed(filename: str) -> RowProblem:
    return RowProblem("source_filename", f"{filename} could not be imported itself; mend its row first")


def _say_distances(image: Image, difference: differences.Difference) -> None:
    image.comparison = difference.comparison
    image.linf = difference.linf
    image.l2 = difference.l2
    image.changed_share = difference.changed_share
    image.ssim = difference.ssim
    image.ciede2000 = difference.ciede2000
