"""Arriving at a study over HTTP: links, our cookie, and who is let in."""

import re
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from scooter_site.common.rates import Rate
from studies import links, selectors
from studies.flow import Step
from studies.landing import LandingProblem, LandingRefused
from studies.models import Panel, ParticipantIdentity, Participation, ParticipationKind, Study, StudyStatus
from studies.services import life
from studies.services.participations import close_timed_out
from studies.views import notices
from studies.views.access import COOKIE, NEWCOMER_COOKIE
from tests import factories, walks
from tests.studies.visitor import (
    PID,
    PROLIFIC_LINK,
    SESSION,
    STUDY,
    WINDOW,
    Visitor,
    assert_notice,
    assert_step,
    assert_to_run,
)

pytestmark = pytest.mark.django_db


def test_landing_exchanges_the_ids_for_a_cookie_of_our_own(prolific_study, settings):
    settings.HTTPS = True
    visitor = Visitor(prolific_study)
    response = visitor.land(**PROLIFIC_LINK)
    assert response.status_code == 302
    assert response["Location"] == f"/s/{prolific_study.slug}/run/"
    cookie = response.cookies[COOKIE]
    assert cookie["httponly"]
    assert cookie["secure"]
    assert cookie["samesite"] == "Lax"
    assert cookie["path"] == f"/s/{prolific_study.slug}/"
    assert cookie["max-age"] == 30 * 24 * 3600
    page = visitor.page().content.decode()
    for personal in (PID, STUDY, SESSION):
        assert personal not in cookie.value
        assert personal not in page
    identity = ParticipantIdentity.objects.get()
    assert (identity.participant_id, identity.session_id) == (PID, SESSION)
    assert identity.participation.kind == ParticipationKind.REAL


def test_opening_the_link_five_times_and_without_cookies_is_one_participation(prolific_study):
    here = Visitor(prolific_study)
    participation = here.at(Step.MAIN)
    walks.rate(participation, 0)
    order = list(participation.trials.order_by("position").values_list("token", flat=True))
    for visitor in (here, here, here, Visitor(prolific_study), Visitor(prolific_study)):
        visitor.land(**PROLIFIC_LINK)
        data = visitor.page().context["data"]
        assert data["trial"]["token"] == str(order[1])
    assert Participation.objects.count() == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "missing"),
        (f"PROLIFIC_PID=&STUDY_ID={STUDY}&SESSION_ID={SESSION}", "empty"),
        (f"PROLIFIC_PID={PID}&PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION}", "repeated"),
        (f"prolific_pid={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION}", "wrong_case"),
        ("PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}", "placeholder"),
        (f"PROLIFIC_PID=%7B%7B%25PROLIFIC_PID%25%7D%7D&STUDY_ID={STUDY}&SESSION_ID={SESSION}", "placeholder"),
        (f"PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION[:12]}", "preview"),
        (f"PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION[:-1]}", "malformed"),
        (f"PROLIFIC_PID={PID}&STUDY_ID={'0' * 24}&SESSION_ID={SESSION}", "other_study"),
    ],
)
def test_a_broken_prolific_link_opens_no_session(query, reason, caplog):
    study = factories.running_study(panel=Panel.PROLIFIC, prolific_study_id=STUDY)
    client = Client()
    response = client.get(f"/s/{study.slug}/?{query}")
    assert_notice(response, reason, 400)
    assert not client.cookies
    assert not Participation.objects.exists()
    text = response.content.decode()
    assert "Prolific" in text
    assert "study@example.org" in text
    assert PID not in text + caplog.text
    assert "was refused" in caplog.text


def test_programs_that_only_ask_for_the_head_do_not_arrive(visitor):
    response = visitor.client.head(visitor.address("landing"))
    assert (response.status_code, response.content, dict(response.cookies)) == (200, b"", {})
    assert not Participation.objects.exists()


def test_an_unknown_study_has_a_page_that_says_so():
    for address in ("/s/nothing/", "/s/nothing/run/"):
        assert_notice(Client().get(address), "unknown_study", 404)


def test_a_direct_link_resumes_in_the_same_browser_and_is_new_in_another(study):
    here = Visitor(study)
    here.land()
    first = here.participation
    here.land()
    assert here.participation == first
    there = Visitor(study)
    there.land()
    assert there.participation != first


@pytest.mark.parametrize("is_test", [False, True])
def test_a_browser_that_keeps_no_cookies_is_told_so_and_leaves_no_row(study, is_test):
    parameters = {"test": links.test_token(study)} if is_test else {}
    for _ in range(3):
        without_cookies = Client()
        response = without_cookies.get(f"/s/{study.slug}/", parameters)
        assert (response.status_code, response["Location"]) == (302, f"/s/{study.slug}/run/")
        without_cookies.cookies.clear()
        for _ in range(2):
            blocked = without_cookies.get(f"/s/{study.slug}/run/")
            assert_notice(blocked, "no_session", 403)
            assert "It may block cookies" in blocked.content.decode()
    assert not Participation.objects.exists()
    allowed = Visitor(study)
    allowed.land(**parameters)
    assert_step(allowed.page(), Step.CONSENT)
    assert_step(allowed.page(), Step.CONSENT)
    participation = Participation.objects.get()
    assert participation.kind == (ParticipationKind.TEST if is_test else ParticipationKind.REAL)


def test_somebody_new_is_one_participation_however_often_the_first_page_loads(study):
    client = Client()
    client.get(f"/s/{study.slug}/")
    client.get(f"/s/{study.slug}/")  # a link that is clicked twice
    newcomer = client.cookies[NEWCOMER_COOKIE].value
    assert not Participation.objects.exists()
    for _ in range(2):
        client.cookies[NEWCOMER_COOKIE] = newcomer  # the page is asked for again before its answer is there
        assert_step(client.get(f"/s/{study.slug}/run/"), Step.CONSENT)
    assert Participation.objects.count() == 1
    assert not client.cookies[NEWCOMER_COOKIE].value
    forged = Client(headers={"cookie": f"{NEWCOMER_COOKIE}=real:{'0' * 32}:x:y"})
    assert_notice(forged.get(f"/s/{study.slug}/run/"), "no_session", 403)


@pytest.mark.parametrize(("stop", "reason"), [(life.pause, "paused"), (None, "full")])
def test_somebody_new_is_let_in_at_the_first_page_only_if_the_study_still_takes_people(stop, reason):
    study = factories.running_study(dataset_count=1, participants_per_dataset=1)
    client = Client()
    client.get(f"/s/{study.slug}/")
    if stop:
        stop(study)
    else:
        walks.consent(walks.enter(study))
    assert_notice(client.get(f"/s/{study.slug}/run/"), reason, 403)
    assert COOKIE not in client.cookies


@pytest.mark.parametrize("parameters", [{}, {"id": "anna"}])
@pytest.mark.parametrize("declines", [True, False])
def test_reading_only_the_consent_text_locks_nobody_out_of_a_direct_study(study, parameters, declines):
    visitor = Visitor(study)
    visitor.land(**parameters)
    if declines:
        visitor.post("consent", decision="decline")
    else:
        close_timed_out(visitor.participation.pk, timezone.now() + timedelta(hours=1))
    assert "open your link again: you can begin anew" in visitor.page().content.decode()
    visitor.land(**parameters)
    assert_step(visitor.page(), Step.CONSENT)
    assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)
    assert_step(visitor.page(), Step.COLOUR_CHECK)


def test_a_direct_link_with_an_id_is_the_same_person_everywhere(study):
    here, there, other = Visitor(study), Visitor(study), Visitor(study)
    here.land(id="anna")
    there.land(id="anna")
    other.land(id="ben")
    assert here.participation == there.participation != other.participation
    page = here.page().content.decode()
    assert "anna" not in page
    assert "?session=" not in page, "whoever has a link of their own needs no other"


def test_the_personal_link_continues_on_another_device(study):
    here = Visitor(study)
    participation = here.at(Step.MAIN)
    walks.rate(participation, 0)
    link = re.search(r"/s/[\w-]+/\?session=[\w-]+", here.page().content.decode()).group()
    there = Client()
    assert there.get(link).status_code == 302
    assert there.get(f"/s/{study.slug}/run/").context["participation"] == participation
    assert_notice(Client().get(f"/s/{study.slug}/?session={'0' * 32}"), "unknown_session", 404)
    assert Participation.objects.count() == 1


def test_a_test_link_makes_test_sessions_and_a_false_one_makes_none(prolific_study):
    token = links.test_token(prolific_study)
    visitor = Visitor(prolific_study)
    visitor.land(test=token, SESSION_ID="bot-7")
    assert visitor.participation.kind == ParticipationKind.TEST
    other = Visitor(prolific_study)
    other.land(test=token)
    again = other.participation
    other.land(test=token)
    assert other.participation == again != visitor.participation
    assert Participation.objects.count() == 2
    for wrong in ("", "x", token[:-1], links.test_token(factories.study())):
        assert Visitor(prolific_study).land(test=wrong).status_code == 400
    assert Participation.objects.count() == 2


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (StudyStatus.DRAFT, "not_started"),
        (StudyStatus.READY, "not_started"),
        (StudyStatus.PAUSED, "paused"),
        (StudyStatus.CLOSED, "closed"),
        (StudyStatus.ARCHIVED, "closed"),
    ],
)
def test_a_study_that_is_not_open_says_why_and_lets_those_inside_go_on(study, status, reason):
    inside = Visitor(study)
    inside.land()
    Study.objects.filter(pk=study.pk).update(status=status)
    assert_notice(Visitor(study).land(), reason, 403)
    assert inside.land().status_code == 302
    assert Participation.objects.count() == 1
    Study.objects.filter(pk=study.pk).update(panel=Panel.PROLIFIC)
    response = Visitor(study).land(**PROLIFIC_LINK)
    assert_notice(response, reason, 403)
    assert "return your submission" in response.content.decode()


def test_a_study_that_was_paused_says_so_at_the_consent(study):
    visitor = Visitor(study)
    visitor.land()
    life.pause(study)
    assert_notice(visitor.post("consent", decision="accept", **WINDOW), "paused", 403)
    assert visitor.participation.step == Step.CONSENT


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ({}, "not_measured"),
        ({"viewport_width": "", "viewport_height": ""}, "not_measured"),
        ({"viewport_width": "390", "viewport_height": "844"}, "window_too_small"),
    ],
)
def test_a_window_too_small_is_told_so_by_the_server_and_may_try_again(study, window, reason):
    visitor = Visitor(study)
    visitor.land()
    response = visitor.post("consent", decision="accept", **window)
    assert_notice(response, reason, 400)
    assert f'href="{visitor.address("run")}"' in response.content.decode()
    assert selectors.places_left(study, ParticipationKind.REAL) == study.place_count
    assert_step(visitor.page(), Step.CONSENT)
    assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)
    assert visitor.participation.step == Step.COLOUR_CHECK


def test_who_came_from_a_panel_can_give_back_a_study_that_no_window_fits(prolific_study):
    visitor = Visitor(prolific_study)
    visitor.land(**PROLIFIC_LINK)
    assert "please return your submission on Prolific" in visitor.page().content.decode(), "the page's own notice"
    response = visitor.post("consent", decision="accept", viewport_width="390", viewport_height="844")
    assert_notice(response, "window_too_small", 400)
    assert "Please return your submission on Prolific" in response.content.decode()


def test_no_page_in_place_of_the_study_leaves_its_reader_without_a_next_step():
    for panel in Panel:
        study = Study(slug="rate", panel=panel)
        shown = [notices.full(study), notices.no_session(study), notices.unknown_session()]
        shown += [
            notices.not_open(study, reason) for reason in ("not_started", "paused", "closed", "already_took_part")
        ]
        shown += [notices.device_not_suitable(study, reason) for reason in ("not_measured", "window_too_small")]
        shown += [notices.link_refused(study, LandingRefused(problem, "x")) for problem in LandingProblem]
        assert [notice.reason for notice in shown if not any(notice.steps)] == []


@pytest.mark.parametrize(
    ("fields", "way"),
    [
        ({"panel": Panel.PROLIFIC}, "Open the study from Prolific again; you continue where you stopped."),
        ({"participant_parameter": "worker"}, "Open your personal link"),
        ({"session_parameter": "visit"}, "Open the study again where you were sent here from; you continue where"),
    ],
)
def test_who_lost_the_cookie_is_told_which_link_goes_on(fields, way):
    study = Study(slug="rate", **fields)
    for notice in (notices.no_session(study), notices.not_open(study, "paused")):
        said = " ".join((notice.text, *notice.steps))
        assert way in said
        assert ("The link that everybody gets begins the study anew." in said) == (way == "Open your personal link")


def test_the_personal_link_of_the_first_page_goes_on_without_the_cookie_and_the_plain_one_does_not(study):
    here = Visitor(study)
    here.land()
    personal = re.search(r"\?session=(\w+)", here.page().content.decode()).group(1)
    here.at(Step.COLOUR_CHECK)
    there = Visitor(study)
    there.land(session=personal)
    assert there.participation == here.participation
    anew = Visitor(study)
    anew.at(Step.COLOUR_CHECK)
    assert anew.participation != here.participation


def test_a_full_study_says_so_at_the_door_and_at_the_consent():
    study = factories.running_study(dataset_count=1, participants_per_dataset=1)
    late = Visitor(study)
    late.land()
    Visitor(study).at(Step.COLOUR_CHECK)
    assert_notice(Visitor(study).land(), "full", 403)
    assert_notice(late.post("consent", decision="accept", **WINDOW), "full", 403)


def test_who_has_taken_part_already_is_told(prolific_study):
    Visitor(prolific_study).at(Step.END)
    response = Visitor(prolific_study).land(**(PROLIFIC_LINK | {"SESSION_ID": "77cc" * 6}))
    assert_notice(response, "already_took_part", 403)


def test_without_our_cookie_the_page_asks_to_open_the_link_again(visitor):
    visitor.land()
    for client in (Client(), Client(headers={"cookie": f"{COOKIE}=forged"})):
        assert_notice(client.get(visitor.address("run")), "no_session", 403)
        assert client.post(visitor.address("rate"), "{}", content_type="application/json").status_code == 403


def test_the_cookie_of_one_study_opens_no_other(visitor):
    visitor.land()
    other = factories.running_study()
    client = Client()
    client.cookies[COOKIE] = visitor.client.cookies[COOKIE].value
    assert_notice(client.get(f"/s/{other.slug}/run/"), "no_session", 403)


def test_a_cookie_that_was_good_before_ends_with_its_age(visitor, monkeypatch):
    visitor.land()
    assert visitor.page().status_code == 200
    for days, status in ((29, 200), (31, 403)):
        later = timezone.now() + timedelta(days=days)
        with monkeypatch.context() as then:
            then.setattr(timezone, "now", lambda later=later: later)
            then.setattr("django.core.signing.time", SimpleNamespace(time=later.timestamp))
            assert visitor.client.get(visitor.address("run")).status_code == status


@pytest.fixture
def two_arrivals_an_hour(settings):
    cache.clear()
    settings.THROTTLE_RATES = {**settings.THROTTLE_RATES, "arrivals": Rate(2, 3600)}
    yield
    cache.clear()


@pytest.mark.usefixtures("two_arrivals_an_hour")
class TestOneAddress:
    """Many people may be behind it, or one program that wants all places."""

    def test_gets_so_many_places_an_hour_and_whoever_comes_after_is_asked_to_wait(self):
        study = factories.running_study(participants_per_dataset=5)
        visitors = [Visitor(study) for _ in range(3)]
        for visitor in visitors:
            assert visitor.land().status_code == 302
        for visitor in visitors[:2]:
            assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)
        refused = visitors[2].post("consent", decision="accept", **WINDOW)
        assert_notice(refused, "too_many_arrivals", 429)
        assert re.search(r"try again in \d+ minutes", refused.content.decode())
        assert selectors.places_taken(study, ParticipationKind.REAL) == 2
        # Nothing else is refused: pages, other addresses, another study.
        assert_step(visitors[2].page(), Step.CONSENT)
        assert_step(visitors[0].page(), Step.COLOUR_CHECK)
        elsewhere = Visitor(study, Client(REMOTE_ADDR="198.51.100.7"))
        elsewhere.land()
        assert_to_run(elsewhere.post("consent", decision="accept", **WINDOW), study)
        other = Visitor(factories.running_study())
        other.land()
        assert_to_run(other.post("consent", decision="accept", **WINDOW), other.study)

    def test_may_send_as_many_participants_of_prolific_as_it_likes(self, prolific_study):
        for number in range(3):
            visitor = Visitor(prolific_study)
            visitor.land(PROLIFIC_PID=f"{number:024x}", STUDY_ID=STUDY, SESSION_ID=f"{number:024x}")
            assert_to_run(visitor.post("consent", decision="accept", **WINDOW), prolific_study)

    def test_may_send_as_many_test_participants_and_refusals_as_it_likes(self, study):
        for number in range(4):
            visitor = Visitor(study)
            visitor.land(test=links.test_token(study), SESSION_ID=str(number))
            assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)
        for _ in range(4):
            visitor = Visitor(study)
            visitor.land()
            assert_to_run(visitor.post("consent", decision="decline"), study)
        for _ in range(2):
            visitor = Visitor(study)
            visitor.land()
            assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)

    def test_uses_up_nothing_by_consents_that_get_no_place(self):
        study = factories.running_study(dataset_count=1, participants_per_dataset=2)
        visitors = [Visitor(study) for _ in range(3)]
        for visitor in visitors:
            visitor.land()
        small = {"viewport_width": "390", "viewport_height": "844"}
        for _ in range(3):
            assert_notice(visitors[0].post("consent", decision="accept", **small), "window_too_small", 400)
        for visitor in visitors[:2]:
            assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)
        Study.objects.filter(pk=study.pk).update(extra_places=1)
        assert_notice(visitors[2].post("consent", decision="accept", **WINDOW), "too_many_arrivals", 429)
        cache.clear()
        Study.objects.filter(pk=study.pk).update(extra_places=0)
        for _ in range(3):
            assert_notice(visitors[2].post("consent", decision="accept", **WINDOW), "full", 403)
