"""Words of the service, read in whatever spelling it uses; its errors in whatever shape."""

import pytest

from studies.recruitment.errors import error_text
from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus, study_status, submission_status


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("AWAITING REVIEW", SubmissionStatus.AWAITING_REVIEW),
        ("AWAITING_REVIEW", SubmissionStatus.AWAITING_REVIEW),
        ("TIMED-OUT", SubmissionStatus.TIMED_OUT),
        ("TIMED OUT", SubmissionStatus.TIMED_OUT),
        ("SCREENED OUT", SubmissionStatus.SCREENED_OUT),
        ("PARTIALLY APPROVED", SubmissionStatus.PARTIALLY_APPROVED),
        ("approved", SubmissionStatus.APPROVED),
        ("UNKNOWN", SubmissionStatus.UNKNOWN),
        ("ON A COFFEE BREAK", SubmissionStatus.UNKNOWN),
        ("", SubmissionStatus.UNKNOWN),
    ],
)
def test_states_of_submissions(raw, status):
    assert submission_status(raw) is status


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("UNPUBLISHED", PanelStudyStatus.UNPUBLISHED),
        ("AWAITING REVIEW", PanelStudyStatus.AWAITING_REVIEW),
        ("ACTIVE", PanelStudyStatus.ACTIVE),
        ("DREAMING", PanelStudyStatus.UNKNOWN),
    ],
)
def test_states_of_studies(raw, status):
    assert study_status(raw) is status


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"status": 400, "title": "No", "detail": "Too low."}}, "No. Too low"),
        ({"status": 400, "title": "No", "detail": ["a", "b"]}, "No. a; b"),
        (
            {"error": {"title": "No", "detail": {"reward": ["Too low."], "name": "Missing"}}},
            "No. reward: Too low.; name: Missing",
        ),
        ({"message": "Not now", "detail": "Later"}, "Not now. Later"),
        ({"error": "plain"}, "plain"),
        ({"unheard": "of"}, '{"raw": 1}'),
        (None, '{"raw": 1}'),
    ],
)
def test_texts_of_errors(body, text):
    assert error_text(body, '{"raw": 1}') == text
