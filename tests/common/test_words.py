"""Sentences with numbers in them."""

import pytest

from scooter_site.common.words import counted, there_are


@pytest.mark.parametrize(("count", "said"), [(0, "0 images"), (1, "1 image"), (2, "2 images"), (1200, "1,200 images")])
def test_a_noun_follows_its_number(count, said):
    assert counted(count, "image") == said


def test_a_noun_may_have_a_plural_of_its_own():
    assert [counted(count, "bonus", "bonuses") for count in (1, 2)] == ["1 bonus", "2 bonuses"]


def test_a_verb_follows_its_number():
    assert [there_are(count, "place") for count in (1, 4)] == ["There is 1 place", "There are 4 places"]
