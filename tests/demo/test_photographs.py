"""The demonstration's photographs: free, plenty, and hardly overlapping."""

import importlib.resources
import itertools

import numpy as np
import pytest

from scooter_site.demo import photographs
from scooter_site.demo.content import STUDIES
from scooter_site.demo.photographs import CROP_SIDE, PHOTOGRAPHS, PhotographsMissing, crops
from studies.models.study import EXAMPLE_COUNT
from studies.presets import PRESETS


def test_there_are_enough_for_the_largest_study():
    there = [crop for photograph in PHOTOGRAPHS for crop in crops(photograph)]
    assert len(there) >= 130
    assert {(crop.mode, crop.size) for crop in there} == {("RGB", (CROP_SIDE, CROP_SIDE))}
    assert len({crop.tobytes() for crop in there}) == len(there)
    for study in STUDIES:
        numbers = {**PRESETS["paper"].settings, **study.numbers}
        checks = EXAMPLE_COUNT + numbers["comprehension_pair_count"] + numbers["corrupted_check_count"]
        assert numbers["dataset_count"] * numbers["clean_per_dataset"] + checks <= len(there)


def test_the_documentation_of_scikit_image_calls_each_one_free():
    source = (importlib.resources.files("skimage") / "data" / "_fetchers.py").read_text()
    for photograph in PHOTOGRAPHS:
        after = source.split(f'_load("data/{photograph.filename}")')[0]
        docstring = after.rsplit("\ndef ", 1)[1]
        if photograph.licence == "Public domain":
            assert "public domain" in docstring
        else:
            assert photograph.licence == "CC0 1.0"
            assert "CC0" in docstring


@pytest.mark.parametrize("photograph", PHOTOGRAPHS, ids=lambda photograph: photograph.filename)
def test_two_crops_share_at_most_half_of_the_larger_one(photograph):
    size = photographs.read(photograph).size
    squares = [(left, top, side) for side in photograph.sides for left, top in photographs.grid(size, side)]
    assert squares
    for (left, top, side), (other_left, other_top, other_side) in itertools.combinations(squares, 2):
        width = min(left + side, other_left + other_side) - max(left, other_left)
        height = min(top + side, other_top + other_side) - max(top, other_top)
        shared = max(0, width) * max(0, height)
        assert shared <= max(side, other_side) ** 2 / 2


def test_a_missing_package_is_said(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib.resources, "files", missing)
    with pytest.raises(PhotographsMissing, match="come with scikit-image"):
        photographs.read(PHOTOGRAPHS[0])


def test_crops_are_not_empty():
    for photograph in PHOTOGRAPHS:
        for crop in crops(photograph):
            assert np.asarray(crop).std() > 10
