"""Panels other than Prolific: their links under their own names, and the way back to them with the code."""

import pytest
from django.core.exceptions import ValidationError
from django.http import QueryDict

from studies.flow import Outcome, Step
from studies.landing import Arrival, LandingProblem, LandingRefused, read_direct
from studies.models import Panel, Participation
from studies.selectors import readiness
from studies.services import life
from studies.way_back import return_url, return_url_problem
from tests import walks
from tests.studies.visitor import Visitor

BACK = "https://panel.example.org/done?c={code}&who={participant}&visit={session}"


def read(query: str) -> Arrival:
    return read_direct(dict(QueryDict(query).lists()), participant="worker", session="visit")


def test_both_ids_are_read_under_the_panels_names():
    assert read("worker=anna-7&visit=v1&source=x") == Arrival("anna-7", "v1")
    assert read_direct({"worker": ["anna-7"], "id": ["other"]}, participant="worker") == Arrival("anna-7", "id:anna-7")
    assert read_direct({}, participant="worker") == Arrival()


@pytest.mark.parametrize(
    ("query", "problem", "name"),
    [
        ("worker=a", LandingProblem.MISSING, "visit"),
        ("visit=v", LandingProblem.MISSING, "worker"),
        ("", LandingProblem.MISSING, "worker"),
        ("id=a&visit=v", LandingProblem.MISSING, "worker"),
        ("worker=a&Visit=v", LandingProblem.WRONG_CASE, "visit"),
        ("worker=a&visit=v&visit=w", LandingProblem.REPEATED, "visit"),
        ("worker=a&visit=", LandingProblem.EMPTY, "visit"),
        ("worker={{worker}}&visit=v", LandingProblem.PLACEHOLDER, "worker"),
        ("worker=a%20b&visit=v", LandingProblem.MALFORMED, "worker"),
    ],
)
def test_a_link_without_both_opens_no_session(query, problem, name):
    with pytest.raises(LandingRefused) as refused:
        read(query)
    assert (refused.value.problem, refused.value.parameter) == (problem, name)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("", ""),
        (BACK, ""),
        ("https://panel.example.org/done", "{code}"),
        ("https://panel.example.org/done?c={code}&p={pid}", "{pid}"),
        ("https://panel.example.org/done?c={code", "not closed"),
        ("https://panel.example.org/done?c={{code}}", "not closed"),
        ("https://{code}.example.org/", "https://"),
        ("http://panel.example.org/?c={code}", "https://"),
        ("panel.example.org/?c={code}", "https://"),
        ("javascript:alert('{code}')", "https://"),
        ("https://panel.example.org/ ?c={code}", "https://"),
        ("https://[panel/?c={code}", "https://"),
    ],
)
def test_an_address_that_would_lose_people_is_refused(template, said):
    problem = return_url_problem(template)
    assert bool(problem) == bool(said)
    assert said in problem


def test_what_is_filled_in_cannot_change_the_address():
    values = {"code": "A&B#/", "participant": "{session}", "session": "ü"}
    assert return_url(BACK, values) == ("https://panel.example.org/done?c=A%26B%23%2F&who=%7Bsession%7D&visit=%C3%BC")


@pytest.fixture
def panel(study):
    """A running study whose panel says ``worker`` and ``visit``."""
    for name, value in {"participant_parameter": "worker", "session_parameter": "visit", "return_url": BACK}.items():
        setattr(study, name, value)
    study.full_clean()
    study.save()
    return study


@pytest.mark.django_db
def test_people_come_back_to_their_visit_and_leave_with_the_code(panel):
    anna = Visitor(panel)
    assert anna.land(worker="anna", visit="v1").url == anna.address("run")
    walks.answer_plates(walks.consent(anna.participation), wrong=1)
    code = panel.completion_codes.get(outcome=Outcome.COLOUR_CHECK_FAILED).code
    address = f"https://panel.example.org/done?c={code}&amp;who=anna&amp;visit=v1"
    text = anna.page().content.decode()
    assert f'href="{address}"' in text
    assert f'content="10;url={address}"' in text
    assert "Prolific" not in text
    # From another browser, by the same link: the same session.
    elsewhere = Visitor(panel)
    elsewhere.land(worker="anna", visit="v1")
    assert f'href="{address}"' in elsewhere.page().content.decode()
    # Who came to a result does not come again in another visit.
    assert "already taken part" in Visitor(panel).land(worker="anna", visit="v2").content.decode()


@pytest.mark.django_db
def test_a_visit_that_is_the_same_for_everybody_is_refused_instead_of_shared(panel):
    assert Visitor(panel).land(worker="anna", visit="batch-1").status_code == 302
    refused = Visitor(panel).land(worker="ben", visit="batch-1")
    assert refused.status_code == 400
    assert "visit, other person" in refused.content.decode()
    assert Participation.objects.count() == 1


@pytest.mark.django_db
def test_a_session_of_prolific_is_given_to_nobody_else(study):
    study.panel = Panel.PROLIFIC
    study.save()
    link = {"STUDY_ID": "5" * 24, "SESSION_ID": "5e" * 12}
    first = Visitor(study)
    assert first.land(**link, PROLIFIC_PID="a" * 24).status_code == 302
    refused = Visitor(study).land(**link, PROLIFIC_PID="b" * 24)
    assert refused.status_code == 400
    assert "SESSION_ID, other person" in refused.content.decode()
    assert Visitor(study).land(**link, PROLIFIC_PID="a" * 24).status_code == 302
    assert Participation.objects.count() == 1


@pytest.mark.django_db
def test_a_panels_visit_is_no_personal_link(panel):
    Visitor(panel).land(worker="anna", visit="v1")
    assert Visitor(panel).land(session="v1").status_code == 404


@pytest.mark.django_db
def test_who_declined_is_handed_back_and_does_not_begin_again(panel):
    visitor = Visitor(panel)
    visitor.land(worker="anna", visit="v1")
    visitor.post("consent", decision="decline")
    code = panel.completion_codes.get(outcome=Outcome.DECLINED).code
    assert f"c={code}&amp;who=anna" in visitor.page().content.decode()
    visitor.land(worker="anna", visit="v1")
    assert visitor.participation.step == Step.END


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("participant_parameter", ""),
        ("participant_parameter", "Session"),
        ("participant_parameter", "two words"),
        ("session_parameter", "test"),
        ("session_parameter", "ID"),
        ("return_url", "https://panel.example.org/"),
    ],
)
def test_what_could_not_work_is_refused_when_it_is_set(study, field, value):
    setattr(study, field, value)
    with pytest.raises(ValidationError):
        study.full_clean()


@pytest.mark.django_db
def test_readiness_says_how_people_come_and_go(panel):
    def line():
        return next(line for line in readiness(panel) if line.label == "Link and return address")

    assert line().ok
    assert line().detail == (
        "“worker” names the participant, and “visit” their session; links without both are refused. "
        f"They go back to {BACK}."
    )
    panel.return_url = "https://panel.example.org/"
    assert not line().ok
    assert "{code}" in line().detail


@pytest.mark.django_db
def test_the_return_address_can_be_mended_while_people_take_part_and_the_names_cannot(panel):
    life.change_settings(panel, return_url="https://panel.example.org/end?c={code}")
    assert panel.return_url == "https://panel.example.org/end?c={code}"
    with pytest.raises(life.StudyStateError, match="participant_parameter"):
        life.change_settings(panel, participant_parameter="pid")
