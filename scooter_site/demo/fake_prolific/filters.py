"""Prescreeners of the stand-in. Ids and keys are its own wherever Prolific's were not to be found: resolve by label."""

from scooter_site.demo.fake_prolific.world import Row

FILTERS: list[Row] = [
    {
        "filter_id": "colourblindness",
        "title": "Colour blindness",
        "description": "",
        "question": "Do you experience colour blindness?",
        "type": "select",
        "choices": {"0": "Yes", "1": "No", "2": "Rather not say"},
        "data_type": "ChoiceID",
        "min": None,
        "max": None,
    },
    {
        "filter_id": "fluent-languages",
        "title": "Fluent languages",
        "description": "",
        "question": "Which of the following languages are you fluent in?",
        "type": "select",
        "choices": {"17": "Dutch", "19": "English", "25": "French", "29": "German"},
        "data_type": "ChoiceID",
        "min": None,
        "max": None,
    },
    {
        "filter_id": "age",
        "title": "Age",
        "description": "",
        "question": "What is your date of birth?",
        "type": "range",
        "choices": {},
        "data_type": "ChoiceID",
        "min": 18,
        "max": 100,
    },
    {
        "filter_id": "previous_studies_blocklist",
        "title": "Exclude participants from previous studies",
        "description": "",
        "question": "",
        "type": "select",
        "choices": {},
        "data_type": "StudyID",
        "min": None,
        "max": None,
    },
]
# How many people each restriction lets in, of all; an invention.
EVERYBODY = 120_000


def eligible(filters: list[Row]) -> int:
    """Counts of less than 25 people are given as 0."""
    count = EVERYBODY // 2 ** len(filters)
    return 0 if count < 25 else count
