"""The small language of feedback questions. Pure: no database."""

import pytest

from studies.feedback import FeedbackError, FeedbackItem, checked_answers, parse_items
from studies.presets import PRESETS


def test_questions_are_read_in_their_order():
    assert parse_items("\n  sure : How sure: really? | Not at all |Very \n\ncomment:Anything?\n") == [
        FeedbackItem("sure", "How sure: really?", ("Not at all", "Very")),
        FeedbackItem("comment", "Anything?"),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "There is no question"),
        (" \n\n", "There is no question"),
        ("a: One?\nAnything to tell us?", "Line 2: a name and a colon must stand before"),
        ("a: One?\n\nHow sure: were you?", "Line 3: “How sure” cannot be a name"),
        ("2nd: One?", "Line 1: “2nd” cannot be a name"),
        (": One?", "Line 1: “” cannot be a name"),
        ("x" * 41 + ": One?", "at most 40"),
        ("a:", "Line 1: the question is missing after “a:”"),
        ("a: | Yes | No", "Line 1: the question is missing"),
        ("a: Sure? | Yes |", "Line 1: there is a bar without a choice"),
        ("a: Sure? | Yes", "Line 1: 2 to 10 choices are possible, or none; not 1"),
        ("a: Sure?" + "".join(f"| {number}" for number in range(11)), "not 11"),
        ("a: Sure? | Yes | Yes", "Line 1: two choices are the same"),
        ("a: One?\nb: Two?\na: Three?", "Line 3: the name “a” is used twice"),
        ("\n".join(f"a{number}: One?" for number in range(41)), "41 questions; at most 40"),
    ],
)
def test_what_cannot_be_read_is_refused_by_line(body, message):
    with pytest.raises(FeedbackError, match=message):
        parse_items(body)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_presets_ask_for_a_self_assessment_and_free_text(preset):
    items = parse_items(preset.texts["feedback"])
    assert [(item.name, len(item.choices)) for item in items] == [
        ("certainty", 5),
        ("visibility", 5),
        ("used_system", 5),
        ("comment", 0),
    ]


def test_answers_are_kept_by_name_and_read_back_in_words():
    items = parse_items("sure: Sure? | No | Yes\ncomment: Anything?")
    given = checked_answers(items, {"comment": " 7 ", "sure": "2"})
    assert given == {"comment": "7", "sure": "2"}
    assert [item.in_words(given[item.name]) for item in items] == ["Yes", "7"]
