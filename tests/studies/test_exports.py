"""Exports: what is in the files, what is not, who may have them, and that the analysis reads them as they are."""

import csv
import io
import json

import pandas as pd
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.urls import reverse

from leaderboard.statistics.analysis import RatingScale
from leaderboard.statistics.ratings_file import read_ratings
from studies.models import FeedbackAnswer, ParticipationKind, ScaleDirection, Study, Trial
from studies.selectors import exports, valid_ratings
from tests import factories, walks
from tests.studies.admin_pages import account, text_of

pytestmark = pytest.mark.django_db

PID, SESSION = "5f1a" * 6, "61bb" * 6


def address(study, name, *parts):
    return reverse(f"admin:studies_study_{name}", args=[study.pk, *parts])


def download(client, url, **query):
    response = client.get(url, query)
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode()


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def may_see_panel_ids(client, user):
    user.user_permissions.add(Permission.objects.get(codename="view_participantidentity"))
    client.force_login(User.objects.get(pk=user.pk))


def test_every_rating_that_counts_is_a_row_with_scale_and_public_ids(client, researcher):
    study = factories.running_study(scale_direction=ScaleDirection.HIGHER_IS_CLEAN)
    participation = walks.to_main(study)
    for value in (-37, 0, 100):
        participation = walks.rate(participation, value if is_image(participation) else None)
    participation = walks.rate_all(participation)
    walks.give_feedback(participation.pk, {})
    walks.complete(study, failed_checks=2)  # not valid
    walks.to_main(study)  # not finished
    walks.complete(study, ParticipationKind.TEST)

    rows = read_csv(download(client, address(study, "ratings_file", "csv")))
    assert list(rows[0]) == list(exports.RATING_COLUMNS)
    trials = list(participation.trials.filter(kind="image").select_related("rating", "image"))
    assert len(rows) == len(trials) == 6
    for row, trial in zip(rows, trials, strict=True):
        value = trial.rating.value
        assert (row["rating"], row["rating_higher_is_modified"]) == (str(value), str(-value))
        assert (row["image_id"], row["image_type"]) == (str(trial.image.public_id), trial.image.kind)
        assert row["position"] == str(trial.position)
        assert row["response_ms"] == "1500"
    first = rows[0]
    assert first["pid"] == str(participation.public_id)
    assert (first["scale_minimum"], first["scale_maximum"]) == ("-100", "100")
    assert (first["scale_direction"], first["protocol"]) == ("higher_is_clean", "paper")
    assert (first["attack"], first["target_model"]) == (study.attack.slug, study.target_model.slug)
    assert (first["valid"], first["outcome"], first["participant_kind"]) == ("true", "completed", "real")
    assert first["answered_at"].endswith("Z")


def is_image(participation):
    return Trial.objects.filter(participation=participation, rating=None).order_by("position")[0].kind == "image"


def test_numbers_stay_numbers_for_pandas(client, researcher):
    study = factories.running_study()
    walks.complete(study)
    frame = pd.read_csv(io.StringIO(download(client, address(study, "ratings_file", "csv"))))
    assert frame["rating"].dtype == frame["rating_higher_is_modified"].dtype == "int64"
    assert sorted(frame["rating"].unique()) == [-100, 100]


def test_all_ratings_name_validity_and_outcome_and_leave_tests_and_previews_out(client, researcher):
    study = factories.running_study(participants_per_dataset=5)
    people = [walks.complete(study), walks.complete(study, failed_checks=2), walks.rate(walks.to_main(study))]
    walks.complete(study, ParticipationKind.TEST)
    walks.complete(study, ParticipationKind.PREVIEW)
    rows = read_csv(download(client, address(study, "ratings_file", "csv"), rows="all"))
    kinds = {(row["pid"], row["outcome"], row["valid"]) for row in rows}
    expected = {
        (str(people[0].public_id), "completed", "true"),
        (str(people[1].public_id), "attention_failed", "false"),
    }
    assert expected <= kinds
    assert {pid for pid, _, _ in kinds} <= {str(person.public_id) for person in people}
    assert len([row for row in rows if row["valid"] == "true"]) == 6


def test_json_lines_hold_the_same(client, researcher):
    study = factories.running_study()
    walks.complete(study)
    lines = [json.loads(line) for line in download(client, address(study, "ratings_file", "jsonl")).splitlines()]
    rows = read_csv(download(client, address(study, "ratings_file", "csv")))
    assert len(lines) == len(rows) == 6
    assert list(lines[0]) == list(exports.RATING_COLUMNS)
    assert [line["rating"] for line in lines] == [int(row["rating"]) for row in rows]
    assert [line["pid"] for line in lines] == [row["pid"] for row in rows]
    assert lines[0]["valid"] is True
    assert lines[0]["start_position"] is None


@pytest.mark.parametrize("direction", ScaleDirection.values)
def test_the_analysis_reads_the_file_as_it_is(client, researcher, tmp_path, direction):
    study = factories.running_study(scale_direction=direction, participants_per_dataset=3)
    for number in range(4):
        participation = walks.to_main(study)
        while participation.step == "main":
            value = [-61, -20, 5, 44][number] if is_image(participation) else None
            participation = walks.rate(participation, value)
        walks.give_feedback(participation.pk, {})
    file = tmp_path / "ratings.csv"
    file.write_text(download(client, address(study, "ratings_file", "csv")), encoding="utf-8")
    page = text_of(client.get(address(study, "exports")))
    high_means = "modified" if direction == ScaleDirection.HIGHER_IS_MODIFIED else "clean"
    assert f"--scale-min=-100 --scale-max=100 --high-means={high_means}" in page

    read = read_ratings(file, RatingScale(-100, 100, high_means == "modified"))
    (direct,) = valid_ratings(study.attack_id, study.target_model_id)
    assert sorted(read.values * (1 if high_means == "modified" else -1)) == sorted(direct.values)
    assert sorted(read.is_modified) == sorted(direct.is_modified)
    options = ["--scale-min=-100", "--scale-max=100", f"--high-means={high_means}", "--format=json"]
    output = io.StringIO()
    call_command("analyse_ratings", str(file), *options, stdout=output)
    assert json.loads(output.getvalue())["participants"] == 4


def test_a_study_without_ratings_has_a_file_with_a_header(client, researcher):
    study = factories.running_study()
    assert download(client, address(study, "ratings_file", "csv")).split() == [",".join(exports.RATING_COLUMNS)]
    assert download(client, address(study, "ratings_file", "jsonl")) == ""


def test_participants_have_outcome_checks_times_and_amount_due(client, researcher):
    study = factories.running_study()
    walks.complete(study)
    walks.answer_plates(walks.consent(walks.enter(study)), wrong=2)
    walks.to_main(study)
    walks.complete(study, failed_checks=1)
    rows = read_csv(download(client, address(study, "participants_file")))
    assert [(row["outcome"], row["amount_due"], row["valid"]) for row in rows] == [
        ("completed", "1.65", "true"),
        ("colour_check_failed", "0.13", "false"),
        ("", "", "false"),
        ("attention_failed", "1.65", "false"),
    ]
    assert [(row["plates_right"], row["plates_answered"]) for row in rows] == [
        ("3", "3"),
        ("1", "3"),
        ("3", "3"),
        ("3", "3"),
    ]
    assert [(row["pairs_right"], row["images_rated"], row["attention_checks_answered"]) for row in rows] == [
        ("3", "6", "2"),
        ("0", "0", "0"),
        ("3", "0", "0"),
        ("3", "6", "2"),
    ]
    assert rows[3]["attention_failures"] == "1"
    assert rows[0]["median_response_ms"] == "1500"
    assert rows[0]["currency"] == "GBP"
    assert rows[2]["step"] == "main"
    assert json.loads(rows[0]["feedback"]) == {"comment": "Fine"}


def test_text_that_looks_like_a_formula_is_neutralised(client, researcher):
    study = factories.running_study()
    participation = walks.complete(study, participant_id="-1+2", session_id="=1+1")
    text = study.texts.get(kind="feedback")
    FeedbackAnswer.objects.create(participation=participation, text=text, item="why", answer='=HYPERLINK("http://x")')
    may_see_panel_ids(client, researcher)
    (row,) = read_csv(download(client, address(study, "participants_file"), panel_ids="1"))
    assert (row["panel_participant_id"], row["panel_session_id"]) == ("'-1+2", "'=1+1")
    assert json.loads(row["feedback"])["why"] == '=HYPERLINK("http://x")'
    assert row["feedback"].startswith("{")


def test_panel_ids_are_in_columns_of_their_own_for_those_who_may_see_them(client, researcher):
    study = factories.running_study()
    walks.complete(study, participant_id=PID, session_id=SESSION)
    files = [
        address(study, "ratings_file", "csv"),
        address(study, "ratings_file", "jsonl"),
        address(study, "participants_file"),
    ]
    for file in files:
        text = download(client, file)
        assert PID not in text
        assert SESSION not in text
    assert client.get(files[2], {"panel_ids": "1"}).status_code == 403
    assert "panel ids" not in text_of(client.get(address(study, "exports")))

    may_see_panel_ids(client, researcher)
    (row,) = read_csv(download(client, files[2], panel_ids="1"))
    assert (row["panel_participant_id"], row["panel_session_id"]) == (PID, SESSION)
    assert list(row)[-2:] == ["panel_participant_id", "panel_session_id"]
    assert PID not in download(client, files[2])


@pytest.mark.parametrize("permission", ["studies.view_study", "studies.view_participation"])
def test_files_need_the_permissions_for_studies_and_for_participants(client, permission):
    study = factories.running_study()
    client.force_login(account(permission))
    for name, *parts in (
        ["exports"],
        ["ratings_file", "csv"],
        ["participants_file"],
        ["payment_file", "completed", "list"],
    ):
        assert client.get(address(study, name, *parts)).status_code == 403


def test_strangers_are_sent_to_the_log_in_page_and_nothing_can_be_posted(client, researcher):
    study = factories.running_study()
    file = address(study, "ratings_file", "csv")
    assert client.post(file).status_code == 405
    client.logout()
    assert client.get(file).status_code == 302


@pytest.mark.parametrize(
    ("parts", "query"),
    [(["ratings_file", "xlsx"], {}), (["ratings_file", "csv"], {"rows": "some"})],
)
def test_what_there_is_not_is_not_found(client, researcher, parts, query):
    study = factories.running_study()
    assert client.get(address(study, *parts), query).status_code == 404


def test_rows_are_asked_for_some_at_a_time(client, researcher, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(exports, "ROWS_AT_A_TIME", 4)
    monkeypatch.setattr(exports, "PARTICIPANTS_AT_A_TIME", 2)
    study = factories.running_study(participants_per_dataset=3)
    for _ in range(5):
        walks.complete(study)
    study = Study.objects.select_related("attack", "target_model").get()
    with django_assert_num_queries(1):
        pieces = list(exports.as_csv(exports.RATING_COLUMNS, exports.rating_rows(study)))
    assert len(pieces) == 9  # 30 rows, 4 at a time; and what is left, nothing
    assert len(read_csv("".join(pieces))) == 30
    with django_assert_num_queries(1 + 3 * 4):
        assert len(list(exports.participant_rows(study))) == 5
