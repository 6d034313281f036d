"""The colour plates that all studies draw from, made once."""

from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction

from imagedb.pixels import rendition_png
from studies.models import ColourPlate, PlateKind
from studies.plates import make_plate

BLANKS_PER_KIND = 3
# (kind, digit, seed): every digit in every kind, so that a picture passed on between participants helps nobody, and
# several plates without a digit, so that nobody knows them by heart.
PLATE_POOL: list[tuple[str, int | None, int]] = [
    *((kind.value, digit, 1) for kind in PlateKind for digit in range(10)),
    *((kind.value, None, seed) for kind in PlateKind for seed in range(1, BLANKS_PER_KIND + 1)),
]


def ensure_plate_pool() -> None:
    """Make the plates that are missing from the pool, about a tenth of a second each. May run twice, also at once."""
    present = set(ColourPlate.objects.values_list("kind", "digit", "seed"))
    for kind, digit, seed in PLATE_POOL:
        if (kind, digit, seed) in present:
            continue
        content = rendition_png(make_plate(kind, digit, seed))
        plate = ColourPlate(kind=kind, digit=digit, seed=seed)
        plate.file.save("plate.png", ContentFile(content), save=False)
        try:
            with transaction.atomic():
                plate.save()
        except IntegrityError:  # another worker made it meanwhile
            plate.file.delete(save=False)
        except BaseException:
            plate.file.delete(save=False)
            raise
