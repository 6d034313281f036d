"""Which images a study shows, pure: datasets, and sources for check images. The same seed draws the same.

Rules: datasets share no image; each has exact counts; none holds a modified image together with its own clean
source; classes are dealt out evenly; check images are made from clean images that no dataset holds, nor a modified
version of them.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """An image that may be drawn; ``source_id`` is the clean source of a modified image, None of a clean one."""

    image_id: int
    class_id: int
    source_id: int | None = None


@dataclass(frozen=True)
class DatasetPlan:
    """The image ids of one dataset."""

    clean: tuple[int, ...]
    modified: tuple[int, ...]


@dataclass(frozen=True)
class Draw:
    """``datasets`` in the order of their numbers; ``check_sources``: clean images for check stimuli."""

    datasets: tuple[DatasetPlan, ...]
    check_sources: tuple[int, ...]


class DrawImpossible(ValueError):
    """There are too few images. The message says how many are missing, and of which kind."""

    def __init__(self, message: str, *, missing_clean: int = 0, missing_modified: int = 0) -> None:
        super().__init__(message)
        self.missing_clean = missing_clean
        self.missing_modified = missing_modified


def _classes_first(candidates: Iterable[Candidate], rng: random.Random) -> list[Candidate]:
    """In random order, but one of each class before a second of any: a prefix spreads over the classes."""
    shuffled = sorted(candidates, key=lambda candidate: candidate.image_id)
    rng.shuffle(shuffled)
    seen: Counter[int] = Counter()
    rank = {}
    for candidate in shuffled:
        rank[candidate.image_id] = seen[candidate.class_id]
        seen[candidate.class_id] += 1
    return sorted(shuffled, key=lambda candidate: rank[candidate.image_id])


def _dealt(chosen: Sequence[Candidate], dataset_count: int, rng: random.Random) -> list[list[Candidate]]:
    """Deal class by class, like cards: every dataset gets as many, and an even share of each class."""
    class_order = sorted({candidate.class_id for candidate in chosen})
    rng.shuffle(class_order)
    place = {class_id: number for number, class_id in enumerate(class_order)}
    by_class = sorted(chosen, key=lambda candidate: place[candidate.class_id])
    return [by_class[number::dataset_count] for number in range(dataset_count)]


def _separate_from_sources(
    modified: list[list[Candidate]], spare: list[Candidate], clean_ids: list[set[int]], rng: random.Random
) -> None:
    """Exchange modified images, in place, until none is in a dataset with its own source.

    A clean image is in one dataset at most, so a modified image is unwelcome in one dataset at most: any exchange
    with an image that may come here mends this conflict and makes no new one. If no image anywhere may come here, no
    other arrangement of these images exists either.
    """
    dataset_count = len(modified)
    for here in range(dataset_count):
        for index, candidate in enumerate(modified[here]):
            if candidate.source_id not in clean_ids[here]:
                continue
            elsewhere = [images for there, images in enumerate(modified) if there != here] + [spare]
            exchanges = [
                (images, position)
                for images in elsewhere
                for position, other in enumerate(images)
                if other.source_id not in clean_ids[here]
            ]
            if not exchanges:
                fitting = sum(other.source_id not in clean_ids[here] for images in modified for other in images)
                missing = len(modified[here]) - fitting
                raise DrawImpossible(
                    f"Dataset {here + 1} needs {len(modified[here])} modified images whose clean source it does not "
                    f"hold, but there are only {fitting}: import {missing} more modified images of other sources.",
                    missing_modified=missing,
                )
            same_class = [
                (images, position) for images, position in exchanges if images[position].class_id == candidate.class_id
            ]
            images, position = rng.choice(same_class or exchanges)
            modified[here][index], images[position] = images[position], candidate


def draw_images(
    *,
    clean: Sequence[Candidate],
    modified: Sequence[Candidate],
    dataset_count: int,
    clean_per_dataset: int,
    modified_per_dataset: int,
    check_source_count: int,
    seed: int,
) -> Draw:
    """Draw datasets and check sources. Raises DrawImpossible, saying what is missing."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    clean_needed, modified_needed = dataset_count * clean_per_dataset, dataset_count * modified_per_dataset
    _refuse_too_few(len(clean), clean_needed, check_source_count, len(modified), modified_needed)

    # Check sources take their modified versions out of the draw, and with a single dataset so do its clean images.
    # So those with the fewest versions go first; where all have equally many, chance decides.
    versions = Counter(candidate.source_id for candidate in modified)

    def fewest_versions_first(candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(_classes_first(candidates, rng), key=lambda candidate: versions[candidate.image_id])

    check_sources = fewest_versions_first(clean)[:check_source_count]
    check_ids = {candidate.image_id for candidate in check_sources}
    rest = [candidate for candidate in clean if candidate.image_id not in check_ids]
    ordered = fewest_versions_first(rest) if dataset_count == 1 else _classes_first(rest, rng)
    clean_dealt = _dealt(ordered[:clean_needed], dataset_count, rng)
    clean_ids = [{candidate.image_id for candidate in images} for images in clean_dealt]

    usable = [candidate for candidate in modified if candidate.source_id not in check_ids]
    if dataset_count == 1:
        usable = [candidate for candidate in usable if candidate.source_id not in clean_ids[0]]
    if len(usable) < modified_needed:
        missing = modified_needed - len(usable)
        shown = " and of the clean images shown" if dataset_count == 1 else ""
        raise DrawImpossible(
            f"{modified_needed} modified images are needed, but only {len(usable)} are left when those of the "
            f"{check_source_count} clean images for checks{shown} "
            f"are set aside: import {missing} more modified images of other sources.",
            missing_modified=missing,
        )
    modified_ordered = _classes_first(usable, rng)
    modified_dealt = _dealt(modified_ordered[:modified_needed], dataset_count, rng)
    _separate_from_sources(modified_dealt, modified_ordered[modified_needed:], clean_ids, rng)
    return Draw(
        datasets=tuple(
            DatasetPlan(
                clean=tuple(candidate.image_id for candidate in clean_images),
                modified=tuple(candidate.image_id for candidate in modified_images),
            )
            for clean_images, modified_images in zip(clean_dealt, modified_dealt, strict=True)
        ),
        check_sources=tuple(rng.sample([candidate.image_id for candidate in check_sources], check_source_count)),
    )


def _refuse_too_few(
    clean_count: int, clean_needed: int, check_source_count: int, modified_count: int, modified_needed: int
) -> None:
    missing_clean = max(0, clean_needed + check_source_count - clean_count)
    missing_modified = max(0, modified_needed - modified_count)
    problems = []
    if missing_clean:
        problems.append(
            f"{clean_needed + check_source_count} clean images are needed ({clean_needed} for the datasets and "
            f"{check_source_count} to make examples and checks from), but there are {clean_count}: "
            f"import {missing_clean} more."
        )
    if missing_modified:
        problems.append(
            f"{modified_needed} modified images of this attack and target model are needed, but there are "
            f"{modified_count}: import {missing_modified} more."
        )
    if problems:
        raise DrawImpossible(
            " ".join(problems) + " Or make the datasets fewer or smaller.",
            missing_clean=missing_clean,
            missing_modified=missing_modified,
        )
