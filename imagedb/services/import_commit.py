"""What a chunk leaves in the database: all of it in one transaction, or nothing."""

from collections import Counter
from collections.abc import Callable, Iterable

from django.db import IntegrityError, transaction

from imagedb.models import Image, ImageKind, ImportBatch, ImportRow, Prediction, TargetModel
from imagedb.services import import_notes, import_state, import_store
from imagedb.services.import_chunk import Finding, source_failed
from imagedb.services.import_rules import (
    Candidate,
    Named,
    RowProblem,
    RowRules,
    compare_with_existing,
    image_already_there,
)

Notes = list[str]
ROW_FIELDS = ["result", "message", "image", "values"]


def commit(batch: ImportBatch, claim: import_state.Claim, findings: list[Finding], rules: RowRules) -> None:
    """Store what was found out about a chunk's rows. Raises ImportTakenOver, having stored nothing.

    If the database refuses it, another import has put the same images in meanwhile, and a second look finds them. If
    it still refuses, the rows go in one at a time, and those it refuses fail.
    """
    with_files = [finding for finding in findings if finding.is_new]
    try:
        _store(batch, claim, findings, _put_in)
    except IntegrityError:
        _look_again(findings, rules)
        try:
            _store(batch, claim, findings, _put_in)
        except IntegrityError:
            _store(batch, claim, findings, _put_in_one_by_one)
    # Files of rows that have become no image: of this try, and of one before that was cut off.
    begun = findings if claim.is_again else with_files
    import_store.discard_files(finding.row for finding in begun if not finding.is_new)
    if claim.is_again:
        import_store.discard_unfinished(finding.row for finding in findings)


def _store(
    batch: ImportBatch,
    claim: import_state.Claim,
    findings: list[Finding],
    put_in: Callable[[ImportBatch, list[Finding]], Notes],
) -> None:
    with transaction.atomic():
        notes = put_in(batch, findings)
        for finding in findings:
            finding.row.image = finding.image if finding.image is not None and finding.image.pk else None
            if batch.is_dry_run and finding.candidate and finding.is_new:
                finding.row.values = {**finding.row.values, "planned": import_notes.identity(finding.candidate)}
        ImportRow.objects.bulk_update([finding.row for finding in findings], ROW_FIELDS)
        import_state.mark_done(claim, Counter(finding.row.result for finding in findings), notes)


def _put_in(batch: ImportBatch, findings: list[Finding]) -> Notes:
    """Create the new images with their predictions, and add to those that are there what the rows know more.

    Always in the same order, so that two imports of the same images wait for each other instead of for ever.
    """
    good = [(finding, finding.candidate) for finding in findings if finding.candidate and finding.image is not None]
    attacks, attack_notes = _saved(batch, [candidate.attack for _, candidate in good])
    models, model_notes = _saved(batch, [candidate.target_model for _, candidate in good])
    if batch.is_dry_run:
        return attack_notes + model_notes
    new = sorted(
        ((finding.image, candidate) for finding, candidate in good if finding.is_new and finding.image),
        key=lambda one: (one[1].row.kind != ImageKind.CLEAN, one[1].digest, one[1].row.number),
    )
    for image, candidate in new:
        # A transaction that was rolled back has left ids behind.
        image.pk, image._state.adding = None, True
        image.attack = candidate.attack and attacks[candidate.attack.slug]
        if image.kind == ImageKind.MODIFIED:
            image.target_model = candidate.target_model and models[candidate.target_model.slug]
    for kind in (ImageKind.CLEAN, ImageKind.MODIFIED):
        of_kind = [(image, candidate) for image, candidate in new if image.kind == kind]
        for image, candidate in of_kind:
            image.source = candidate.source
        Image.objects.bulk_create(image for image, _ in of_kind)
    Prediction.objects.bulk_create(
        Prediction(
            image=image,
            target_model=models[candidate.target_model.slug],
            predicted_class=candidate.predicted_class,
            confidence=candidate.row.confidence,
        )
        for image, candidate in new
        if candidate.target_model and candidate.predicted_class
    )
    there = [(finding, candidate, finding.image) for finding, candidate in good if not finding.is_new]
    for finding, candidate, existing in sorted(there, key=lambda one: (one[2].pk if one[2] else 0, one[1].row.number)):
        if existing is not None:
            added = _complete(candidate, existing, candidate.target_model and models[candidate.target_model.slug])
            finding.say(added)
    return attack_notes + model_notes


def _put_in_one_by_one(batch: ImportBatch, findings: list[Finding]) -> Notes:
    notes: Notes = []
    # Sources before what was made from them, and new images before rows that find them there.
    good = [(finding, finding.candidate) for finding in findings if finding.candidate and finding.image is not None]
    good.sort(key=lambda one: (not one[0].is_new, one[1].row.kind != ImageKind.CLEAN))
    for finding, candidate in good:
        source = candidate.source
        if source is not None and source.pk is None and not batch.is_dry_run:
            _fail(finding, source_failed(source.original_filename))
            continue
        try:
            with transaction.atomic():
                notes += _put_in(batch, [finding])
        except IntegrityError as error:
            if finding.is_new and finding.image is not None:
                finding.image.pk = None
            reason = str(error).splitlines()[0]
            finding.fail("", f"the database refuses it: {reason}")
    return notes


def _look_again(findings: list[Finding], rules: RowRules) -> None:
    """Find the images that another import has put in since the rows were looked at; sources come first."""
    rules.forget_unsaved()
    instead: dict[int, Image | None] = {}  # by id() of an image that is not new after all, or has failed
    for finding in findings:
        candidate, image = finding.candidate, finding.image
        if candidate is None or image is None:
            continue
        try:
            candidate.attack, candidate.target_model = rules.attack(candidate.row), rules.target_model(candidate.row)
            if candidate.source is not None:
                candidate.source = _still_there(candidate.source, instead)
            if finding.is_new:
                existing = image_already_there(candidate, rules.images_of_digest(candidate.digest))
                if existing is not None:
                    instead[id(image)] = existing
                    finding.is_there(existing, compare_with_existing(candidate, existing))
            else:
                finding.image = _still_there(image, instead)
        except RowProblem as problem:
            instead[id(image)] = None
            _fail(finding, problem)


def _still_there(image: Image, instead: dict[int, Image | None]) -> Image:
    found = instead.get(id(image), image)
    if found is None:
        raise source_failed(image.original_filename)
    return found


def _fail(finding: Finding, problem: RowProblem) -> None:
    finding.fail(problem.column, problem.message)


def _saved(batch: ImportBatch, wanted: Iterable[Named | None]) -> tuple[dict[str, Named], Notes]:
    """Attacks or target models by slug, and notes of those that are new: each is created once, whoever is first.

    Those given stay as they were, in case of a roll-back. A dry run creates none.
    """
    saved: dict[str, Named] = {}
    notes = []
    for named in sorted({one.slug: one for one in wanted if one is not None}.values(), key=lambda one: one.slug):
        is_new = False
        if named.pk is None and not batch.is_dry_run:
            named, is_new = type(named)._default_manager.get_or_create(
                slug=named.slug, defaults={"name": named.name, "is_demo": named.is_demo}
            )
        saved[named.slug] = named
        if is_new or named.pk is None:
            notes.append(import_notes.created(named, dry_run=batch.is_dry_run))
    return saved, notes


def _complete(candidate: Candidate, existing: Image, target_model: TargetModel | None) -> list[str]:
    """Add to an image that is there what the row knows more: its target model, a new or changed prediction.

    Returns what was added, for the record.
    """
    messages: list[str] = []
    if target_model is None:
        return messages
    # By a query, so that the image in memory stays as it was in case of a roll-back.
    without_model = Image.objects.filter(pk=existing.pk, kind=ImageKind.MODIFIED, target_model=None)
    if existing.target_model is None and without_model.update(target_model=target_model):
        messages.append(f"its target model was set to {target_model}")
    if candidate.predicted_class:
        prediction = Prediction.objects.filter(image=existing, target_model=target_model).first()
        if prediction is None:
            Prediction.objects.create(
                image=existing,
                target_model=target_model,
                predicted_class=candidate.predicted_class,
                confidence=candidate.row.confidence,
            )
            messages.append("its prediction was added")
        elif _differs(prediction, candidate):
            prediction.predicted_class = candidate.predicted_class
            prediction.confidence = candidate.row.confidence
            prediction.save(update_fields=["predicted_class", "confidence"])
            messages.append("its prediction was updated")
    return messages


def _differs(prediction: Prediction, candidate: Candidate) -> bool:
    """Whether the row says something else than the catalogue. A row without a confidence says nothing of it."""
    confidence = candidate.row.confidence
    return prediction.predicted_class != candidate.predicted_class or (
        confidence is not None and confidence != prediction.confidence
    )
