import random
from collections import Counter

import pytest

from studies.draw import Candidate, DrawImpossible, draw_images


def clean_images(count, classes=10):
    return [Candidate(image_id, image_id % classes) for image_id in range(1, count + 1)]


def modified_of(sources, first_id=10_001):
    return [Candidate(first_id + number, source.class_id, source.image_id) for number, source in enumerate(sources)]


def draw(clean, modified, *, datasets, per_kind=None, clean_each=None, modified_each=None, checks=0, seed=1):
    return draw_images(
        clean=clean,
        modified=modified,
        dataset_count=datasets,
        clean_per_dataset=clean_each or per_kind,
        modified_per_dataset=modified_each or per_kind,
        check_source_count=checks,
        seed=seed,
    )


def assert_sound(drawn, clean, modified, *, datasets, clean_each, modified_each, checks):
    source_of = {candidate.image_id: candidate.source_id for candidate in modified}
    clean_ids = {candidate.image_id for candidate in clean}
    assert len(drawn.datasets) == datasets
    shown = []
    for plan in drawn.datasets:
        assert (len(plan.clean), len(plan.modified)) == (clean_each, modified_each)
        assert set(plan.clean) <= clean_ids
        assert not set(plan.clean) & {source_of[image_id] for image_id in plan.modified}
        shown += [*plan.clean, *plan.modified]
    assert len(shown) == len(set(shown))
    assert len(drawn.check_sources) == len(set(drawn.check_sources)) == checks
    touched = {image_id for image_id in shown if image_id in clean_ids}
    touched |= {source_of[image_id] for image_id in shown if image_id in source_of}
    assert not touched & set(drawn.check_sources)


@pytest.mark.parametrize("seed", range(20))
def test_two_datasets_of_50_and_50_from_exactly_100_sources_and_their_versions(seed):
    clean = clean_images(100)
    modified = modified_of(clean)
    drawn = draw(clean, modified, datasets=2, per_kind=50, seed=seed)
    assert_sound(drawn, clean, modified, datasets=2, clean_each=50, modified_each=50, checks=0)


@pytest.mark.parametrize("seed", range(20))
def test_one_dataset_of_50_and_50_with_12_check_sources_from_130_sources(seed):
    clean = clean_images(130, classes=100)
    modified = modified_of(clean)
    drawn = draw(clean, modified, datasets=1, per_kind=50, checks=12, seed=seed)
    assert_sound(drawn, clean, modified, datasets=1, clean_each=50, modified_each=50, checks=12)


def test_exactly_as_many_sources_as_one_dataset_and_its_checks_need():
    clean = clean_images(112)
    modified = modified_of(clean)
    drawn = draw(clean, modified, datasets=1, per_kind=50, checks=12)
    assert_sound(drawn, clean, modified, datasets=1, clean_each=50, modified_each=50, checks=12)


def test_the_papers_plan():
    clean = clean_images(3020, classes=1000)
    modified = modified_of(clean)
    drawn = draw(clean, modified, datasets=60, per_kind=50, checks=12)
    assert_sound(drawn, clean, modified, datasets=60, clean_each=50, modified_each=50, checks=12)


def test_any_shape_is_drawn_soundly_or_refused():
    refused = 0
    for seed in range(400):
        refused += not draws_soundly(random.Random(seed))
    assert 0 < refused < 100


def draws_soundly(rng):
    """Draw a random shape from random sources, some with many modified versions; False if it is refused."""
    datasets, clean_each, modified_each, checks = (rng.randint(1, high) for high in (5, 8, 8, 4))
    clean = clean_images(datasets * clean_each + checks + rng.randint(0, 10), classes=rng.randint(1, 9))
    sources = [rng.choice(clean) for _ in range(datasets * modified_each + rng.randint(0, 12))]
    modified = modified_of(sources)
    shape = {"datasets": datasets, "clean_each": clean_each, "modified_each": modified_each, "checks": checks}
    try:
        drawn = draw(clean, modified, **shape, seed=rng.randrange(2**31))
    except DrawImpossible:
        return False
    assert_sound(drawn, clean, modified, **shape)
    return True


def test_the_same_seed_draws_the_same_whatever_the_order_of_the_images():
    clean, modified = clean_images(60), modified_of(clean_images(60))
    first = draw(clean, modified, datasets=3, per_kind=10, checks=5, seed=7)
    assert draw(clean[::-1], modified[::-1], datasets=3, per_kind=10, checks=5, seed=7) == first
    assert draw(clean, modified, datasets=3, per_kind=10, checks=5, seed=8) != first


def test_classes_are_dealt_out_evenly():
    clean = clean_images(200, classes=10)
    modified = modified_of(clean)
    drawn = draw(clean, modified, datasets=4, per_kind=20, seed=3)
    class_of = {candidate.image_id: candidate.class_id for candidate in [*clean, *modified]}
    for plan in drawn.datasets:
        assert set(Counter(class_of[image_id] for image_id in plan.clean).values()) == {2}
        counts = Counter(class_of[image_id] for image_id in plan.modified)
        assert len(counts) == 10
        assert max(counts.values()) <= 4


def test_check_sources_are_preferably_clean_images_without_modified_versions():
    clean = clean_images(30)
    modified = modified_of(clean[:20])
    drawn = draw(clean, modified, datasets=2, per_kind=10, checks=10)
    assert set(drawn.check_sources) == set(range(21, 31))


def test_missing_images_are_counted_by_kind():
    clean = clean_images(50)
    with pytest.raises(DrawImpossible) as refusal:
        draw(clean, modified_of(clean[:30]), datasets=1, per_kind=50, checks=12)
    assert (refusal.value.missing_clean, refusal.value.missing_modified) == (12, 20)
    assert "import 12 more" in str(refusal.value)
    assert "import 20 more" in str(refusal.value)


def test_one_dataset_cannot_hold_the_sources_of_its_own_modified_images():
    clean = clean_images(50)
    with pytest.raises(DrawImpossible, match="import 50 more modified images of other sources"):
        draw(clean, modified_of(clean), datasets=1, per_kind=50)


def test_sources_that_all_lie_in_one_dataset_are_refused_clearly():
    clean = clean_images(4, classes=1)
    modified = modified_of([clean[0]] * 4)
    with pytest.raises(DrawImpossible, match=r"Dataset \d needs 2 modified images .* only 0: import 2 more"):
        draw(clean, modified, datasets=2, per_kind=2)
