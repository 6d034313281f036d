"""Prefixes of a bucket that images come in; tests/services/test_import_prefix.py has the same on a real server."""

import pytest

from imagedb.image_files import FileProblem
from imagedb.prefix_files import incoming_prefix


@pytest.mark.parametrize("prefix", ["incoming/set", "incoming/set/", "/incoming/set//", " incoming/set "])
def test_one_form(prefix):
    assert incoming_prefix(prefix) == "incoming/set/"


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "/",
        "incoming",
        "incoming/",  # everybody's files
        "incoming-not/set",
        "protected/original",
        "private/import/00",
        "incoming/../private",
        "incoming/set/../../private",
        "incoming/./set",
        "incoming//set",
        "incoming/s\0t",
        "INCOMING/set",
    ],
)
def test_nothing_else_of_the_bucket_can_be_imported(prefix):
    with pytest.raises(FileProblem, match="is not a prefix below incoming/"):
        incoming_prefix(prefix)
