import pytest

from leaderboard.statistics.ranking import rank


@pytest.mark.parametrize(
    ("differences", "ranks"),
    [
        ([], []),
        ([None], [None]),
        ([3.0, 1.0, 2.0], [3, 1, 2]),
        ([-1.0, 2.0, 0.0], [2, 3, 1]),
        ([5.0, -5.0, 5.0, 7.0], [1, 1, 1, 4]),
        ([None, 4.0, None, 1.0], [None, 2, None, 1]),
        ([0.1 + 0.2, 0.3], [2, 1]),
    ],
    ids=[
        "none",
        "one unscored",
        "smallest first",
        "either sign",
        "ties share and the next skips",
        "unscored unranked",
        "unrounded",
    ],
)
def test_rank(differences, ranks):
    assert rank(differences) == ranks
