"""Anybody can compute a published snapshot again: equal, or where not."""

import gzip
import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from imagedb.models import Visibility
from leaderboard.inputs import COLUMNS, Inputs, UnreadableInputs, header, read_inputs
from leaderboard.models import Entry, Snapshot
from leaderboard.services.boards import draft_of
from leaderboard.services.publication import publish
from leaderboard.services.recompute import recompute_pair
from leaderboard.triggers import TRIGGERS
from tests import factories
from tests.leaderboard import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def snapshot():
    """Two pairs, each rated by four people."""
    for shift in (60, 20):
        attack, target_model = factories.attack(), factories.target_model()
        modified = [factories.modified_image(attack=attack, target_model=target_model) for _ in range(3)]
        clean = [image.source for image in modified]
        study = rows.study(attack, target_model)
        for person in range(4):
            answers = [(image, (shift + 7 * person + 5 * place) % 101) for place, image in enumerate(modified)]
            answers += [(image, -(13 * person + 11 * place) % 101 - 90) for place, image in enumerate(clean)]
            rows.finished(study, answers)
        boards_of = recompute_pair(attack.pk, target_model.pk)
    return publish(boards_of[0])


def verify(snapshot, **options):
    output = io.StringIO()
    call_command("verify_snapshot", f"{snapshot.board.slug}/{snapshot.number}", stdout=output, **options)
    return output.getvalue()


def tamper(snapshot, **fields):
    """As somebody would who can take the rules out of the database."""
    TRIGGERS.remove(connection)
    Entry.objects.filter(pk=snapshot.entries.order_by("pk").first().pk).update(**fields)
    TRIGGERS.install(connection)


def download(snapshot, path):
    parts = [header()]
    for entry in snapshot.entries.order_by("-pk"):
        with entry.inputs.open("rb") as file:
            parts.append(file.read())
    path.write_bytes(b"".join(parts))
    return path


def test_a_snapshot_is_equal_from_its_files_and_from_the_download(snapshot, tmp_path):
    entry = snapshot.entries.first()
    assert (entry.participants, entry.ratings, entry.difference is not None) == (4, 24, True)
    assert "equal (2 entries computed again)" in verify(snapshot)
    path = download(snapshot, tmp_path / "inputs.csv.gz")
    assert "equal (2 entries computed again)" in verify(snapshot, inputs=path)
    text = gzip.decompress(path.read_bytes()).decode()
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert len(text.splitlines()) == 1 + 48


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"mean_modified": 1.0}, "mean_modified"),
        ({"ci90_low": -99.0}, "ci90_low"),
        ({"verdict": "imperceptible"}, "verdict"),
        ({"rank": 7}, "rank"),
        ({"flags": []}, "flags"),
        ({"participants": 5}, "participants"),
        ({"inputs_sha256": "0" * 64}, "digest of the file"),
        ({"input_digest": "0" * 64}, "digest of the ratings"),
    ],
)
def test_what_was_changed_is_named(snapshot, fields, where):
    tamper(snapshot, **fields)
    output = io.StringIO()
    with pytest.raises(CommandError, match="not what the inputs give"):
        call_command("verify_snapshot", str(snapshot.pk), stdout=output)
    assert where in output.getvalue()


def test_a_changed_rating_is_found(snapshot, tmp_path):
    path = download(snapshot, tmp_path / "inputs.csv.gz")
    text = gzip.decompress(path.read_bytes()).decode().splitlines()
    text[1] = text[1].replace(text[1].split(",")[5], "-1", 1)
    path.write_bytes(gzip.compress("\n".join(text).encode()))
    with pytest.raises(CommandError, match="not what the inputs give"):
        verify(snapshot, inputs=path)


def test_a_pair_of_which_a_rating_is_missing_is_named_with_both_numbers(snapshot, tmp_path):
    path = download(snapshot, tmp_path / "inputs.csv.gz")
    *lines, _ = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines)))
    output = io.StringIO()
    with pytest.raises(CommandError, match="not what the inputs give"):
        call_command("verify_snapshot", f"{snapshot.board.slug}/{snapshot.number}", inputs=path, stdout=output)
    entry = snapshot.entries.order_by("pk").first()
    assert f"{entry}, ratings: stored '24 with the digest {entry.input_digest}', computed '23 with" in output.getvalue()


def test_a_download_without_a_hidden_pair_is_equal_as_far_as_it_goes(snapshot, tmp_path):
    hidden, shown = snapshot.entries.order_by("pk")
    hidden.attack.images.update(visibility=Visibility.PRIVATE)
    path = tmp_path / "inputs.csv.gz"
    with shown.inputs.open("rb") as file:
        path.write_bytes(header() + file.read())
    output = verify(snapshot, inputs=path)
    assert f"{hidden}: not in the file." in output
    assert "equal (1 entries computed again)" in output


@pytest.mark.parametrize("name", ["nothing/1", "0", "draft", "slider/none"])
def test_only_what_was_published_can_be_verified(snapshot, name):
    with pytest.raises(CommandError, match="no such published snapshot"):
        call_command("verify_snapshot", name)
    with pytest.raises(CommandError, match="no such published snapshot"):
        call_command("verify_snapshot", str(draft_of(snapshot.board).pk))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not gzip", "f.gz: is not a gzip file"),
        (gzip.compress(b"a,b\n", mtime=0), "f.gz, line 1"),
        (gzip.compress(b"a,b,p,i,fake,1,,\n", mtime=0), "f.gz, line 1"),
        (gzip.compress(b"a,b,p,i,clean,x,,\n", mtime=0), "f.gz, line 1"),
    ],
    ids=["not gzip", "no columns", "unknown kind", "no number"],
)
def test_a_file_of_another_kind_is_refused_with_its_line(content, message):
    with pytest.raises(UnreadableInputs) as error:
        read_inputs(content, "f.gz")
    assert str(error.value).startswith(message)


def test_the_digest_does_not_hang_on_the_order_or_the_names(snapshot):
    with Snapshot.objects.get(pk=snapshot.pk).entries.first().inputs.open("rb") as file:
        (pair,) = read_inputs(file.read(), "f.gz")
    other = Inputs.of("renamed", "too", reversed(pair.ratings))
    assert other.digest == pair.digest == snapshot.entries.first().input_digest
    assert other.ratings == pair.ratings
