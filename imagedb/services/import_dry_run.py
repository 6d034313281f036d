"""The end of a dry run: rows that would have become one image, found in different chunks."""

from collections import Counter, defaultdict

from imagedb.manifest import ManifestRow
from imagedb.models import Attack, Image, ImageKind, ImportBatch, ImportRow, TargetModel
from imagedb.services import import_notes
from imagedb.services.import_rules import (
    Candidate,
    RowProblem,
    RowRules,
    compare_with_existing,
    image_already_there,
)


def settle(batch: ImportBatch) -> None:
    """Say of rows with the same bytes which would be imported, and which would find the image there by then."""
    planned = batch.rows.filter(result=ImportRow.Result.IMPORTED)
    count_of_digest = Counter(
        values["planned"][0] for values in planned.values_list("values", flat=True).iterator(chunk_size=2000)
    )
    doubtful = [row for row in planned.iterator(chunk_size=2000) if count_of_digest[row.values["planned"][0]] > 1]
    doubtful.sort(key=lambda row: (row.values["manifest"]["kind"] != ImageKind.CLEAN, row.row_number))
    rules = RowRules(batch)
    images: dict[str, list[Image]] = defaultdict(list)
    changed = []
    for row in doubtful:
        candidate = _candidate(row, rules)
        try:
            existing = image_already_there(candidate, images[candidate.digest])
            if existing is None:
                images[candidate.digest].append(_image(candidate))
                continue
            row.message = "; ".join(compare_with_existing(candidate, existing))
            row.result = ImportRow.Result.ALREADY_THERE
        except RowProblem as problem:
            import_notes.fail(row, [(problem.column, problem.message)])
        changed.append(row)
    ImportRow.objects.bulk_update(changed, ["result", "message", "values"], batch_size=100)


def _candidate(row: ImportRow, rules: RowRules) -> Candidate:
    manifest_row = ManifestRow(**row.values["manifest"])
    digest, attack, target_model = row.values["planned"]
    return Candidate(
        row=manifest_row,
        digest=digest,
        image_class=rules.image_class(manifest_row),
        predicted_class=None,
        source=None,
        attack=Attack(slug=attack) if attack else None,
        target_model=TargetModel(slug=target_model) if target_model else None,
    )


def _image(candidate: Candidate) -> Image:
    return Image(
        kind=candidate.row.kind,
        image_class=candidate.image_class,
        attack=candidate.attack,
        target_model=candidate.target_model,
        original_filename=candidate.row.filename,
    )
