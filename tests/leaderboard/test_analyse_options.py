"""What the commands that analyse ratings and plan studies can do besides: image effects, comparisons, subsamples."""

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command
from scipy import stats

from leaderboard.statistics.image_effects import predict_image_effects
from leaderboard.statistics.mixed_model import fit_mixed_model
from leaderboard.statistics.ratings import Ratings
from tests.leaderboard.published_ratings import simulated

SCALE = ("--scale-min", "-100", "--scale-max", "100", "--high-means", "modified")


def run(command, *arguments):
    output = io.StringIO()
    call_command(command, *[str(argument) for argument in arguments], stdout=output)
    return output.getvalue()


def write(path, ratings, image_id=str):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rating", "pid", "image_type", "image_id"])
        for value, participant, is_modified, image in zip(
            ratings.values, ratings.participants, ratings.is_modified, ratings.image_ids[ratings.images], strict=True
        ):
            value = min(100.0, max(-100.0, float(value)))
            writer.writerow([value, participant, "modified" if is_modified else "clean", image_id(image)])
    return path


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))


@pytest.fixture
def ratings():
    return simulated(participants=10, images_per_kind=8, rated_per_kind=5, seed=1, residual_sd=10)


@pytest.fixture
def attacks(tmp_path):
    return [
        write(
            tmp_path / f"attack{seed}.csv",
            simulated(participants=10, images_per_kind=8, rated_per_kind=5, seed=seed, residual_sd=10),
        )
        for seed in (1, 2, 3)
    ]


class TestImageEffects:
    def test_every_image_has_a_row_with_its_own_id(self, tmp_path, ratings):
        # Ids coincide between the kinds, and one looks like a formula.
        source = write(tmp_path / "ratings.csv", ratings, lambda image: "=1+1" if image == 3 else f"n{image}.png")
        target = tmp_path / "effects.csv"

        run("analyse_ratings", source, *SCALE, "--image-effects", target)

        rows = rows_of(target)
        model = fit_mixed_model(ratings)
        expected = predict_image_effects(ratings, model)
        of_code = {
            (ratings.image_ids[code], is_modified): place
            for place, (code, is_modified) in enumerate(zip(expected.images, expected.is_modified, strict=True))
        }
        assert len(rows) == len(of_code) == ratings.image_count
        for row in rows:
            number = 3 if row["image_id"] == "'=1+1" else int(row["image_id"].removeprefix("n").removesuffix(".png"))
            place = of_code[number, row["image_type"] == "modified"]
            assert row["file"] == str(source)
            assert int(row["ratings"]) == expected.ratings[place]
            assert float(row["predicted_mean"]) == pytest.approx(expected.mean[place], abs=1e-4)
            assert float(row["effect"]) == pytest.approx(expected.effect[place], abs=1e-4)
            assert float(row["standard_error"]) == pytest.approx(expected.standard_error[place], rel=1e-4)

    def test_several_files_are_told_apart(self, tmp_path, attacks):
        target = tmp_path / "effects.csv"

        run("analyse_ratings", *attacks, *SCALE, "--image-effects", target)

        assert {row["file"] for row in rows_of(target)} == {str(path) for path in attacks}

    def test_a_file_that_cannot_be_written_is_named(self, tmp_path, attacks):
        target = tmp_path / "nowhere" / "effects.csv"

        with pytest.raises(CommandError, match=r"effects\.csv: cannot be written") as error:
            run("analyse_ratings", attacks[0], *SCALE, "--image-effects", target)

        assert error.value.returncode == 2

    def test_the_ratings_are_not_written_over(self, attacks):
        before = attacks[0].read_bytes()

        with pytest.raises(CommandError, match="names a file of ratings"):
            run("analyse_ratings", *attacks, *SCALE, "--image-effects", attacks[0])

        assert attacks[0].read_bytes() == before

    def test_a_failed_writing_leaves_the_old_file(self, tmp_path, attacks, monkeypatch):
        target = tmp_path / "effects.csv"
        target.write_text("old")

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("leaderboard.image_effects_file.predict_image_effects", full)
        with pytest.raises(CommandError, match="No space left"):
            run("analyse_ratings", attacks[0], *SCALE, "--image-effects", target)

        assert target.read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            [*(path.name for path in attacks), target.name]
        )

    def test_ratings_without_a_model_have_no_rows(self, tmp_path):
        source = tmp_path / "one.csv"
        source.write_text("rating,pid,image_type,image_id\n5,1,clean,1\n")
        target = tmp_path / "effects.csv"

        run("analyse_ratings", source, *SCALE, "--image-effects", target)

        assert target.read_text().splitlines() == [
            "file,image_id,image_type,ratings,predicted_mean,effect,standard_error"
        ]


class TestComparisons:
    def test_every_two_files_are_compared(self, attacks):
        result = json.loads(run("analyse_ratings", *attacks, *SCALE, "--format", "json"))

        names = [(one["first"], one["second"]) for one in result["comparisons"]]
        assert names == [(str(attacks[a]), str(attacks[b])) for a, b in ((0, 1), (0, 2), (1, 2))]
        of_file = {pair["file"]: pair["mixed_model"] for pair in result["pairs"]}
        for one in result["comparisons"]:
            first, second = of_file[one["first"]], of_file[one["second"]]
            difference = first["difference_clean_minus_modified"] - second["difference_clean_minus_modified"]
            error = (first["standard_error"] ** 2 + second["standard_error"] ** 2) ** 0.5
            assert one["difference_first_minus_second"] == pytest.approx(difference)
            assert one["standard_error"] == pytest.approx(error)
            assert one["p_value"] == pytest.approx(2 * stats.t.sf(abs(difference) / error, one["df"]))
            assert sum(one["ci95"]) / 2 == pytest.approx(difference)
            assert one["p_value"] <= one["holm_p_value"] <= 3 * one["p_value"]

    def test_text(self, attacks):
        paragraphs = run("analyse_ratings", *attacks[:2], *SCALE).strip().split("\n\n")

        assert len(paragraphs) == 3
        assert paragraphs[2].startswith(f"{attacks[0]} against {attacks[1]}: their differences")
        assert "(95 % interval " in paragraphs[2]

    def test_what_has_no_model_is_not_compared(self, tmp_path, attacks):
        single = tmp_path / "one.csv"
        single.write_text("rating,pid,image_type,image_id\n5,1,clean,1\n")

        result = json.loads(run("analyse_ratings", single, *attacks[:2], *SCALE, "--format", "json"))

        assert [(one["first"], one["second"]) for one in result["comparisons"]] == [(str(attacks[0]), str(attacks[1]))]


class TestSubsamples:
    def test_the_curve(self, attacks):
        header, *rows = run(
            "plan_study", "--subsample", attacks[0], "--participants", 5, 10, "--draws", 4, "--pounds", "2.50"
        ).splitlines()

        assert header.split("  ")[0] == "participants"
        smaller, whole = (row.split() for row in rows)
        fit = fit_mixed_model(simulated(participants=10, images_per_kind=8, rated_per_kind=5, seed=1, residual_sd=10))
        low, high = fit.interval(0.9)
        assert whole[:3] == ["10", "4", f"{fit.difference:.3f}"]
        assert whole[3:5] == ["0.000", f"{high - low:.3f}"]
        assert sorted(whole[5:8]) == ["0%", "0%", "100%"]
        assert (smaller[-1], whole[-1]) == ("£12.50", "£25.00")
        assert float(smaller[3]) > 0

    def test_sizes_are_tenths_unless_given(self, attacks):
        rows = run("plan_study", "--subsample", attacks[0], "--draws", 1).splitlines()[1:]

        assert [int(row.split()[0]) for row in rows] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
        assert {row.split()[3] for row in rows} == {"-"}  # one draw has no spread

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--participants", "11"), "between 2 and 10 participants"),
            (("--power", "0.8"), "leave --power and --simulate away"),
            (("--simulate", "5"), "leave --power and --simulate away"),
        ],
    )
    def test_what_cannot_be_drawn_is_refused(self, attacks, arguments, message):
        with pytest.raises(CommandError, match=message) as error:
            run("plan_study", "--subsample", attacks[0], *arguments)

        assert error.value.returncode == 2


def test_codes_keep_the_ids_they_were_given():
    ratings = Ratings.from_columns([1, 2, 3, 4], [True, False, True, False], list("aabb"), ["y", "y", "x", "z"])

    assert ratings.image_ids[ratings.images].tolist() == ["y", "y", "x", "z"]
    assert ratings.image_count == 4
