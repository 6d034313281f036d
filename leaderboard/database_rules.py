"""That a published snapshot and its addresses never change, kept by the database (scooter_site/common/triggers.py)."""

from scooter_site.common.database_rules import DELETE, INSERT, UPDATE, Check, Rule

SNAPSHOT, ENTRY, BOARD = "leaderboard_snapshot", "leaderboard_entry", "leaderboard_board"

SNAPSHOT_STAYS = Rule(
    "published_snapshot_never_changes",
    "A published snapshot never changes, and is never deleted. Publish another one, or retract it with a reason.",
)
STATUS_GOES_ON = Rule(
    "snapshot_status_only_goes_on",
    "A draft stays a draft: publishing copies it. A published snapshot can be retracted, and then stays so.",
)
ENTRIES_STAY = Rule(
    "published_snapshot_keeps_its_entries",
    "The entries of a published snapshot never change. Publish another one, or retract it with a reason.",
)
NAMES_STAY = Rule(
    "slug_of_a_published_result_never_changes",
    "A published snapshot has results of it: their addresses, and the snapshot's digest, name it by this slug, which "
    "therefore never changes. Its name may.",
)
BOARD_STAYS = Rule(
    "board_with_a_snapshot_keeps_its_slug_and_scale",
    "The board has a published snapshot, whose address names it by its slug, and whose numbers are points of its "
    "scale: neither changes any more. Make another board.",
)

# A demonstration can be taken out again with everything that it published.
_OF_DEMO = f"EXISTS (SELECT 1 FROM {BOARD} b WHERE b.id = OLD.board_id AND b.is_demo)"  # noqa: S608
_IS_PUBLISHED = f"EXISTS (SELECT 1 FROM {SNAPSHOT} s WHERE s.id = {{entry}}.snapshot_id AND s.status <> 'draft')"  # noqa: S608
_IN_PUBLISHED = (
    f"EXISTS (SELECT 1 FROM {ENTRY} e JOIN {SNAPSHOT} s ON s.id = e.snapshot_id "  # noqa: S608
    "WHERE s.status <> 'draft' AND e.{column} = NEW.id)"
)
_OF_DEMO_ENTRY = (
    f"EXISTS (SELECT 1 FROM {SNAPSHOT} s JOIN {BOARD} b ON b.id = s.board_id "  # noqa: S608
    "WHERE s.id = OLD.snapshot_id AND b.is_demo)"
)

CHECKS = [
    Check(
        SNAPSHOT_STAYS,
        SNAPSHOT,
        UPDATE,
        "1 = 1",
        columns=(
            "board_id",
            "number",
            "rules",
            "seed",
            "data_cutoff",
            "code_version",
            "input_digest",
            "entry_count",
            "created_at",
            "published_at",
            "published_by_id",
            "note",
        ),
        only_if="OLD.status <> 'draft'",
    ),
    Check(
        STATUS_GOES_ON,
        SNAPSHOT,
        UPDATE,
        "OLD.status <> NEW.status AND NOT (OLD.status = 'published' AND NEW.status = 'retracted')",
        columns=("status",),
    ),
    Check(
        STATUS_GOES_ON,
        SNAPSHOT,
        UPDATE,
        "1 = 1",
        columns=("retracted_at", "retracted_by_id", "retraction_reason"),
        only_if="OLD.status = 'retracted'",
    ),
    Check(
        SNAPSHOT_STAYS,
        SNAPSHOT,
        DELETE,
        f"NOT {_OF_DEMO.format(board='OLD.board_id')}",
        only_if="OLD.status <> 'draft'",
    ),
    # While it is published, its entries are written; then it is full.
    Check(
        ENTRIES_STAY,
        ENTRY,
        INSERT,
        f"EXISTS (SELECT 1 FROM {SNAPSHOT} s WHERE s.id = NEW.snapshot_id AND s.status <> 'draft' "  # noqa: S608
        f"AND s.entry_count < (SELECT COUNT(*) FROM {ENTRY} e WHERE e.snapshot_id = NEW.snapshot_id))",
    ),
    Check(
        ENTRIES_STAY,
        ENTRY,
        UPDATE,
        f"{_IS_PUBLISHED.format(entry='OLD')} OR {_IS_PUBLISHED.format(entry='NEW')}",
    ),
    Check(ENTRIES_STAY, ENTRY, DELETE, f"{_IS_PUBLISHED.format(entry='OLD')} AND NOT {_OF_DEMO_ENTRY}"),
    # What entries are addressed by lies in other tables.
    Check(NAMES_STAY, "imagedb_attack", UPDATE, _IN_PUBLISHED.format(column="attack_id"), columns=("slug",)),
    Check(NAMES_STAY, "imagedb_targetmodel", UPDATE, _IN_PUBLISHED.format(column="target_model_id"), columns=("slug",)),
    Check(
        BOARD_STAYS,
        BOARD,
        UPDATE,
        f"EXISTS (SELECT 1 FROM {SNAPSHOT} s WHERE s.board_id = NEW.id AND s.status <> 'draft')",  # noqa: S608
        columns=("slug", "scale_minimum", "scale_maximum", "is_demo"),
    ),
]
