"""Everything that reads: studies, participations and the ratings that count."""

from studies.selectors.facts import pair_facts
from studies.selectors.images import usable_clean_images, usable_modified_images
from studies.selectors.participations import (
    Progress,
    current_pair,
    current_plate,
    may_begin_again,
    participation_of,
    progress,
    unfinished_participations,
)
from studies.selectors.places import holds_dataset_place, places_left, places_taken, takes_place
from studies.selectors.ratings import (
    PairState,
    RatedImage,
    ScaleRatings,
    countable_participations,
    pair_states,
    valid_ratings,
)
from studies.selectors.readiness import ReadinessLine, readiness
from studies.selectors.studies import (
    DatasetCoverage,
    Monitor,
    StudyLinks,
    feedback_items,
    monitor,
    newest_texts,
    render_text,
    studies_with_lost_build,
    study_links,
    study_of,
    study_text,
)

__all__ = [
    "DatasetCoverage",
    "Monitor",
    "PairState",
    "Progress",
    "RatedImage",
    "ReadinessLine",
    "ScaleRatings",
    "StudyLinks",
    "countable_participations",
    "current_pair",
    "current_plate",
    "feedback_items",
    "holds_dataset_place",
    "may_begin_again",
    "monitor",
    "newest_texts",
    "pair_facts",
    "pair_states",
    "participation_of",
    "places_left",
    "places_taken",
    "progress",
    "readiness",
    "render_text",
    "studies_with_lost_build",
    "study_links",
    "study_of",
    "study_text",
    "takes_place",
    "unfinished_participations",
    "usable_clean_images",
    "usable_modified_images",
    "valid_ratings",
]
