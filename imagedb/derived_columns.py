"""Columns that follow from rows of other tables, kept true by the database itself. ``triggers`` puts this into it.

``Image.verified``: whether a target model's answer is known, for a modified image that of its own target model. Looking
for images without an answer would otherwise mean going through all images and all predictions. No Django here.
"""

from imagedb.database_rules import IMAGE, PREDICTION
from scooter_site.common.database_rules import DELETE, INSERT, UPDATE, Effect

_ANSWERED = (
    f"EXISTS (SELECT 1 FROM {PREDICTION} p WHERE p.image_id = {IMAGE}.id "  # noqa: S608
    f"AND ({IMAGE}.kind = 'clean' OR p.target_model_id = {IMAGE}.target_model_id))"
)


def verify(images: str) -> str:
    """The statement that brings ``verified`` to what the predictions say, for the images that the condition names."""
    return f"UPDATE {IMAGE} SET verified = {_ANSWERED} WHERE {images} AND verified <> {_ANSWERED}"  # noqa: S608


_OF_NEW, _OF_OLD = verify(f"{IMAGE}.id = NEW.image_id"), verify(f"{IMAGE}.id = OLD.image_id")
EFFECTS = [
    Effect("verified_by_new_prediction", PREDICTION, INSERT, (_OF_NEW,)),
    Effect("verified_by_changed_prediction", PREDICTION, UPDATE, (_OF_NEW, _OF_OLD), ("image_id", "target_model_id")),
    Effect("verified_without_prediction", PREDICTION, DELETE, (_OF_OLD,)),
    Effect("verified_of_new_image", IMAGE, INSERT, (verify(f"{IMAGE}.id = NEW.id"),), only_if="NEW.verified"),
    # Also when a program saves an image that it read before the answer came, with what was true then.
    Effect(
        "verified_of_changed_image",
        IMAGE,
        UPDATE,
        (verify(f"{IMAGE}.id = NEW.id"),),
        ("kind", "target_model_id", "verified"),
    ),
]
