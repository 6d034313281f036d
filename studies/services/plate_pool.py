"""The colour plates that all studies draw from, made once."""

from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction

from imagedb.pixels import rendition_png
from studies.models import ColourPlate, PlateKind
from studies.plates import make_plate

POOL_SEED = 1
KINDS = [PlateKind.PROTAN, PlateKind.DEUTAN, PlateKind.TRITAN]
# (kind, digit): each digit once, and a blank plate of each kind.
PLATE_POOL: list[tuple[str, int | None]] = [
    *((KINDS[digit % len(KINDS)].value, digit) for digit in range(10)),
    *((kind.value, None) for kind in KINDS),
]


def ensure_plate_pool() -> None:
    """Make the plates that are missing from the pool, about half a second each. May run twice, also at once."""
    present = set(ColourPlate.objects.filter(seed=POOL_SEED).values_list("kind", "digit"))
    for kind, digit in PLATE_POOL:
        if (kind, digit) in present:
            continue
        content = rendition_png(make_plate(kind, digit, POOL_SEED))
        plate = ColourPlate(kind=kind, digit=digit, seed=POOL_SEED)
        plate.file.save("plate.png", ContentFile(content), save=False)
        try:
            with transaction.atomic():
                plate.save()
        except IntegrityError:  # another worker made it meanwhile
            plate.file.delete(save=False)
