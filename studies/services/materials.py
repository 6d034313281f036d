"""What a study shows: its datasets, and the images made for instructions and checks."""

import logging
from dataclasses import dataclass

from django.core.files.base import ContentFile
from django.db import transaction
from django.utils import timezone
from PIL import Image as PillowImage

from imagedb.models import Image
from imagedb.pixels import rendition_png
from scooter_site.common.tasks import RETRYABLE
from studies.draw import Candidate, Draw, DrawImpossible, draw_images
from studies.models import (
    Dataset,
    DatasetImage,
    Modification,
    Participation,
    ParticipationKind,
    Stimulus,
    StimulusPurpose,
    Study,
    StudyStatus,
)
from studies.models.study import EXAMPLE_COUNT
from studies.selectors import usable_clean_images, usable_modified_images
from studies.services.plate_pool import ensure_plate_pool
from studies.stimuli import modify

logger = logging.getLogger(__name__)

# The types of modification that instructions and comprehension check show, in turn.
SHOWN_MODIFICATIONS = [Modification.COLOUR, Modification.FILTER, Modification.PIXEL]


@dataclass(frozen=True)
class _PlannedStimulus:
    purpose: StimulusPurpose
    number: int
    modification: Modification


class UnreadableImage(Exception):
    """The stored file of a catalogue image is not there or no picture; the message names the image and the remedy."""


def build_materials(study_id: int) -> None:
    """Draw the datasets, make the check images and the plate pool, and make the study ready.

    Where the images do not suffice, ``materials_error`` says what is missing and how to mend it; where anything else
    fails that another try would not mend, it says so, and the log has the traceback. Only errors that another try may
    mend are raised. The work is done outside a transaction and stored in a short one; if the study was built or asked
    for again meanwhile, what was made here is thrown away. So it may run twice, also at once.
    """
    study = Study.objects.select_related("attack").get(pk=study_id)
    if not _is_wanted(study):
        return
    try:
        _build(study)
    except DrawImpossible as error:
        _store_error(study, str(error))
    except RETRYABLE:
        raise
    except Exception as error:
        # Without a stored error the study would look as if it were still being built, for ever.
        logger.exception("The materials of study %s could not be built", study_id)
        _store_error(study, _explained(error))


def _explained(error: Exception) -> str:
    if isinstance(error, UnreadableImage):
        return str(error)
    return (
        f"An unexpected error stopped the build ({type(error).__name__}: {error}). The settings can be changed and the "
        "build started again; if that does not help, the worker's log tells the site's administrator more."
    )


def _build(study: Study) -> None:
    draw = _draw(study)
    if study.plate_count:
        ensure_plate_pool()
    stimuli = _make_stimuli(study, list(draw.check_sources))
    stored = False
    try:
        stored = _store(study, draw, stimuli)
    finally:
        if not stored:
            _delete_files(stimuli)


def _delete_files(stimuli: list[Stimulus]) -> None:
    for stimulus in stimuli:
        stimulus.file.delete(save=False)


def _is_wanted(study: Study) -> bool:
    return study.status == StudyStatus.DRAFT and study.materials_built_at is None


def _draw(study: Study) -> Draw:
    return draw_images(
        clean=[Candidate(*row) for row in usable_clean_images(study).values_list("id", "image_class_id")],
        modified=[
            Candidate(*row)
            for row in usable_modified_images(study).values_list("id", "image_class_id", "usable_source_id")
        ],
        dataset_count=study.dataset_count,
        clean_per_dataset=study.clean_per_dataset,
        modified_per_dataset=study.modified_per_dataset,
        check_source_count=study.check_source_count,
        seed=study.seed,
    )


def _planned_stimuli(study: Study) -> list[_PlannedStimulus]:
    def in_turn(purpose: StimulusPurpose, count: int) -> list[_PlannedStimulus]:
        return [
            _PlannedStimulus(purpose, number + 1, SHOWN_MODIFICATIONS[number % len(SHOWN_MODIFICATIONS)])
            for number in range(count)
        ]

    return [
        *in_turn(StimulusPurpose.EXAMPLE, EXAMPLE_COUNT),
        *in_turn(StimulusPurpose.COMPREHENSION, study.comprehension_pair_count),
        *(
            _PlannedStimulus(StimulusPurpose.ATTENTION, number + 1, Modification.CORRUPTION)
            for number in range(study.corrupted_check_count)
        ),
    ]


def _make_stimuli(study: Study, source_ids: list[int]) -> list[Stimulus]:
    """Rows with their files stored, but not yet in the database. Each planned one has a source of its own.

    If one cannot be made, the files of those before it are deleted again.
    """
    sources = Image.objects.in_bulk(source_ids)
    stimuli: list[Stimulus] = []
    try:
        for index, (planned, source_id) in enumerate(zip(_planned_stimuli(study), source_ids, strict=True)):
            source = sources[source_id]
            picture = _picture(source)
            versions = {planned.modification: modify(planned.modification.value, picture, study.seed + index)}
            if planned.purpose != StimulusPurpose.ATTENTION:
                versions[Modification.NONE] = picture
            for modification, version in versions.items():
                stimulus = Stimulus(
                    study=study,
                    purpose=planned.purpose,
                    number=planned.number,
                    modification=modification,
                    pair_modification=planned.modification,
                    source=source,
                )
                # The encoder of the catalogue: no property of the file tells these from the images of the datasets.
                stimulus.file.save("stimulus.png", ContentFile(rendition_png(version)), save=False)
                stimuli.append(stimulus)
    except BaseException:
        _delete_files(stimuli)
        raise
    return stimuli


def _picture(source: Image) -> PillowImage.Image:
    """The rendition of a catalogue image, as RGB. Raises UnreadableImage."""
    try:
        with source.rendition.open("rb") as file, PillowImage.open(file) as opened:
            return opened.convert("RGB")
    except RETRYABLE:
        raise
    except OSError as error:
        raise UnreadableImage(
            f"The stored file of the image “{source}” ({source.public_id}) is not there or cannot be read as a "
            "picture. Check that the storage is complete, or delete the image, and build again."
        ) from error


def _store(built: Study, draw: Draw, stimuli: list[Stimulus]) -> bool:
    """Put datasets and stimuli in the database unless the study was changed meanwhile; whether they were stored."""
    with transaction.atomic():
        study = Study.objects.select_for_update().get(pk=built.pk)
        if not _is_wanted(study) or study.materials_requested_at != built.materials_requested_at:
            return False
        for number, plan in enumerate(draw.datasets, start=1):
            dataset = Dataset.objects.create(study=study, number=number)
            DatasetImage.objects.bulk_create(
                DatasetImage(study=study, dataset=dataset, image_id=image_id, position=position)
                for position, image_id in enumerate([*plan.clean, *plan.modified], start=1)
            )
        Stimulus.objects.bulk_create(stimuli)
        study.status = StudyStatus.READY
        study.materials_built_at = timezone.now()
        study.materials_error = ""
        study.save(update_fields=["status", "materials_built_at", "materials_error"])
    return True


def _store_error(built: Study, message: str) -> None:
    with transaction.atomic():
        study = Study.objects.select_for_update().get(pk=built.pk)
        if _is_wanted(study) and study.materials_requested_at == built.materials_requested_at:
            study.materials_error = message
            study.save(update_fields=["materials_error"])


def delete_materials(study: Study) -> None:
    """Delete datasets and check images of a study that was never launched, with the test data that used them."""
    Participation.objects.filter(study=study).exclude(kind=ParticipationKind.REAL).delete()
    Stimulus.objects.filter(study=study).delete()
    Dataset.objects.filter(study=study).delete()
