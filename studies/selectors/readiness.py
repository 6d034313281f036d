"""Whether a study can be launched, and what to do where it cannot."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import F, Q
from django.db.models.fields.files import FieldFile

from imagedb.models import Image, ImageKind, Visibility
from scooter_site.common.words import counted
from studies import pay
from studies.flow import Outcome
from studies.models import (
    ColourPlate,
    CompletionCode,
    Dataset,
    DatasetImage,
    Panel,
    Stimulus,
    StimulusPurpose,
    Study,
    StudyText,
    TextKind,
)
from studies.presets import placeholder_problem
from studies.selectors.images import usable_clean_images, usable_modified_images
from studies.selectors.studies import newest_texts
from studies.way_back import parameter_problem, return_url_problem

# Of the datasets' images, which may be thousands, at most this many are looked for in the storage, besides all check
# images and plates: on object storage each one is a request.
DATASET_FILES_LOOKED_AT = 200
# More modified images than this, as a share, must not differ in size from their sources.
LARGEST_SHARE_OF_OTHER_SIZES = 0.1


@dataclass(frozen=True)
class ReadinessLine:
    """One condition for launching; ``detail`` says what was found and, where not ok, how to mend it.

    ``look_at``: nothing that keeps the study from being launched, but something to decide about before.
    """

    ok: bool
    label: str
    detail: str
    look_at: bool = False


def readiness(study: Study, *, look_for_files: bool = False) -> list[ReadinessLine]:
    """Everything a launch needs, in the order in which a researcher sees to it.

    ``look_for_files``: also whether the files are in the storage, hundreds of requests on object storage. For the
    launch itself, not for pages that are looked at often.
    """
    return [
        _images(study),
        _sizes(study),
        _secrecy(study),
        _datasets(study),
        _check_images(study),
        _plates(study),
        *([_files(study)] if look_for_files else []),
        _attention_checks(study),
        _texts(study),
        _contact(study),
        *([_way_back(study)] if study.panel == Panel.DIRECT else []),
        _codes(study),
        _pay(study),
    ]


def _images(study: Study) -> ReadinessLine:
    label = "Enough images of each kind"
    clean, modified = usable_clean_images(study).count(), usable_modified_images(study).count()
    clean_needed = study.dataset_count * study.clean_per_dataset + study.check_source_count
    modified_needed = study.dataset_count * study.modified_per_dataset
    found = (
        f"{counted(clean, 'clean image')} (datasets and checks need {clean_needed}), {modified} modified (need "
        f"{modified_needed})."
    )
    missing = []
    if clean < clean_needed:
        missing.append(counted(clean_needed - clean, "more clean image"))
    if modified < modified_needed:
        missing.append(
            counted(modified_needed - modified, "more modified image")
            + f" of {study.attack} against {study.target_model}"
        )
    if missing:
        return ReadinessLine(
            False,
            label,
            f"{found} Import {' and '.join(missing)}, or plan fewer datasets. Private images that the creator of the "
            "study may not see are not used.",
        )
    return ReadinessLine(True, label, found)


def _sizes(study: Study) -> ReadinessLine:
    """Whether the size of a picture could tell its kind.

    Photographs have many sizes and a dataset never shows a modified image beside its source, so the sizes of the two
    kinds need not occur in both. What must hold is that the attack kept the size: then both kinds come from the same
    mixture of sizes.
    """
    label = "Size does not tell the kind"
    if study.materials_built_at is None:
        modified = usable_modified_images(study)
    else:
        shown = DatasetImage.objects.filter(study=study)
        modified = Image.objects.filter(kind=ImageKind.MODIFIED, pk__in=shown.values("image"))
    total = modified.count()
    other = modified.filter(~Q(width=F("source__width")) | ~Q(height=F("source__height")))
    count = other.count()
    if count > LARGEST_SHARE_OF_OTHER_SIZES * total:
        name, width, height, source_width, source_height = other.order_by("id").values_list(
            "original_filename", "width", "height", "source__width", "source__height"
        )[0]
        return ReadinessLine(
            False,
            label,
            f"{count} of {total} modified images {'differs' if count == 1 else 'differ'} in width or height from the "
            "clean source, such as "
            f"{name}: {width} x {height} instead of {source_width} x {source_height} pixels. Participants could tell "
            "modified images by their size. Import both versions in one size, for example the clean images scaled and "
            "cropped as the attack's input was, and build the materials again.",
        )
    found = f"{total - count} of {total} modified images have the size of their source."
    if count:
        return ReadinessLine(True, label, f"{found} The size of the others could tell their kind.", look_at=True)
    return ReadinessLine(True, label, found)


def _secrecy(study: Study) -> ReadinessLine:
    """Public images state their kind to everybody. No fault: the photographs of many data sets are public anyway."""
    label = "Kinds are not published"
    usable = (usable_clean_images(study), usable_modified_images(study))
    count = sum(images.filter(visibility=Visibility.PUBLIC).count() for images in usable)
    if count:
        return ReadinessLine(
            True,
            label,
            f"{count} of the usable images are public: whoever compares files can look their kind up. Better make them "
            "public when the study has closed.",
            look_at=True,
        )
    return ReadinessLine(True, label, "No usable image is public.")


def _datasets(study: Study) -> ReadinessLine:
    label = "Datasets with exact counts"
    if study.materials_built_at is None:
        return ReadinessLine(False, label, study.materials_error or "The materials are not built yet: build them.")
    # By digest, for the same picture may be in the catalogue once for each group of accounts.
    images: dict[int, list[tuple[str, str, str | None]]] = {}
    for number in Dataset.objects.filter(study=study).values_list("number", flat=True):
        images[number] = []
    rows = DatasetImage.objects.filter(study=study).values_list(
        "dataset__number", "image__original_sha256", "image__kind", "image__source__original_sha256"
    )
    for number, picture, kind, source in rows:
        images[number].append((picture, kind, source))
    problems = []
    if len(images) != study.dataset_count:
        problems.append(f"{counted(len(images), 'dataset')} instead of {study.dataset_count}")
    for number, members in images.items():
        clean = {picture for picture, kind, _ in members if kind == ImageKind.CLEAN}
        sources = [source for _, kind, source in members if kind == ImageKind.MODIFIED]
        if (len(clean), len(sources)) != (study.clean_per_dataset, study.modified_per_dataset):
            problems.append(f"dataset {number} holds {len(clean)} clean and {len(sources)} modified images")
        if clean.intersection(sources):
            problems.append(f"dataset {number} holds a modified image beside its own source")
    if problems:
        return ReadinessLine(False, label, f"{_listed(problems)}. Build the materials again.")
    return ReadinessLine(
        True,
        label,
        f"{study.dataset_count} x ({study.clean_per_dataset} clean + {study.modified_per_dataset} modified).",
    )


def _check_images(study: Study) -> ReadinessLine:
    label = "Examples and check images"
    stimuli = Stimulus.objects.filter(study=study)
    pairs = stimuli.filter(purpose=StimulusPurpose.COMPREHENSION).count()
    corrupted = stimuli.filter(purpose=StimulusPurpose.ATTENTION).count()
    examples = stimuli.filter(purpose=StimulusPurpose.EXAMPLE).count()
    found = ", ".join(
        [
            counted(examples, "example image"),
            counted(pairs, "image") + " for pairs",
            counted(corrupted, "corrupted image"),
        ]
    )
    ok = pairs == 2 * study.comprehension_pair_count and corrupted == study.corrupted_check_count and examples > 0
    return ReadinessLine(ok, label, f"{found}." if ok else f"{found}. Build the materials again.")


def _plates(study: Study) -> ReadinessLine:
    label = "Colour plates"
    if not study.plate_count:
        return ReadinessLine(True, label, "This study has no colour check.")
    digits = list(ColourPlate.objects.values_list("digit", flat=True))
    blank = digits.count(None)
    different = len(set(digits) - {None})
    found = f"The pool has {counted(different, 'different digit')} and {counted(blank, 'plate')} without one"
    if different < study.plate_count - 1 or not different or not blank:
        return ReadinessLine(False, label, f"{found}: too few for {study.plate_count}. Build the materials again.")
    return ReadinessLine(True, label, f"{found}.")


def _files(study: Study) -> ReadinessLine:
    label = "Image files within reach"
    rows = DatasetImage.objects.filter(study=study).select_related("image").order_by("id")
    stride = max(1, math.ceil(rows.count() / DATASET_FILES_LOOKED_AT))  # evenly over all datasets
    files: list[FieldFile] = [
        *(row.image.rendition for row in rows[::stride]),
        *(stimulus.file for stimulus in Stimulus.objects.filter(study=study)),
    ]
    if study.plate_count:
        files += [plate.file for plate in ColourPlate.objects.all()]
    missing = _missing(files)
    if missing:
        return ReadinessLine(
            False,
            label,
            f"{len(missing)} of the {len(files)} files looked for {'is' if len(missing) == 1 else 'are'} not in the "
            f"storage, such as {missing[0]}. "
            "Check that the storage is reachable and complete, then build the materials again.",
        )
    return ReadinessLine(
        bool(files), label, f"{counted(len(files), 'file')} looked for, all there." if files else "None yet."
    )


def _missing(files: Iterable[FieldFile]) -> list[str]:
    return [str(file.name) for file in files if not file or not file.storage.exists(str(file.name))]


def _attention_checks(study: Study) -> ReadinessLine:
    label = "Attention checks"
    checks, most = study.attention_check_count, study.most_attention_checks
    images = study.clean_per_dataset + study.modified_per_dataset
    if checks > most:
        return ReadinessLine(
            False,
            label,
            f"{counted(checks, 'check')} cannot stand among {counted(images, 'image')} without being first, last or "
            "adjacent: "
            f"set at most {most}.",
        )
    return ReadinessLine(True, label, f"{checks} among {counted(images, 'image')}.")


def _texts(study: Study) -> ReadinessLine:
    label = "Texts"
    present = set(StudyText.objects.filter(study=study).exclude(body="").values_list("kind", flat=True))
    missing = [kind.label.lower() for kind in TextKind if kind not in present]
    if missing:
        return ReadinessLine(False, label, f"Write the text for: {', '.join(missing)}.")
    problems = [
        f"{text.get_kind_display()}: {problem}"
        for text in newest_texts(study)
        if (problem := placeholder_problem(text.body))
    ]
    if problems:
        return ReadinessLine(False, label, " ".join(problems))
    return ReadinessLine(True, label, "Consent, instructions, question and feedback are there.")


def _contact(study: Study) -> ReadinessLine:
    label = "Contact for participants"
    if not study.contact_email:
        return ReadinessLine(False, label, "The consent names a contact: set an email address that someone reads.")
    return ReadinessLine(True, label, study.contact_email)


def _way_back(study: Study) -> ReadinessLine:
    label = "Link and return address"
    if problem := parameter_problem(study.participant_parameter, study.session_parameter) or return_url_problem(
        study.return_url
    ):
        return ReadinessLine(False, label, problem)
    named = f"“{study.participant_parameter}” names the participant"
    if study.session_parameter:
        named += f", and “{study.session_parameter}” their session; links without both are refused"
    back = f"They go back to {study.return_url}." if study.return_url else "They copy their code from the last page."
    return ReadinessLine(True, label, f"{named}. {back}")


def _codes(study: Study) -> ReadinessLine:
    label = "A completion code for each outcome"
    present = set(CompletionCode.objects.filter(study=study).exclude(code="").values_list("outcome", flat=True))
    missing = [outcome.label.lower() for outcome in Outcome if outcome.has_code and outcome not in present]
    if missing:
        return ReadinessLine(False, label, f"Add a code for: {', '.join(missing)}.")
    return ReadinessLine(True, label, f"{len(present)} codes.")


def _pay(study: Study) -> ReadinessLine:
    label = "Pay"
    amounts = (
        f"{study.currency} {pay.amount_due(Outcome.COMPLETED, study.rates)} for a complete run, "
        f"{pay.amount_due(Outcome.COLOUR_CHECK_FAILED, study.rates)} after a failed colour check, "
        f"{pay.amount_due(Outcome.COMPREHENSION_FAILED, study.rates)} after a failed comprehension check."
    )
    problems = pay.minimum_problems(
        study.rates,
        has_colour_check=study.plate_count > 0,
        has_comprehension_check=study.comprehension_pair_count > 0,
    )
    if problems and study.panel == Panel.PROLIFIC:
        return ReadinessLine(False, label, f"{amounts} {' '.join(problems)}")
    if problems:
        return ReadinessLine(True, label, f"{amounts} On Prolific this would not do: {' '.join(problems)}")
    return ReadinessLine(True, label, amounts)


def _listed(problems: list[str]) -> str:
    shown = "; ".join(problems[:5])
    return shown if len(problems) <= 5 else f"{shown}; and {len(problems) - 5} more"
