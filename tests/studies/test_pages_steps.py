"""What the page of each step shows and takes, by forms."""

import json
import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import Participation, Trial
from studies.services import life
from tests import factories, walks
from tests.studies.participations import expire_lease
from tests.studies.visitor import WINDOW, Visitor, assert_notice, assert_step, assert_to_run, fetch

pytestmark = pytest.mark.django_db


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
        for address in [item["image"] for item in (data["trial"], *data["upcoming"])]:
            assert address is None or fetch(visitor.client, address).status_code == 200
        data = visitor.rate(data["trial"]["token"], walks.right_value(Trial.objects.get(token=data["trial"]["token"])))
        assert data.status_code == 200
        data = data.json()
    assert data == {"trial": None, "upcoming": []}

    assert_step(visitor.page(), Step.FEEDBACK)
    answers = {"certainty": "3", "visibility": "", "used_system": "1", "comment": "Fine\r\n<b>thanks</b>"}
    assert_to_run(visitor.post("feedback", **{f"item-{name}": answer for name, answer in answers.items()}), study)
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
    assert_to_run(visitor.post("feedback", **{"item-comment": "early"}), visitor.study)
    assert visitor.participation.step == Step.COLOUR_CHECK


@pytest.mark.parametrize(
    ("step", "answer_all"),
    [
        (Step.COLOUR_CHECK, walks.answer_plates),
        (Step.COMPREHENSION, walks.answer_pairs),
        (Step.MAIN, walks.rate_all),
    ],
)
def test_a_page_asked_for_while_the_last_item_is_answered_leads_on(visitor, monkeypatch, step, answer_all):
    participation = visitor.at(step)
    participation_of = selectors.participation_of

    def before_another_tab_answers(*session):
        read = participation_of(*session)
        answer_all(participation)
        return read

    with monkeypatch.context() as patched:
        patched.setattr(selectors, "participation_of", before_another_tab_answers)
        assert_to_run(visitor.page(), visitor.study)
    assert visitor.participation.step != step


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [("comment", "x" * 2001, "at most 2000 characters"), ("certainty", "9", "choose from the answers shown")],
)
def test_feedback_that_does_not_fit_is_asked_again_where_it_is_wrong(visitor, name, answer, message):
    visitor.at(Step.FEEDBACK)
    response = visitor.post("feedback", **{"item-visibility": "2", f"item-{name}": answer})
    assert response.status_code == 400
    page = response.content.decode()
    assert re.findall(r'<p class="problem" id="(.+?)">(.+?)</p>', page) == [
        (f"id_item-{name}_error", response.context["form"].errors[name][0])
    ]
    assert message in response.context["form"].errors[name][0]
    assert f'aria-describedby="id_item-{name}_error"' in page
    assert name != "comment" or answer in page, "what was written is not cut"
    assert_to_run(visitor.post("feedback"), visitor.study)


def test_a_second_try_goes_back_to_the_instructions_and_says_so():
    visitor = Visitor(factories.running_study(comprehension_tries=2))
    walks.answer_pairs(visitor.at(Step.INSTRUCTIONS), wrong=3)
    response = visitor.page()
    assert_step(response, Step.INSTRUCTIONS)
    assert "try again" in response.content.decode()


def test_posts_without_the_csrf_token_are_refused(study):
    visitor = Visitor(study, Client(enforce_csrf_checks=True))
    visitor.land()
    assert_notice(visitor.post("consent", decision="accept", **WINDOW), "page_expired", 403)
    assert "/leaderboard/" not in visitor.post("consent", decision="accept", **WINDOW).content.decode()
    assert visitor.rate(uuid.uuid4(), 0).status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', visitor.page().content.decode()).group(1)
    assert visitor.post("consent", decision="accept", csrfmiddlewaretoken=token, **WINDOW).status_code == 303


def test_texts_of_researchers_are_shown_as_text():
    study = factories.ready_study()
    life.update_text(study, "consent", "Be <script>alert(1)</script> careful.\n\nSecond paragraph & more.")
    visitor = Visitor(life.launch(study))
    visitor.land()
    text = visitor.page().content.decode()
    assert "&lt;script&gt;" in text
    assert "<p>Second paragraph &amp; more.</p>" in text


def test_every_page_of_somebody_who_holds_a_place_keeps_it(study):
    for step in Step:
        Participation.objects.all().delete()
        visitor = Visitor(study)
        participation = visitor.at(step)
        holds_place = step not in {Step.CONSENT, Step.END}
        address = f'data-heartbeat-url="{visitor.address("heartbeat")}"'
        assert (address in visitor.page().content.decode()) == holds_place
        if holds_place:
            expire_lease(participation)
            assert visitor.client.post(visitor.address("heartbeat")).status_code == 204
            participation.refresh_from_db()
            assert participation.lease_expires_at > timezone.now()
