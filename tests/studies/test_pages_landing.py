"""The parameters of a participant's link, and what forms let through. Pure: no database."""

import json
from uuid import UUID

import pytest
from django.http import QueryDict

from studies.feedback import checked_answers, parse_items
from studies.forms import ConsentForm, FeedbackForm, parse_rating
from studies.landing import (
    Arrival,
    LandingProblem,
    LandingRefused,
    read_direct,
    read_prolific,
    read_resumption,
    read_test,
)

PID, STUDY, SESSION = "5f1a" * 6, "60aa" * 6, "61bb" * 6
COMPLETE = f"PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION}"
TOKEN = "11111111-2222-4333-8444-555555555555"


def parameters(query: str) -> dict[str, list[str]]:
    return dict(QueryDict(query).lists())


def refusal(query: str, read=read_prolific, **options) -> tuple[LandingProblem, str]:
    with pytest.raises(LandingRefused) as caught:
        read(parameters(query), **options)
    assert PID not in str(caught.value), "a refusal is logged, and so must not hold anybody's id"
    return caught.value.problem, caught.value.parameter


def test_a_complete_prolific_link_says_who_arrives():
    assert read_prolific(parameters(COMPLETE), prolific_study_id=STUDY) == Arrival(PID, SESSION)
    assert read_prolific(parameters(COMPLETE + "&utm_source=x")) == Arrival(PID, SESSION)


@pytest.mark.parametrize("name", ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda name, value: "", LandingProblem.MISSING),
        (lambda name, value: f"{name}=", LandingProblem.EMPTY),
        (lambda name, value: f"{name}=+", LandingProblem.EMPTY),
        (lambda name, value: f"{name}={value}&{name}={value}", LandingProblem.REPEATED),
        (lambda name, value: f"{name}={value}&{name}={value[::-1]}", LandingProblem.REPEATED),
        (lambda name, value: f"{name.lower()}={value}", LandingProblem.WRONG_CASE),
        (lambda name, value: f"{name}={{{{%{name}%}}}}", LandingProblem.PLACEHOLDER),
        (lambda name, value: f"{name}=%7B%7B%25{name}%25%7D%7D", LandingProblem.PLACEHOLDER),
        (lambda name, value: f"{name}=%257B%257B%2525{name}%2525%257D%257D", LandingProblem.PLACEHOLDER),
        (lambda name, value: f"{name}={value[:12]}", LandingProblem.PREVIEW),
        (lambda name, value: f"{name}={value[:13]}", LandingProblem.MALFORMED),
        (lambda name, value: f"{name}={value}0", LandingProblem.MALFORMED),
        (lambda name, value: f"{name}={value[:-1]}g", LandingProblem.MALFORMED),
        (lambda name, value: f"{name}={value}%0A", LandingProblem.MALFORMED),
        (lambda name, value: f"{name}=%D9%A3{value[1:]}", LandingProblem.MALFORMED),
    ],
)
def test_anything_wrong_with_a_prolific_parameter_is_refused_and_named(name, change, problem):
    values = {"PROLIFIC_PID": PID, "STUDY_ID": STUDY, "SESSION_ID": SESSION}
    query = "&".join(change(other, value) if other == name else f"{other}={value}" for other, value in values.items())
    assert refusal(query) == (problem, name)


def test_the_link_of_another_study_is_refused():
    assert refusal(COMPLETE, prolific_study_id="0" * 24) == (LandingProblem.OTHER_STUDY, "STUDY_ID")


def test_a_direct_link_needs_nothing_and_may_name_the_person():
    assert read_direct(parameters("")) == Arrival()
    assert read_direct(parameters("id=anna-7")) == Arrival("anna-7", "id:anna-7")
    assert refusal("id=", read=read_direct) == (LandingProblem.EMPTY, "id")
    assert refusal("id=a&id=b", read=read_direct) == (LandingProblem.REPEATED, "id")
    assert refusal("id=%3Cscript%3E", read=read_direct) == (LandingProblem.MALFORMED, "id")
    assert refusal("id=" + "x" * 61, read=read_direct) == (LandingProblem.MALFORMED, "id")


@pytest.mark.parametrize("name", ["ID", "Id"])
def test_an_id_in_another_case_is_refused_instead_of_forgotten(name):
    with pytest.raises(LandingRefused) as refused:
        read_direct({name: ["a-person"]})
    assert refused.value.problem == LandingProblem.WRONG_CASE


def test_a_personal_link_cannot_name_a_session_by_a_guessable_id():
    assert read_resumption(parameters("session=" + "ab" * 16)) == "ab" * 16
    assert refusal("session=id:anna-7", read=read_resumption) == (LandingProblem.MALFORMED, "session")


def test_a_test_link_takes_ids_of_any_simple_shape_but_no_placeholders():
    assert read_test(parameters("test=x")) == Arrival()
    assert read_test(parameters("PROLIFIC_PID=bot-1&SESSION_ID=5f1a5f1a5f1a")) == Arrival("bot-1", "5f1a5f1a5f1a")
    query = "SESSION_ID={{%SESSION_ID%}}"
    assert refusal(query, read=read_test) == (LandingProblem.PLACEHOLDER, "SESSION_ID")


# --- Forms ----------------------------------------------------------------------------------------------------


def rating(**fields) -> bytes:
    touched = {"touched": True, "first_interaction_ms": 500}
    return json.dumps({"token": TOKEN, "value": 0, **touched, **fields}).encode()


def test_a_rating_is_read_as_posted_and_zero_is_an_answer():
    posted = parse_rating(rating(value=0, response_ms=0, first_interaction_ms=0, focus_losses=2))
    assert posted.token == UUID(TOKEN)
    assert (posted.value, posted.response_ms, posted.first_interaction_ms, posted.focus_losses) == (0, 0, 0, 2)
    assert posted.start_position is None
    assert parse_rating(rating(start_position=0)).start_position == 0
    assert parse_rating(rating(value=-100)).value == -100


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "JSON object"),
        (b"null", "JSON object"),
        (json.dumps({"value": 3}).encode(), "token"),
        (rating(token=7), "token"),
        (rating(token="abc"), "token"),
        (json.dumps({"token": TOKEN}).encode(), "value is missing"),
        (rating(value=None), "value is missing"),
        (rating(value="37"), "value must be a whole number"),
        (rating(value=True), "value must be a whole number"),
        (rating(value=37.5), "value must be a whole number"),
        (rating(value=37.0), "value must be a whole number"),
        (rating(value=[37]), "value must be a whole number"),
        (rating(value=float("nan")), "not valid JSON"),
        (rating(value=float("inf")), "not valid JSON"),
        (json.dumps({"token": TOKEN, "value": 0}).encode(), "first_interaction_ms is missing"),
        (rating(touched=False), "touched must be true"),
        (rating(touched="true"), "touched must be true"),
        (rating(first_interaction_ms=None), "first_interaction_ms is missing"),
        (rating(start_position="0"), "start_position must be a whole number"),
        (rating(response_ms="12"), "response_ms must be a whole number"),
        (rating(focus_losses=False), "focus_losses must be a whole number"),
    ],
)
def test_a_malformed_rating_is_refused_by_name(body, message):
    with pytest.raises(ValueError, match=message):
        parse_rating(body)


@pytest.mark.parametrize(
    ("width", "ratio", "expected"),
    [
        ("1440", "2.5", (1440, 2.5)),
        ("", "", (None, None)),
        ("-3", "nan", (None, None)),
        ("9" * 5000, "x", (None, None)),
    ],
)
def test_a_window_that_measures_oddly_keeps_nobody_out(width, ratio, expected):
    form = ConsentForm({"decision": "accept", "viewport_width": width, "device_pixel_ratio": ratio})
    assert form.is_valid()
    assert (form.cleaned_data["viewport_width"], form.cleaned_data["device_pixel_ratio"]) == expected


def test_a_comment_of_2000_characters_fits_however_its_lines_end():
    items = parse_items("certainty: Sure? | No | Yes\ncomment: Anything?")
    comment = ("x" * 9 + "\r\n") * 200
    posted = FeedbackForm(items, {"item-comment": comment, "item-certainty": "2", "certainty": "1"}).answers()
    assert checked_answers(items, posted) == {"certainty": "2", "comment": comment.replace("\r\n", "\n").strip()}
