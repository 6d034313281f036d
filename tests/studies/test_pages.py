"""The participant's pages over HTTP: what each step shows and takes, and what it must not give away."""

import json
import re
import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from studies import links, selectors
from studies.flow import Outcome, Step
from studies.models import (
    AttentionPolicy,
    Panel,
    ParticipantIdentity,
    Participation,
    ParticipationKind,
    Rating,
    Stimulus,
    Study,
    StudyStatus,
    Trial,
    TrialKind,
)
from studies.services import life
from studies.services.participations import close_timed_out
from studies.views.access import COOKIE
from tests import factories, walks

pytestmark = pytest.mark.django_db

PID, STUDY, SESSION = "5f1a" * 6, "60aa" * 6, "61bb" * 6
WINDOW = {"viewport_width": "1440", "viewport_height": "900", "device_pixel_ratio": "2"}
PROLIFIC_LINK = {"PROLIFIC_PID": PID, "STUDY_ID": STUDY, "SESSION_ID": SESSION}


def fetch(client: Client, address: str):
    """GET a file; ``response.body`` is what a browser would have read."""
    response = client.get(address)
    response.body = response.getvalue()
    return response


class Visitor:
    """A browser at one study."""

    def __init__(self, study: Study, client: Client | None = None) -> None:
        self.study = study
        self.client = client or Client()

    def address(self, name: str, *parts: object) -> str:
        return reverse(f"studies:{name}", args=[self.study.slug, *parts])

    def land(self, **parameters: str):
        return self.client.get(self.address("landing"), parameters)

    def page(self):
        return self.client.get(self.address("run"))

    def post(self, step: str, **fields: str):
        return self.client.post(self.address("run"), {"step": step, **fields})

    def rate(self, token: object, value: object, **fields: object):
        body = {"token": str(token), "value": value, "touched": True, "first_interaction_ms": 500, **fields}
        body = {"start_position": None, "response_ms": 1200, **body}
        return self.client.post(self.address("rate"), json.dumps(body), content_type="application/json")

    def image(self, kind: str, token: object):
        return fetch(self.client, self.address("image", kind, token))

    @property
    def participation(self) -> Participation:
        response = self.page()
        return Participation.objects.get(pk=response.context["participation"].pk)

    def at(self, step: Step) -> Participation:
        """Land and go to ``step`` by right answers, through the services."""
        assert self.land(**(PROLIFIC_LINK if self.study.panel == Panel.PROLIFIC else {})).status_code == 302
        participation = self.participation
        ways = {
            Step.COLOUR_CHECK: walks.consent,
            Step.INSTRUCTIONS: walks.answer_plates,
            Step.COMPREHENSION: lambda here: walks.finish_instructions(here.pk),
            Step.MAIN: walks.answer_pairs,
            Step.FEEDBACK: walks.rate_all,
            Step.END: lambda here: walks.give_feedback(here.pk, {}),
        }
        for reached, go in ways.items():
            if participation.step == step:
                break
            if reached == Step.COMPREHENSION and step != Step.COMPREHENSION:
                continue  # answer_pairs reads the instructions itself
            participation = go(participation)
        assert participation.step == step
        return participation


@pytest.fixture
def study() -> Study:
    return factories.running_study()


@pytest.fixture
def prolific_study() -> Study:
    return factories.running_study(panel=Panel.PROLIFIC)


@pytest.fixture
def visitor(study: Study) -> Visitor:
    return Visitor(study)


def assert_step(response, step: Step) -> None:
    assert response.status_code == 200
    assert f'data-step="{step.value}"' in response.content.decode()


def assert_to_run(response, study: Study) -> None:
    assert response.status_code == 303
    assert response["Location"] == reverse("studies:run", args=[study.slug])


def assert_notice(response, reason: str, status: int) -> None:
    assert (response.status_code, f'data-notice="{reason}"' in response.content.decode()) == (status, True)


# --- Landing --------------------------------------------------------------------------------------------------


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
        (f"PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION[:12]}", "malformed"),
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


# --- The steps ------------------------------------------------------------------------------------------------


def test_the_whole_way_by_forms(visitor):
    study = visitor.study
    visitor.land()
    assert_step(visitor.page(), Step.CONSENT)
    assert_to_run(visitor.post("consent", decision="accept", **WINDOW), study)
    participation = visitor.participation
    assert (participation.viewport_width, participation.device_pixel_ratio) == (1440, 2.0)

    for number in range(1, study.plate_count + 1):
        assert_step(visitor.page(), Step.COLOUR_CHECK)
        assert f"Plate {number} of {study.plate_count}" in visitor.page().content.decode()
        trial = selectors.current_plate(visitor.participation)
        assert visitor.image("plate", trial.token)["Content-Type"] == "image/png"
        assert_to_run(visitor.post("colour_check", token=trial.token, answer=walks.right_plate_answer(trial)), study)

    response = visitor.page()
    assert_step(response, Step.INSTRUCTIONS)
    assert [example["caption"].split(":")[0] for example in response.context["examples"]] == ["Modified"] * 3
    for address in re.findall(r'src="(/s/[^"]+/images/example/[^"]+)"', response.content.decode()):
        assert fetch(visitor.client, address).status_code == 200
    assert_to_run(visitor.post("instructions"), study)

    for _ in range(study.comprehension_pair_count):
        assert_step(visitor.page(), Step.COMPREHENSION)
        pair = selectors.current_pair(visitor.participation)
        assert visitor.image("pair-left", pair.token).status_code == 200
        assert_to_run(visitor.post("comprehension", token=pair.token, answer=pair.modified_side), study)

    response = visitor.page()
    assert_step(response, Step.MAIN)
    data = json.loads(re.search(r'id="trial-data"[^>]*>(.+?)</script>', response.content.decode()).group(1))
    for position in range(1, study.trial_count + 1):
        assert (data["trial"]["position"], data["trial"]["total"]) == (position, study.trial_count)
        assert (data["trial"]["image"] is None) == (data["trial"]["text"] is not None)
        for address in [data["trial"]["image"], *data["preload"]]:
            assert address is None or fetch(visitor.client, address).status_code == 200
        data = visitor.rate(data["trial"]["token"], walks.right_value(Trial.objects.get(token=data["trial"]["token"])))
        assert data.status_code == 200
        data = data.json()
    assert data == {"trial": None, "preload": []}

    assert_step(visitor.page(), Step.FEEDBACK)
    answers = {"certainty": "3", "visibility": "", "used_system": "1", "comment": "Fine\r\n<b>thanks</b>"}
    assert_to_run(visitor.post("feedback", **answers), study)
    participation = visitor.participation
    assert dict(participation.feedback.values_list("item", "answer")) == {
        "certainty": "3",
        "used_system": "1",
        "comment": "Fine\n<b>thanks</b>",
    }
    response = visitor.page()
    assert_step(response, Step.END)
    assert participation.outcome == Outcome.COMPLETED
    assert participation.completion_code.code in response.content.decode()
    assert visitor.page().content.count(b"data-outcome") == 1, "the same page on every return"


def test_pages_say_that_they_need_script(visitor):
    visitor.land()
    without_script = re.search(r"<noscript>(.+?)</noscript>", visitor.page().content.decode(), re.DOTALL).group(1)
    assert "This study needs JavaScript" in without_script


def test_pages_are_never_kept_by_the_browser(visitor):
    visitor.land()
    assert "no-store" in visitor.page()["Cache-Control"]
    assert "no-store" in visitor.land()["Cache-Control"]


def test_declining_ends_the_study_and_nothing_is_asked(visitor):
    visitor.land()
    assert_to_run(visitor.post("consent", decision="decline"), visitor.study)
    response = visitor.page()
    assert_step(response, Step.END)
    assert 'data-outcome="declined"' in response.content.decode()
    assert not Trial.objects.exists()


@pytest.mark.parametrize("fields", [{}, {"decision": "maybe"}])
def test_a_consent_without_a_decision_is_asked_again(visitor, fields):
    visitor.land()
    response = visitor.post("consent", **fields)
    assert response.status_code == 400
    assert "Please choose" in response.content.decode()
    assert visitor.participation.step == Step.CONSENT


def test_an_answer_missing_or_out_of_the_question_is_asked_again(visitor):
    visitor.at(Step.COLOUR_CHECK)
    trial = selectors.current_plate(visitor.participation)
    for fields in ({"token": trial.token}, {"token": "x", "answer": "1"}, {"token": trial.token, "answer": "12"}):
        response = visitor.post("colour_check", **fields)
        assert response.status_code == 400
        assert 'role="alert"' in response.content.decode()
    future = visitor.participation.plate_trials.order_by("position")[1]
    assert visitor.post("colour_check", token=future.token, answer="1").status_code == 400
    assert selectors.current_plate(visitor.participation) == trial


def test_answers_sent_twice_or_from_an_old_page_change_nothing(visitor):
    visitor.at(Step.COLOUR_CHECK)
    trial = selectors.current_plate(visitor.participation)
    right = walks.right_plate_answer(trial)
    for answer in (right, right, "5", "none"):
        assert_to_run(visitor.post("colour_check", token=trial.token, answer=answer), visitor.study)
    trial.refresh_from_db()
    assert trial.answer == right
    assert_to_run(visitor.post("consent", decision="decline"), visitor.study)
    assert_to_run(visitor.post("feedback", comment="early"), visitor.study)
    assert visitor.participation.step == Step.COLOUR_CHECK


def test_a_comment_that_is_too_long_is_not_cut_but_asked_again(visitor):
    visitor.at(Step.FEEDBACK)
    response = visitor.post("feedback", comment="x" * 2001)
    assert response.status_code == 400
    assert "x" * 2001 in response.content.decode()
    assert_to_run(visitor.post("feedback"), visitor.study)


def test_a_second_try_goes_back_to_the_instructions_and_says_so():
    visitor = Visitor(factories.running_study(comprehension_tries=2))
    walks.answer_pairs(visitor.at(Step.INSTRUCTIONS), wrong=3)
    response = visitor.page()
    assert_step(response, Step.INSTRUCTIONS)
    assert "try again" in response.content.decode()


# --- Rating ---------------------------------------------------------------------------------------------------


def test_a_rating_is_stored_with_its_times_and_answered_with_the_next_item(visitor):
    participation = visitor.at(Step.MAIN)
    trial = selectors.current_trial(participation)
    times = {"first_interaction_ms": 300, "last_interaction_ms": 900}
    answer = visitor.rate(trial.token, 0, start_position=-100, focus_losses=1, **times)
    assert answer.status_code == 200
    assert answer.json()["trial"]["position"] == 2
    assert "no-store" in answer["Cache-Control"]
    rating = Rating.objects.get()
    assert (rating.trial, rating.value, rating.start_position) == (trial, 0, -100)
    assert (rating.response_ms, rating.first_interaction_ms, rating.last_interaction_ms) == (1200, 300, 900)
    assert rating.focus_losses == 1


def test_a_rating_sent_twice_is_one_rating_and_the_first_stands(visitor):
    trial = selectors.current_trial(visitor.at(Step.MAIN))
    answers = [visitor.rate(trial.token, value).json() for value in (0, 0, 55)]
    assert [answer["trial"]["position"] for answer in answers] == [2, 2, 2]
    assert Rating.objects.get().value == 0


@pytest.mark.parametrize("value", ["37", True, None, 1.5, 101, -101, 10**9])
def test_a_value_that_is_no_answer_is_refused_and_nothing_is_lost(visitor, value):
    trial = selectors.current_trial(visitor.at(Step.MAIN))
    response = visitor.rate(trial.token, value)
    assert response.status_code == 400
    assert response.json()["error"]
    assert not Rating.objects.exists()
    assert visitor.rate(trial.token, -100).status_code == 200


@pytest.mark.parametrize(
    "fields", [{"touched": False}, {"touched": None}, {"touched": 1}, {"first_interaction_ms": None}]
)
def test_an_untouched_scale_is_no_answer(visitor, fields):
    trial = selectors.current_trial(visitor.at(Step.MAIN))
    response = visitor.rate(trial.token, 0, **fields)
    assert (response.status_code, "touched" in response.json()["error"]) == (400, True)
    assert not Rating.objects.exists()
    assert visitor.page().context["data"]["trial"]["token"] == str(trial.token)


def test_ratings_out_of_turn_are_refused(visitor):
    trials = list(visitor.at(Step.MAIN).trials.order_by("position"))
    assert visitor.rate(trials[1].token, 1).status_code == 400
    assert visitor.rate(uuid.uuid4(), 1).status_code == 400
    assert not Rating.objects.exists()


def test_the_last_rating_sent_again_points_to_the_next_page_and_an_ended_session_is_over(visitor):
    participation = visitor.at(Step.MAIN)
    last = participation.trials.order_by("-position")[0]
    walks.rate_all(participation)
    assert visitor.rate(last.token, 0).json() == {"trial": None, "preload": []}
    visitor.post("feedback")
    assert visitor.rate(last.token, 0).status_code == 409


def test_failing_attention_checks_at_once_ends_on_a_page_without_a_way_back():
    study = factories.running_study(attention_policy=AttentionPolicy.END_AT_ONCE)
    visitor = Visitor(study)
    participation = visitor.at(Step.MAIN)
    while participation.step == Step.MAIN:
        trial = selectors.current_trial(participation)
        is_check = trial.kind != TrialKind.IMAGE
        answer = visitor.rate(trial.token, walks.wrong_value(trial) if is_check else 0)
        participation.refresh_from_db()
    assert answer.json()["trial"] is None
    response = visitor.page()
    assert 'data-outcome="attention_failed"' in response.content.decode()
    assert visitor.image("trial", trial.token).status_code == 404
    assert visitor.rate(trial.token, 0).status_code == 409
    for step in Step:
        assert_to_run(visitor.post(step.value, decision="accept"), study)
    assert_step(visitor.page(), Step.END)


def test_posts_without_the_csrf_token_are_refused(study):
    visitor = Visitor(study, Client(enforce_csrf_checks=True))
    visitor.land()
    assert_notice(visitor.post("consent", decision="accept", **WINDOW), "page_expired", 403)
    assert "/leaderboard/" not in visitor.post("consent", decision="accept", **WINDOW).content.decode()
    assert visitor.rate(uuid.uuid4(), 0).status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', visitor.page().content.decode()).group(1)
    assert visitor.post("consent", decision="accept", csrfmiddlewaretoken=token, **WINDOW).status_code == 303


@pytest.mark.parametrize(
    ("preset", "value", "text"),
    [
        ("paper", 75, "Please move the slider to +75 and continue."),
        ("paper", -100, "Please move the slider to −100, the left end, and continue."),
        ("field", 2, "Please choose +2, the right end, and continue."),
    ],
)
def test_an_instructed_item_says_what_to_answer(preset, value, text):
    visitor = Visitor(factories.running_study(preset))
    participation = visitor.at(Step.MAIN)
    instructed = participation.trials.get(kind=TrialKind.INSTRUCTED)
    Trial.objects.filter(pk=instructed.pk).update(instructed_value=value)
    while (trial := selectors.current_trial(participation)).kind != TrialKind.INSTRUCTED:
        participation = walks.rate(participation)
    data = visitor.page().context["data"]["trial"]
    assert data["text"].endswith(text)
    assert data["image"] is None
    assert visitor.image("trial", trial.token).status_code == 404


# --- What must not be given away ------------------------------------------------------------------------------


def test_images_are_sent_only_while_their_participant_may_see_them(study):
    visitor = Visitor(study)
    stranger = Visitor(study)
    stranger.land()
    participation = visitor.at(Step.COLOUR_CHECK)
    plates = list(participation.plate_trials.order_by("position"))
    trials = list(participation.trials.order_by("position"))
    example = Stimulus.objects.filter(study=study, purpose="example").first()

    def visible(*wanted: tuple[str, object]) -> list[bool]:
        return [visitor.image(kind, token).status_code == 200 for kind, token in wanted]

    assert visible(("plate", plates[0].token), ("plate", plates[1].token)) == [True, False]
    assert visible(("example", example.token), ("trial", trials[0].token), ("plate", trials[0].token)) == [False] * 3
    assert visible(("plate", uuid.uuid4()), ("nonsense", plates[0].token)) == [False] * 2
    assert stranger.image("plate", plates[0].token).status_code == 404
    assert Visitor(study).image("plate", plates[0].token).status_code == 404

    participation = walks.answer_plates(participation)
    assert visible(("example", example.token), ("plate", plates[0].token)) == [True, False]
    participation = walks.finish_instructions(participation.pk)
    pairs = list(participation.pair_trials.order_by("position"))
    assert visible(("pair-right", pairs[0].token), ("pair-left", pairs[1].token)) == [True, False]
    while participation.step == Step.COMPREHENSION:
        pair = selectors.current_pair(participation)
        participation = walks.answer_pair(participation.pk, pair.token, pair.modified_side)
    shown = [trial for trial in trials if trial.kind != TrialKind.INSTRUCTED]
    assert visible(*(("trial", trial.token) for trial in shown[:5])) == [True] * 3 + [False] * 2


def stored(stimulus: Stimulus) -> bytes:
    with stimulus.file.open("rb") as file:
        return file.read()


def test_the_left_address_shows_the_left_image(visitor):
    visitor.at(Step.COMPREHENSION)
    pair = selectors.current_pair(visitor.participation)
    modified, clean = stored(pair.modified_stimulus), stored(pair.clean_stimulus)
    sides = {"left": (modified, clean), "right": (clean, modified)}[pair.modified_side]
    assert tuple(visitor.image(f"pair-{side}", pair.token).body for side in ("left", "right")) == sides


def test_all_images_are_sent_with_the_same_headers(visitor):
    participation = visitor.at(Step.COMPREHENSION)
    pair = selectors.current_pair(participation)
    responses = [visitor.image(f"pair-{side}", pair.token) for side in ("left", "right")]
    while participation.step == Step.COMPREHENSION:
        pair = selectors.current_pair(participation)
        participation = walks.answer_pair(participation.pk, pair.token, pair.modified_side)
    kinds = set()
    while participation.step == Step.MAIN:
        trial = selectors.current_trial(participation)
        if trial.kind != TrialKind.INSTRUCTED:
            responses.append(visitor.image("trial", trial.token))
            kinds.add((trial.kind, trial.image.kind if trial.image else ""))
        participation = walks.rate(participation)
    assert kinds == {("image", "clean"), ("image", "modified"), ("corrupted", "")}
    varying = {"Content-Length", "ETag"}
    headers = {tuple(sorted((k, v) for k, v in response.items() if k not in varying)) for response in responses}
    assert len(headers) == 1, headers
    (same,) = headers
    assert dict(same)["Content-Type"] == "image/png"
    assert dict(same)["Cache-Control"] == "private, max-age=3600"
    assert dict(same)["X-Content-Type-Options"] == "nosniff"
    assert dict(same)["Content-Disposition"] == 'inline; filename="image.png"'
    lengths = [{name for name in varying if name in response} for response in responses]
    assert lengths == [varying] * len(responses)


def test_no_page_before_the_end_holds_a_code_an_answer_or_a_kind(prolific_study):
    codes = list(prolific_study.completion_codes.values_list("code", flat=True))
    assert len(codes) >= 4
    for step in [step for step in Step if step != Step.END]:
        Participation.objects.all().delete()
        visitor = Visitor(prolific_study)
        visitor.at(step)
        text = visitor.page().content.decode()
        assert_step(visitor.page(), step)
        for secret in [*codes, "modified_side", "corrupted", "instructed_value", "submissions/complete"]:
            assert secret not in text, f"{secret} on the page of {step}"
        if step == Step.MAIN:
            data = visitor.page().context["data"]
            assert set(data["trial"]) == {"token", "position", "total", "image", "text"}
        if step == Step.COMPREHENSION:
            pair = selectors.current_pair(visitor.participation)
            left, right = re.findall(r'<label class="choice choice-image">(.*?)</label>', text, re.DOTALL)
            swapped = left.replace("Left", "Right").replace("left", "right").replace('data-key="1"', 'data-key="2"')
            assert swapped == right, "but for its name, one side is like the other"
            for secret in (pair.modified_stimulus.token, pair.clean_stimulus.token, pair.modified_stimulus.file.name):
                assert str(secret) not in text


def test_plate_pages_differ_in_nothing_but_token_and_number(visitor):
    participation = visitor.at(Step.COLOUR_CHECK)
    texts = set()
    for trial in participation.plate_trials.order_by("position"):
        text = visitor.page().content.decode()
        text = re.sub(r'csrfmiddlewaretoken" value="\w+"', "", text).replace(str(trial.token), "TOKEN")
        text = text.replace(f"Plate {trial.position} of", "").replace(f'<progress value="{trial.position - 1}"', "")
        texts.add(text)
        visitor.post("colour_check", token=trial.token, answer=walks.right_plate_answer(trial))
    assert len(texts) == 1


# --- The end --------------------------------------------------------------------------------------------------


def ended(study: Study, outcome: Outcome) -> Visitor:
    visitor = Visitor(study)
    if outcome == Outcome.DECLINED:
        visitor.at(Step.CONSENT)
        visitor.post("consent", decision="decline")
    elif outcome == Outcome.COLOUR_CHECK_FAILED:
        walks.answer_plates(visitor.at(Step.COLOUR_CHECK), wrong=1)
    elif outcome == Outcome.COMPREHENSION_FAILED:
        walks.answer_pairs(visitor.at(Step.INSTRUCTIONS), wrong=3)
    elif outcome == Outcome.ATTENTION_FAILED:
        walks.give_feedback(walks.rate_all(visitor.at(Step.MAIN), failed_checks=2).pk, {})
    elif outcome == Outcome.TIMED_OUT:
        participation = visitor.at(Step.MAIN)
        walks.rate(participation)
        close_timed_out(participation.pk, timezone.now() + timedelta(hours=1))
    elif outcome == Outcome.REPLACED:
        visitor.at(Step.MAIN)
        Visitor(study).land(**(PROLIFIC_LINK | {"SESSION_ID": "77cc" * 6}))
    else:
        visitor.at(Step.END)
    return visitor


@pytest.mark.parametrize("outcome", list(Outcome))
def test_each_outcome_has_its_page_with_its_own_code_and_link(prolific_study, outcome):
    visitor = ended(prolific_study, outcome)
    texts = [visitor.page().content.decode() for _ in range(2)]
    codes = dict(prolific_study.completion_codes.values_list("outcome", "code"))
    for text in texts:
        assert f'data-outcome="{outcome.value}"' in text
        for other, code in codes.items():
            assert (code in text) == (other == outcome)
        if outcome in codes:
            address = f"https://app.prolific.com/submissions/complete?cc={codes[outcome]}"
            assert f'href="{address}"' in text
            assert f'content="10;url={address}"' in text
            assert 'data-seconds="10"' in text
        asks_to_return = "Please return your submission on Prolific" in text
        assert asks_to_return == (outcome in {Outcome.DECLINED, Outcome.TIMED_OUT})


def test_a_code_cannot_change_the_address_it_is_put_into(prolific_study):
    code = prolific_study.completion_codes.get(outcome=Outcome.COMPLETED)
    code.code = "A&b=c#d /"
    with pytest.raises(ValidationError, match="letters, digits"):
        code.full_clean()
    code.save()
    text = ended(prolific_study, Outcome.COMPLETED).page().content.decode()
    assert 'href="https://app.prolific.com/submissions/complete?cc=A%26b%3Dc%23d%20%2F"' in text


def test_a_direct_study_shows_the_code_and_leads_nowhere(study):
    text = ended(study, Outcome.COMPLETED).page().content.decode()
    assert study.completion_codes.get(outcome=Outcome.COMPLETED).code in text
    assert "Prolific" not in text
    assert "http-equiv" not in text


# --- Previews -------------------------------------------------------------------------------------------------


@pytest.fixture
def staff_client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("staff", password="x"))
    return client


def test_a_preview_shows_every_step_and_leaves_nothing(study, staff_client):
    visitor = Visitor(study, staff_client)
    assert_to_run(staff_client.post(visitor.address("preview")), study)
    for step in [*Step, Step.MAIN]:
        assert_to_run(staff_client.post(visitor.address("preview-jump"), {"step": step.value}), study)
        response = visitor.page()
        assert_step(response, step)
        assert "nothing is kept" in response.content.decode()
    trial = selectors.current_trial(visitor.participation)
    assert visitor.image("trial", trial.token).status_code == 200 or trial.kind == TrialKind.INSTRUCTED
    assert visitor.rate(trial.token, 0).status_code == 200
    response = staff_client.post(visitor.address("preview-leave"), follow=True)
    assert "You have left the preview" in response.content.decode()
    assert reverse("admin:studies_study_change", args=[study.pk]) in response.content.decode()
    assert not Participation.objects.exists()
    assert COOKIE not in {name for name, cookie in staff_client.cookies.items() if cookie.value}
    assert staff_client.post(visitor.address("preview-leave")).status_code == 303


def test_a_preview_does_not_hand_over_to_the_panel(prolific_study, staff_client):
    visitor = Visitor(prolific_study, staff_client)
    staff_client.post(visitor.address("preview"))
    staff_client.post(visitor.address("preview-jump"), {"step": "end"})
    text = visitor.page().content.decode()
    assert "Back to Prolific" in text
    assert "data-seconds" not in text
    assert "http-equiv" not in text


def test_starting_a_preview_again_drops_the_one_before(study, staff_client):
    visitor = Visitor(study, staff_client)
    for _ in range(2):
        staff_client.post(visitor.address("preview"))
    assert Participation.objects.count() == 1


def test_a_preview_does_not_become_a_participation_of_the_link(study, staff_client):
    visitor = Visitor(study, staff_client)
    staff_client.post(visitor.address("preview"))
    visitor.land()
    assert visitor.participation.kind == ParticipationKind.REAL


def test_only_staff_who_may_change_studies_preview(study):
    address = Visitor(study).address("preview")
    assert Client().post(address).status_code == 302
    client = Client()
    user = User.objects.create_user("assistant", password="x", is_staff=True)
    client.force_login(user)
    assert client.post(address).status_code == 403
    assert not Participation.objects.exists()
    user.user_permissions.add(Permission.objects.get(codename="change_study"))
    assert client.post(address).status_code == 303


def test_a_study_without_materials_cannot_be_previewed_and_says_why(staff_client):
    draft = factories.study()
    response = staff_client.post(reverse("studies:preview", args=[draft.slug]))
    assert response.status_code == 409
    assert "have not been built yet" in response.content.decode()


def test_participants_cannot_jump(visitor):
    visitor.land()
    response = visitor.client.post(visitor.address("preview-jump"), {"step": "end"})
    assert_notice(response, "no_session", 403)
    assert visitor.participation.step == Step.CONSENT
    visitor.client.post(visitor.address("preview-leave"))
    assert Participation.objects.count() == 1


def test_texts_of_researchers_are_shown_as_text():
    study = factories.ready_study()
    life.update_text(study, "consent", "Be <script>alert(1)</script> careful.\n\nSecond paragraph & more.")
    visitor = Visitor(life.launch(study))
    visitor.land()
    text = visitor.page().content.decode()
    assert "&lt;script&gt;" in text
    assert "<p>Second paragraph &amp; more.</p>" in text
