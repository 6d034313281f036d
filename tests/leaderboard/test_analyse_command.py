"""The commands that analyse rating files and plan studies."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

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
        "mean_modified",
        "sd_modified",
        "mean_clean",
        "sd_clean",
        "mixed_model",
        "equivalence",
        "auc",
        "reliability",
        "robustness",
    } <= set(result)
    assert set(result["mixed_model"]) == {
        "reml_criterion",
        "intercept_modified",
        "difference_clean_minus_modified",
        "standard_error",
        "satterthwaite_df",
        "ci90",
        "ci95",
        "boundary",
        "boundary_parameters",
        "variance_components",
    }
    assert set(result["mixed_model"]["variance_components"]) == {
        "participant_intercept",
        "participant_slope",
        "participant_covariance",
        "image_modified",
        "image_clean",
        "residual",
    }
    assert {"bounds", "t_lower", "t_upper", "p_lower", "p_upper", "verdict"} <= set(result["equivalence"])
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
        (HEADER + '1,"a\nb",real,1\n1,c,fake,1\n', "line 4, column image_type"),
        # Signs that some take for ends of lines are part of an id.
        (HEADER + "1,a\x0bb\u2028c,real,1\n1,a,fake,1\n", "line 3, column image_type"),
        (HEADER + '1,"a,real,1\n', "line 2: is not CSV"),
        (HEADER + f"{10**400},1,real,1\n", "line 2, column rating"),
        (HEADER.replace(",", ";") + "1,5;1;real;1\n", "line 2, column rating: '1,5' is no number"),
    ],
)
def test_errors_name_file_line_and_column(ratings_file, text, message):
    path = ratings_file(text)

    with pytest.raises(CommandError) as error:
        analyse(path, *SCALE)

    assert str(path) in str(error.value)
    assert message in str(error.value)
    assert error.value.returncode == 2


def test_tabs_separate_too(ratings_file):
    rows = "".join(f"{value}\t{pid}\t{kind}\t1\n" for pid in (1, 2) for kind, value in (("real", 2), ("modified", -1)))

    result = json.loads(analyse(ratings_file(HEADER.replace(",", "\t") + rows), *SCALE, "--format", "json"))

    assert (result["ratings"], result["mean_modified"], result["mean_clean"]) == (4, -1.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--alpha", "0"), "--alpha: '0' is not between"),
        (("--alpha", "0.5"), "--alpha: '0.5' is not between"),
        (("--alpha", "1e-300"), "--alpha: '1e-300' is not between"),
        (("--bound=-1",), "--bound: '-1' is not above 0"),
        (("--bound", "nan"), "--bound: 'nan' is no number"),
        (("--seed=-1",), "--seed: '-1' is no whole number"),
        (("--scale-min", "2"), "minimum must be below its maximum"),
        (("--scale-max", "1e200"), "points wide"),
    ],
)
def test_impossible_settings_are_refused(some_ratings, arguments, message):
    with pytest.raises(CommandError, match=message):
        analyse(some_ratings, *SCALE, *arguments)


@pytest.mark.parametrize(
    ("scale", "doubted"), [(("-100", "100"), True), (("-2", "2"), False), (("-21", "21"), True), (("-19", "19"), False)]
)
def test_a_scale_that_the_ratings_hardly_use_is_doubted(some_ratings, capsys, scale, doubted):
    rows = [
        f"{value},p{person},{kind},{kind}-{person}"
        for person in range(5)
        for value, kind in ((-2, "clean"), (2, "modified"))
    ]
    some_ratings.write_text("\n".join(["rating,pid,image_type,image_id", *rows]))
    low, high = scale
    analyse(some_ratings, f"--scale-min={low}", f"--scale-max={high}", "--high-means=modified")
    said = f"{some_ratings}: all ratings lie between -2 and 2, on a scale from {low} to {high}: was it this scale"
    assert (said in capsys.readouterr().err) == doubted


def test_the_program_needs_no_site(some_ratings, tmp_path):
    """No settings, no database: it reads files and arguments alone. So does plan_study."""
    project = Path(__file__).parents[2]
    environment = {"PATH": os.environ["PATH"]}
    for command in (
        ["analyse_ratings", str(some_ratings), *SCALE],
        ["plan_study", "--participants", "60", "--variances", "300", "290", "-200", "100", "60", "600"],
    ):
        ended = subprocess.run(
            [sys.executable, "manage.py", *command], cwd=project, env=environment, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr


def test_the_program_ends_with_status_2(some_ratings):
    # As a shell sees it: argparse and the command itself end alike.
    program = [sys.executable, "manage.py", "analyse_ratings", str(some_ratings), *SCALE]
    project = Path(__file__).parents[2]
    for arguments in (["--alpha", "0"], ["--scale-min", "1"]):
        ended = subprocess.run([*program, *arguments], cwd=project, capture_output=True, text=True)

        assert ended.returncode == 2
        assert "Traceback" not in ended.stderr
    assert f"{some_ratings}, line " in ended.stderr
    assert ", column rating: " in ended.stderr


def test_a_file_named_twice_is_refused(some_ratings):
    with pytest.raises(CommandError, match="named twice") as error:
        analyse(some_ratings, some_ratings.parent / "." / some_ratings.name, *SCALE)

    assert error.value.returncode == 2


def test_files_of_one_name_in_two_folders_are_two(tmp_path, some_ratings):
    other = tmp_path / "other" / some_ratings.name
    other.parent.mkdir()
    other.write_bytes(some_ratings.read_bytes())

    result = json.loads(analyse(some_ratings, other, *SCALE, "--format", "json"))

    assert [pair["file"] for pair in result["pairs"]] == [str(some_ratings), str(other)]
    assert [pair["place"]["rank"] for pair in result["pairs"]] == [1, 1]


class TestSources:
    TEXT = "rating,pid,image_type,image_id,Source\n" + "".join(
        f"{value},{pid},{kind},{image},{source}\n"
        for pid in (1, 2)
        for value, kind, image, source in [
            (-2, "modified", "m1", "c1"),
            (0, "modified", "m2", "c2"),
            (1, "modified", "m3", "unrated"),
            (2, "clean", "c1", ""),
            (1, "real", "c2", ""),
        ]
    )

    def test_modified_images_are_held_against_their_own_sources(self, ratings_file):
        path = ratings_file(self.TEXT)

        couples = json.loads(analyse(path, *SCALE, "--format", "json", "--source-column", "source"))["couples"]

        # Couples (c1, m1) and (c2, m2): 4 and 1, with mean 2.5 and standard error 1.5.
        assert (couples["count"], couples["difference_clean_minus_modified"]) == (2, pytest.approx(2.5))
        assert (couples["standard_error"], couples["df"]) == (pytest.approx(1.5), 1)
        assert "2 clean images were rated +2.500 points" in analyse(path, *SCALE, "--source-column", "source")
        assert json.loads(analyse(path, *SCALE, "--format", "json"))["couples"] is None

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (TEXT + "1,3,modified,m1,c2\n", "line 12, column source: image m1 has another source above"),
            (HEADER + "1,1,real,1\n", "line 1: column source is missing"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, ratings_file, text, message):
        with pytest.raises(CommandError, match=message) as error:
            analyse(ratings_file(text), *SCALE, "--source-column", "source")

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

    def test_a_scale_the_wrong_way_round_is_refused(self):
        with pytest.raises(CommandError, match="minimum must be below its maximum"):
            self.plan(*self.VARIANCES, "--scale-min", "100", "--scale-max", "-100")

    @pytest.mark.parametrize("variances", ["1e300 1e300 0 1 1 1e300", "1 0 0 1e-300 0 1e-300"])
    def test_numbers_that_cannot_be_computed_with_are_refused(self, variances):
        with pytest.raises(CommandError, match="too large, or too small"):
            self.plan("--variances", *variances.split())

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
