"""The commands that analyse rating files and plan studies."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from leaderboard.statistics.mixed_model import fit_mixed_model
from tests.leaderboard.published_ratings import simulated

HEADER = "rating,pid,image_type,image_id\n"
SCALE = ("--scale-min", "-2", "--scale-max", "2", "--high-means", "clean")


def analyse(*arguments):
    output = io.StringIO()
    call_command("analyse_ratings", *[str(argument) for argument in arguments], stdout=output)
    return output.getvalue()


@pytest.fixture
def ratings_file(tmp_path):
    def write(text, name="ratings.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def some_ratings(ratings_file):
    ratings = simulated(participants=12, images_per_kind=10, rated_per_kind=5, seed=1)
    rows = zip(ratings.values, ratings.participants, ratings.is_modified, ratings.images, strict=True)
    lines = [
        f"{min(2, max(-2, round(value / 20)))},{participant},{'modified' if modified else 'real'},{image}"
        for value, participant, modified, image in rows
    ]
    return ratings_file(HEADER + "\n".join(lines))


def test_json(some_ratings):
    result = json.loads(analyse(some_ratings, *SCALE, "--format", "json", "--bootstrap", "5"))

    assert {
        "ratings",
        "participants",
        "images",
        "mixed_model",
        "equivalence",
        "auc",
        "reliability",
        "robustness",
    } <= set(result)
    assert result["ratings"] == 120
    assert result["equivalence"]["bounds"] == pytest.approx([-0.2, 0.2])
    assert len(result["auc"]["ci95"]) == len(result["robustness"]["bootstrap_interval"]) == 2


def test_text_reads_like_a_paragraph(shared_data):
    text = analyse(shared_data / "ratings" / "cadv.csv", *SCALE)

    assert text.startswith("61 participants gave 6100 ratings of 893 modified and 1923 clean images")
    assert (
        "In the mixed model clean images were rated +2.598 points from modified ones (SE 0.091, 64.6 degrees of "
        "freedom, 90 % interval 2.446 to 2.751)." in text
    )
    assert "p < 0.001 and p = 1.000: perceptible" in text


def test_several_files_are_one_board(some_ratings, shared_data):
    result = json.loads(
        analyse(some_ratings, shared_data / "ratings" / "cadv.csv", *SCALE, "--format", "json", "--bound", "0.5")
    )

    assert [pair["place"]["rank"] for pair in result["pairs"]] == [1, 2]
    assert result["pairs"][1]["place"]["rank_interval90"] == [2, 2]
    assert result["pairs"][0]["equivalence"]["bounds"] == [-0.5, 0.5]


def test_separators_order_and_extra_columns(ratings_file):
    text = "\ufeffextra;image_id;image_type;pid;rating\r\n" + "".join(
        f"x;{image};{kind};{pid};{value}\r\n"
        for pid in (1, 2, 3)
        for image, (kind, value) in enumerate([("modified", -2), ("modified", 0), ("clean", 1), ("real", 2)])
    )

    result = json.loads(analyse(ratings_file(text), *SCALE, "--format", "json"))

    assert (result["ratings"], result["mean_modified"], result["mean_clean"]) == (12, -1.0, 1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "3,1,real,1\n", "line 2, column rating: '3' is no number from -2 to 2"),
        (HEADER + "nan,1,real,1\n", "line 2, column rating: 'nan'"),
        (HEADER + "1,1,real,1\n1,,real,1\n", "line 3, column pid: is empty"),
        (HEADER + "1,1,fake,1\n", "line 2, column image_type: 'fake' is none of modified, real, clean"),
        (HEADER + "1,1,real\n", "line 2, column image_id: is empty"),
        ("rating,pid,image_type\n1,1,real\n", "line 1: column image_id is missing"),
        ("rating,rating,pid,image_type,image_id\n", "line 1: column rating is there twice"),
        (HEADER, "has no ratings"),
        (HEADER.encode() + b"1,\xff,real,1\n", "is not UTF-8 text"),
    ],
)
def test_errors_name_file_line_and_column(ratings_file, text, message):
    path = ratings_file(text)

    with pytest.raises(CommandError) as error:
        analyse(path, *SCALE)

    assert str(path) in str(error.value)
    assert message in str(error.value)
    assert error.value.returncode == 2


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere\.csv: cannot be read"):
        analyse(tmp_path / "nowhere.csv", *SCALE)


class TestPlan:
    VARIANCES = ("--variances", "300", "290", "-200", "100", "60", "600")

    def plan(self, *arguments):
        output = io.StringIO()
        call_command("plan_study", *[str(argument) for argument in arguments], stdout=output)
        return output.getvalue().splitlines()

    def test_table(self):
        header, row = self.plan("--participants", "690", *self.VARIANCES, "--pounds", "4.57")

        assert header.split() == ["participants", "ratings", "interval", "width", "power", "cost"]
        assert row.split() == ["690", "69000", "2.348", "1.000", "£3,153.30"]

    def test_the_number_that_a_power_needs(self):
        lines = self.plan("--power", "0.8", "0.95", *self.VARIANCES)

        assert lines[:2] == ["Power 80%: 29 participants", "Power 95%: 43 participants"]

    def test_variances_from_earlier_ratings(self, shared_data):
        lines = self.plan(
            "--power", "0.8", "--like", shared_data / "ratings" / "cadv.csv", "--scale-min", -2, "--scale-max", 2
        )

        assert lines[0] == "Power 80%: 110 participants"

    def test_what_no_number_reaches(self):
        lines = self.plan("--power", "0.9", *self.VARIANCES, "--pool-per-kind", "5", "--images-per-kind", "5")

        assert lines[0].startswith("Power 90%: not with any number of participants")

    @pytest.mark.parametrize("variances", [("-1", "1", "0", "1", "1", "1"), ("1", "1", "2", "1", "1", "1")])
    def test_impossible_variances_are_refused(self, variances):
        with pytest.raises(CommandError, match="--variances: "):
            self.plan("--variances", *variances)


def test_simulated_ratings_have_the_variances_they_were_made_with():
    fit = fit_mixed_model(simulated(participants=200, images_per_kind=100, rated_per_kind=20, seed=9))

    assert fit.variance_components.residual == pytest.approx(25**2, rel=0.05)
    assert fit.variance_components.participant_intercept == pytest.approx(18**2, rel=0.25)
