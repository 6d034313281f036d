"""What must hold between rows, kept by the database itself: a CHECK constraint sees one row, a trigger sees all.

Whatever writes - the admin, an import's ``bulk_create``, a query by hand - a row that breaks a rule raises
``IntegrityError`` with the rule's name and message. ``triggers`` puts these rules into the database. No Django here.
"""

from scooter_site.common.database_rules import DELETE, INSERT, UPDATE, Check, Rule

IMAGE, PREDICTION = "imagedb_image", "imagedb_prediction"
COLLECTION, VERSION = "imagedb_collection", "imagedb_collectionversion"
MEMBERSHIP, CURATION_LOG = "imagedb_collectionimage", "imagedb_curationlogentry"


SOURCE = Rule(
    "modified_image_has_a_clean_source_of_its_class",
    "The source of a modified image must be a clean image of the same class.",
)
MISLEADS = Rule(
    "modified_image_misleads_its_target_model",
    "The target model of a modified image must predict another class than the image's own; "
    "an image it still recognises is no adversarial example.",
)
RECOGNISED = Rule(
    "collection_has_recognised_clean_images",
    "A clean image of a collection must be classified correctly by the collection's target model, with at least the "
    "collection's confidence threshold.",
)
FROZEN_VERSION = Rule(
    "frozen_version_never_changes", "A frozen version of a collection never changes. Make a new version."
)
FROZEN_IMAGES = Rule(
    "frozen_version_keeps_its_images",
    "The images of a frozen version of a collection never change. Make a new version.",
)
FROZEN_LOG = Rule(
    "frozen_version_keeps_its_curation_log",
    "The curation log of a frozen version of a collection never changes. Make a new version.",
)
FROZEN_FACTS = Rule(
    "image_of_a_frozen_version_keeps_its_facts",
    "The image is in a frozen version of a collection: its class, kind, source, attack, target model, file name, "
    "digest, licence and attribution are in the manifest and never change.",
)
FROZEN_PREDICTIONS = Rule(
    "image_of_a_frozen_version_keeps_its_prediction",
    "The image is in a frozen version of a collection, whose manifest states this target model's prediction "
    "or that there is none: it never changes.",
)
FROZEN_NAMES = Rule(
    "slug_in_a_frozen_version_never_changes",
    "The manifest of a frozen version of a collection names it by this slug, which therefore never changes.",
)
FROZEN_COLLECTION = Rule(
    "collection_with_a_frozen_version_keeps_its_terms",
    "A version of the collection is frozen: its name, slug, target model and confidence threshold never change. "
    "Make a new collection.",
)
VERSION_STAYS = Rule("version_stays_in_its_collection", "A version cannot be moved to another collection.")
LOG_STAYS = Rule("curation_log_entry_never_changes", "An entry of a curation log never changes. Write another one.")
PUBLIC_ID = Rule("image_public_id_never_changes", "The public id of an image is what others cite; it never changes.")
CLASSES = Rule("imagenet_classes_never_change", "The ImageNet classes are a fixed list.")

_ITS_SOURCE = "s.id = NEW.source_id AND s.kind = 'clean' AND s.image_class_id = NEW.image_class_id"


def _misfits(rows: str) -> str:
    """Clean images in collections whose target model does not recognise them, among ``rows``."""
    return (
        f"EXISTS (SELECT 1 FROM {MEMBERSHIP} m JOIN {VERSION} v ON v.id = m.version_id "  # noqa: S608
        f"JOIN {COLLECTION} c ON c.id = v.collection_id JOIN {IMAGE} i ON i.id = m.image_id "
        f"LEFT JOIN {PREDICTION} p ON p.image_id = i.id AND p.target_model_id = c.target_model_id "
        f"WHERE {rows} AND i.kind = 'clean' AND c.target_model_id IS NOT NULL AND ("
        "p.predicted_class_id <> i.image_class_id OR (c.min_confidence IS NOT NULL AND "
        "(p.id IS NULL OR p.confidence IS NULL OR p.confidence < c.min_confidence))))"
    )


def _frozen_members(rows: str) -> str:
    """Memberships in frozen versions among ``rows``."""
    return (
        f"EXISTS (SELECT 1 FROM {MEMBERSHIP} m JOIN {VERSION} v ON v.id = m.version_id "  # noqa: S608
        f"JOIN {COLLECTION} c ON c.id = v.collection_id JOIN {IMAGE} i ON i.id = m.image_id "
        f"WHERE v.frozen_at IS NOT NULL AND {rows})"
    )


def _frozen(version: str, *, but_demo: bool = False) -> str:
    """Whether the version of that id is frozen; ``but_demo``: that of a demonstration may be removed."""
    demo = " AND NOT c.is_demo" if but_demo else ""
    return (
        f"EXISTS (SELECT 1 FROM {VERSION} v JOIN {COLLECTION} c ON c.id = v.collection_id "  # noqa: S608
        f"WHERE v.id = {version} AND v.frozen_at IS NOT NULL{demo})"
    )


def _stated(prediction: str) -> str:
    """Frozen manifests that state this prediction: a modified image's own, a clean one's by the collection's model."""
    return _frozen_members(
        f"m.image_id = {prediction}.image_id AND {prediction}.target_model_id = "
        "CASE WHEN i.kind = 'modified' THEN i.target_model_id ELSE c.target_model_id END"
    )


CHECKS = [
    # Frozen versions: the first thing to be told.
    Check(FROZEN_VERSION, VERSION, UPDATE, "1 = 1", only_if="OLD.frozen_at IS NOT NULL"),
    Check(
        FROZEN_VERSION,
        VERSION,
        DELETE,
        f"EXISTS (SELECT 1 FROM {COLLECTION} c WHERE c.id = OLD.collection_id AND NOT c.is_demo)",  # noqa: S608
        only_if="OLD.frozen_at IS NOT NULL",
    ),
    Check(FROZEN_IMAGES, MEMBERSHIP, INSERT, _frozen("NEW.version_id")),
    Check(FROZEN_IMAGES, MEMBERSHIP, UPDATE, f"{_frozen('NEW.version_id')} OR {_frozen('OLD.version_id')}"),
    Check(FROZEN_IMAGES, MEMBERSHIP, DELETE, _frozen("OLD.version_id", but_demo=True)),
    Check(FROZEN_LOG, CURATION_LOG, INSERT, _frozen("NEW.version_id")),
    Check(FROZEN_LOG, CURATION_LOG, DELETE, _frozen("OLD.version_id", but_demo=True)),
    Check(
        FROZEN_FACTS,
        IMAGE,
        UPDATE,
        _frozen_members("m.image_id = NEW.id"),
        columns=(
            "kind",
            "image_class_id",
            "source_id",
            "attack_id",
            "target_model_id",
            "original_filename",
            "original_sha256",
            "original_bytes",
            "licence",
            "attribution",
        ),
    ),
    Check(FROZEN_PREDICTIONS, PREDICTION, INSERT, _stated("NEW")),
    Check(
        FROZEN_PREDICTIONS,
        PREDICTION,
        UPDATE,
        f"{_stated('NEW')} OR {_stated('OLD')}",
        columns=("image_id", "target_model_id", "predicted_class_id", "confidence"),
    ),
    Check(FROZEN_PREDICTIONS, PREDICTION, DELETE, _stated("OLD")),
    Check(FROZEN_NAMES, "imagedb_attack", UPDATE, _frozen_members("i.attack_id = NEW.id"), columns=("slug",)),
    Check(
        FROZEN_NAMES,
        "imagedb_targetmodel",
        UPDATE,
        f"{_frozen_members('i.target_model_id = NEW.id')} OR {_frozen_members('c.target_model_id = NEW.id')}",
        columns=("slug",),
    ),
    Check(
        FROZEN_COLLECTION,
        COLLECTION,
        UPDATE,
        f"EXISTS (SELECT 1 FROM {VERSION} v WHERE v.collection_id = NEW.id AND v.frozen_at IS NOT NULL)",  # noqa: S608
        columns=("name", "slug", "target_model_id", "min_confidence", "is_demo"),
    ),
    # A modified image and its source.
    Check(
        SOURCE,
        IMAGE,
        INSERT,
        f"NOT EXISTS (SELECT 1 FROM {IMAGE} s WHERE {_ITS_SOURCE})",  # noqa: S608
        only_if="NEW.kind = 'modified'",
    ),
    Check(
        SOURCE,
        IMAGE,
        UPDATE,
        f"(NEW.kind = 'modified' AND NOT EXISTS (SELECT 1 FROM {IMAGE} s "  # noqa: S608
        f"WHERE {_ITS_SOURCE})) OR EXISTS (SELECT 1 FROM {IMAGE} m "
        "WHERE m.source_id = NEW.id AND (NEW.kind <> 'clean' OR NEW.image_class_id <> m.image_class_id))",
        columns=("kind", "image_class_id", "source_id"),
    ),
    # What target models say.
    *[
        Check(
            MISLEADS,
            PREDICTION,
            operation,
            f"EXISTS (SELECT 1 FROM {IMAGE} i WHERE i.id = NEW.image_id AND i.kind = 'modified' "  # noqa: S608
            "AND i.target_model_id = NEW.target_model_id AND i.image_class_id = NEW.predicted_class_id)",
            columns=("image_id", "target_model_id", "predicted_class_id") if operation == UPDATE else (),
        )
        for operation in (INSERT, UPDATE)
    ],
    Check(
        MISLEADS,
        IMAGE,
        UPDATE,
        f"EXISTS (SELECT 1 FROM {PREDICTION} p WHERE p.image_id = NEW.id "  # noqa: S608
        "AND p.target_model_id = NEW.target_model_id AND p.predicted_class_id = NEW.image_class_id)",
        columns=("kind", "image_class_id", "target_model_id"),
        only_if="NEW.kind = 'modified'",
    ),
    Check(RECOGNISED, MEMBERSHIP, INSERT, _misfits("m.id = NEW.id")),
    Check(RECOGNISED, MEMBERSHIP, UPDATE, _misfits("m.id = NEW.id"), columns=("version_id", "image_id")),
    Check(RECOGNISED, PREDICTION, INSERT, _misfits("m.image_id = NEW.image_id")),
    Check(
        RECOGNISED,
        PREDICTION,
        UPDATE,
        _misfits("m.image_id IN (NEW.image_id, OLD.image_id)"),
        columns=("image_id", "target_model_id", "predicted_class_id", "confidence"),
    ),
    Check(RECOGNISED, PREDICTION, DELETE, _misfits("m.image_id = OLD.image_id")),
    Check(
        RECOGNISED,
        COLLECTION,
        UPDATE,
        _misfits("v.collection_id = NEW.id"),
        columns=("target_model_id", "min_confidence"),
    ),
    Check(RECOGNISED, IMAGE, UPDATE, _misfits("m.image_id = NEW.id"), columns=("kind", "image_class_id")),
    # What never changes anywhere.
    Check(VERSION_STAYS, VERSION, UPDATE, "1 = 1", columns=("collection_id",)),
    Check(LOG_STAYS, CURATION_LOG, UPDATE, "1 = 1"),
    Check(PUBLIC_ID, IMAGE, UPDATE, "1 = 1", columns=("public_id",)),
    Check(CLASSES, "imagedb_imageclass", UPDATE, "1 = 1", columns=("index", "synset")),
]

# PostgreSQL only (SQLite has one writer at a time): what a check has read must not change in a transaction that has not
# committed yet. What changes a prediction locks the image harder than what reads it, so that two of them wait for each
# other; none is in the way of a foreign key. Freezing locks the version, and so waits for all that it would freeze.
_LOCK_SOURCE = f"PERFORM 1 FROM {IMAGE} WHERE id = NEW.source_id FOR SHARE"
_LOCK_VERSIONS = (
    f"PERFORM 1 FROM {VERSION} v JOIN {MEMBERSHIP} m ON m.version_id = v.id WHERE m.image_id = {{image}} FOR SHARE OF v"
)
_LOCK_PREDICTED = (
    f"PERFORM 1 FROM {IMAGE} WHERE id = {{image}} FOR NO KEY UPDATE",
    f"PERFORM 1 FROM {COLLECTION} c JOIN {VERSION} v ON v.collection_id = c.id "
    f"JOIN {MEMBERSHIP} m ON m.version_id = v.id WHERE m.image_id = {{image}} FOR SHARE OF c, v",
)
_LOCK_VERSION = f"PERFORM 1 FROM {VERSION} WHERE id = {{version}} FOR SHARE"
_LOCK_JOINED = (
    _LOCK_VERSION.format(version="NEW.version_id"),
    f"PERFORM 1 FROM {COLLECTION} c JOIN {VERSION} v ON v.collection_id = c.id "
    "WHERE v.id = NEW.version_id FOR SHARE OF c",
    f"PERFORM 1 FROM {IMAGE} WHERE id = NEW.image_id FOR SHARE",
)
LOCKS: dict[tuple[str, str], tuple[str, ...]] = {
    (IMAGE, INSERT): (_LOCK_SOURCE,),
    (IMAGE, UPDATE): (_LOCK_SOURCE, _LOCK_VERSIONS.format(image="NEW.id")),
    (PREDICTION, INSERT): tuple(lock.format(image="NEW.image_id") for lock in _LOCK_PREDICTED),
    (PREDICTION, UPDATE): tuple(lock.format(image="NEW.image_id") for lock in _LOCK_PREDICTED),
    (PREDICTION, DELETE): tuple(lock.format(image="OLD.image_id") for lock in _LOCK_PREDICTED),
    (MEMBERSHIP, INSERT): _LOCK_JOINED,
    (MEMBERSHIP, UPDATE): (*_LOCK_JOINED, _LOCK_VERSION.format(version="OLD.version_id")),
    (MEMBERSHIP, DELETE): (_LOCK_VERSION.format(version="OLD.version_id"),),
    (CURATION_LOG, INSERT): (_LOCK_VERSION.format(version="NEW.version_id"),),
    (CURATION_LOG, DELETE): (_LOCK_VERSION.format(version="OLD.version_id"),),
}
