"""In step with Prolific: returns free places, contradictions reach a person, and no order of events does harm."""

import json
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import reverse
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from scooter_site.demo.fake_prolific.hooks import sign
from scooter_site.demo.fake_prolific.world import WORKSPACE_ID
from studies import tasks
from studies.flow import Outcome, Step
from studies.models import (
    ParticipantIdentity,
    Participation,
    ParticipationKind,
    Submission,
    WebhookEvent,
    Workspace,
)
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import Ambiguous
from studies.recruitment.review import Offer, Reason
from studies.recruitment.statuses import SubmissionStatus
from studies.selectors import places_left
from studies.services import participations, recruitment, recruitment_sync, webhooks
from studies.services.recruitment import RecruitmentError
from tests import walks
from tests.studies.recruitment.deciding import decide

ENTERED = {"kind": ParticipationKind.REAL}


def arrive(fake, panel_study, participant_id="") -> Participation:
    """Somebody takes the study on the panel and opens the link."""
    one = fake.arrive(panel_study.panel_id, participant_id)
    ids = {name: values[0] for name, values in parse_qs(urlsplit(one["address"]).query).items()}
    assert ids["STUDY_ID"] == panel_study.study.prolific_study_id
    return participations.enter_study(
        panel_study.study, **ENTERED, participant_id=ids["PROLIFIC_PID"], session_id=ids["SESSION_ID"]
    )


def to_main(participation) -> None:
    walks.answer_pairs(walks.answer_plates(walks.consent(participation)))
    participation.refresh_from_db()


def finish(participation) -> None:
    """From the main study to the end."""
    participation.refresh_from_db()
    walks.rate_all(participation)
    participations.give_feedback(participation.pk, {})


def to_end(participation) -> None:
    to_main(participation)
    finish(participation)


def fail_colour_check(participation) -> None:
    walks.answer_plates(walks.consent(participation), wrong=1)


def session(participation) -> str:
    return participation.identity.session_id


def submit(fake, participation, code=None) -> None:
    fake.submit(session(participation), code)


def code_of(participation) -> str:
    participation.refresh_from_db()
    return participation.completion_code.code


def poll(panel_study) -> None:
    recruitment_sync.read_panel_study(panel_study.pk)
    panel_study.refresh_from_db()


def submission_of(participation) -> Submission:
    return Submission.objects.get(submission_id=session(participation))


# --- The poll -------------------------------------------------------------------------------------------------


def test_a_complete_run(published, fake):
    participation = arrive(fake, published)
    poll(published)
    assert submission_of(participation).status == SubmissionStatus.ACTIVE
    to_end(participation)
    submit(fake, participation, code_of(participation))
    poll(published)
    submission = submission_of(participation)
    assert submission.participation == participation
    assert submission.status == SubmissionStatus.AWAITING_REVIEW
    assert submission.raw_status == "AWAITING REVIEW"
    assert submission.entered_code == code_of(participation)
    assert submission.review_reason == ""
    assert submission.completed_at is not None


def test_a_poll_that_finds_nothing_new_writes_nothing_about_submissions(published, fake, django_assert_max_num_queries):
    for _ in range(4):
        arrive(fake, published)
    poll(published)
    before = list(Submission.objects.values_list("read_at", flat=True))
    with django_assert_max_num_queries(6):
        recruitment_sync.read_panel_study(published.pk)
    assert list(Submission.objects.values_list("read_at", flat=True)) == before


def test_returned_sessions_give_their_datasets_to_others(published, fake):
    study = published.study
    first = [arrive(fake, published) for _ in range(4)]
    for participation in first:
        to_main(participation)
    assert places_left(study, ParticipationKind.REAL) == 0
    for participation in first[:3]:
        fake.give_back(session(participation))
    poll(published)
    returned = Participation.objects.filter(outcome=Outcome.RETURNED)
    assert {one.pk for one in returned} == {one.pk for one in first[:3]}
    for _ in range(3):
        to_end(arrive(fake, published))
    finish(first[3])
    valid = Participation.objects.filter(is_valid=True)
    per_dataset = [valid.filter(dataset=dataset).count() for dataset in study.datasets.all()]
    assert per_dataset == [2, 2]


def test_who_timed_out_there_frees_the_place_and_may_still_finish(published, fake):
    participation = arrive(fake, published)
    to_main(participation)
    fake.time_out(session(participation))
    assert places_left(published.study, ParticipationKind.REAL) == 3
    poll(published)
    participation.refresh_from_db()
    assert participation.step == Step.MAIN
    assert places_left(published.study, ParticipationKind.REAL) == 4
    finish(participation)
    submit(fake, participation, code_of(participation))
    poll(published)
    assert submission_of(participation).review_reason == ""


def test_who_timed_out_there_but_finished_here_is_put_before_a_person(published, fake):
    participation = arrive(fake, published)
    to_end(participation)
    fake.time_out(session(participation))
    poll(published)
    assert submission_of(participation).review_reason == Reason.TIMED_OUT_AFTER_END


def test_submitting_without_a_code_after_a_screen_out_is_put_before_a_person(published, fake):
    participation = arrive(fake, published)
    fail_colour_check(participation)
    submit(fake, participation, None)
    poll(published)
    submission = submission_of(participation)
    assert (submission.entered_code, submission.review_reason) == ("NOCODE", Reason.NO_CODE)
    decide(submission, Offer.REQUEST_RETURN, "ada")
    assert fake.world.messages[0]["recipient_id"] == participation.identity.participant_id
    poll(published)
    assert submission_of(participation).review_reason == ""
    # They do not return: after a week it is somebody's turn again.
    Submission.objects.update(settled_at=timezone.now() - timedelta(days=8))
    poll(published)
    assert submission_of(participation).review_reason == Reason.NO_CODE


def test_who_submitted_without_ever_arriving(published, fake):
    one = fake.arrive(published.panel_id)
    fake.submit(one["id"], "WHATEVER")
    poll(published)
    submission = Submission.objects.get()
    assert submission.participation is None
    assert submission.review_reason == Reason.NEVER_ARRIVED


def test_who_submitted_before_the_end_and_then_finished(published, fake):
    participation = arrive(fake, published)
    to_main(participation)
    submit(fake, participation, "GUESSED")
    poll(published)
    assert submission_of(participation).review_reason == Reason.UNFINISHED_HERE
    finish(participation)
    poll(published)
    assert submission_of(participation).review_reason == Reason.OTHER_CODE


def test_what_a_person_approved_is_not_asked_about_as_paid(published, fake, prolific):
    participation = arrive(fake, published)
    fail_colour_check(participation)
    submit(fake, participation, None)
    poll(published)
    decide(submission_of(participation), Offer.APPROVE, "ada")
    prolific.approve([session(participation)])
    poll(published)
    assert submission_of(participation).review_reason == ""


def test_what_somebody_else_approved_is(published, fake, prolific):
    participation = arrive(fake, published)
    fail_colour_check(participation)
    submit(fake, participation, None)
    prolific.approve([session(participation)])
    poll(published)
    assert submission_of(participation).review_reason == Reason.PAID_ELSEWHERE


def test_only_what_is_offered_can_be_decided(published, fake):
    participation = arrive(fake, published)
    to_end(participation)
    submit(fake, participation, None)
    poll(published)
    with pytest.raises(RecruitmentError, match="changed meanwhile"):
        decide(submission_of(participation), Offer.BONUS, "ada")


def test_a_state_that_nobody_knows_is_kept_and_put_before_a_person(published, fake):
    participation = arrive(fake, published)
    fake.world.submissions[session(participation)]["status"] = "ON A COFFEE BREAK"
    poll(published)
    submission = submission_of(participation)
    assert (submission.status, submission.raw_status) == (SubmissionStatus.UNKNOWN, "ON A COFFEE BREAK")
    assert submission.review_reason == Reason.UNKNOWN_STATE


def test_an_older_answer_does_not_undo_a_newer_one(published, fake, prolific):
    participation = arrive(fake, published)
    earlier, asked_at = prolific.submission(session(participation)), timezone.now()
    submit(fake, participation, None)
    poll(published)
    recruitment_sync.apply(published, earlier, asked_at)
    assert submission_of(participation).status == SubmissionStatus.AWAITING_REVIEW


def test_a_service_that_is_away_is_noted_and_read_later(published, fake):
    participation = arrive(fake, published)
    fake.fail(Fault.SERVER_ERROR)
    poll(published)
    assert "Something went wrong" in published.sync_error
    fake.faults.rules.clear()
    poll(published)
    assert published.sync_error == ""
    assert submission_of(participation)


def test_the_poll_reads_what_may_have_changed(published, fake):
    arrive(fake, published)
    tasks.read_panel_studies.delay()
    recruitment.stop(published)
    sent = len(fake.requests)
    tasks.read_panel_studies.delay()
    assert len(fake.requests) == sent


# --- Webhooks -------------------------------------------------------------------------------------------------

SECRET = "shared secret"


@pytest.fixture
def address(published) -> str:
    workspace = Workspace.objects.get()
    workspace.webhook_secret = SECRET
    workspace.save()
    return reverse("prolific-webhook", args=[workspace.webhook_key])


def event_about(resource_id, status="ACTIVE", **fields) -> bytes:
    payload = {"event_type": "submission.status.change", "resource_id": resource_id, "status": status, **fields}
    return json.dumps(payload, ensure_ascii=False).encode()


def send(client, address, body, *, event_id="e1", secret=SECRET, at=None, **headers):
    timestamp = str(int(at if at is not None else timezone.now().timestamp()))
    return client.post(
        address,
        data=body,
        content_type="application/json",
        headers={
            "X-Event-ID": event_id,
            "X-Timestamp": timestamp,
            "X-Prolific-Request-Timestamp": timestamp,
            "X-Prolific-Request-Signature": sign(secret, timestamp, body),
            **headers,
        },
    )


def test_an_event_is_kept_answered_and_followed_by_a_reading(
    client, address, published, fake, django_capture_on_commit_callbacks
):
    participation = arrive(fake, published)
    to_main(participation)
    fake.give_back(session(participation))
    with django_capture_on_commit_callbacks(execute=True):
        assert send(client, address, event_about(session(participation), "RETURNED")).status_code == 204
        assert WebhookEvent.objects.get().processed_at is None
    participation.refresh_from_db()
    assert participation.outcome == Outcome.RETURNED
    assert WebhookEvent.objects.get().result == "Read: Returned"


def test_bad_signatures_are_refused_and_leave_nothing(client, address):
    body = event_about("a" * 24)
    assert send(client, address, body, secret="another").status_code == 401
    assert send(client, address, body, at=timezone.now().timestamp() - 301).status_code == 401
    assert send(client, address, body, **{"X-Prolific-Request-Timestamp": "yesterday"}).status_code == 401
    assert send(client, address, body, **{"X-Prolific-Request-Signature": "ä"}).status_code == 401
    assert client.post(address, data=body, content_type="application/json").status_code == 401
    assert not WebhookEvent.objects.exists()


def test_the_signature_is_of_the_bytes_as_they_came(client, address):
    body = '{ "event_type":"study.status.change",\n  "resource_id" : "b",  "metadata":"Ä \\u00e4" }'.encode()
    assert send(client, address, body).status_code == 204
    assert send(client, address, body.replace(b"\n", b"")).status_code == 204  # signed anew, known already
    assert WebhookEvent.objects.count() == 1


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"event_type": "x"}', b"\xff\xfe"])
def test_bodies_that_are_no_events(client, address, body):
    assert send(client, address, body).status_code == 400
    assert not WebhookEvent.objects.exists()


def test_other_methods_and_other_keys(client, address):
    assert client.get(address).status_code == 405
    elsewhere = reverse("prolific-webhook", args=["00000000-0000-0000-0000-000000000000"])
    assert send(client, elsewhere, event_about("a")).status_code == 404
    assert send(client, address, b"x" * 70_000).status_code == 413


def test_a_workspace_without_a_secret_believes_nobody(client, address):
    Workspace.objects.update(encrypted_webhook_secret="")
    assert send(client, address, event_about("a" * 24), secret="").status_code == 401


def test_a_repeated_event_is_read_once(client, address, published, fake, django_capture_on_commit_callbacks):
    participation = arrive(fake, published)
    for _ in range(3):
        with django_capture_on_commit_callbacks(execute=True):
            assert send(client, address, event_about(session(participation))).status_code == 204
    assert WebhookEvent.objects.count() == 1
    assert sum(session(participation) in request for request in fake.requests) == 1


def test_late_and_reordered_events_do_not_move_a_submission_back(
    client, address, published, fake, django_capture_on_commit_callbacks
):
    participation = arrive(fake, published)
    submit(fake, participation, None)
    for event_id, status in [("newer", "AWAITING REVIEW"), ("older", "ACTIVE")]:
        with django_capture_on_commit_callbacks(execute=True):
            send(client, address, event_about(session(participation), status), event_id=event_id)
    assert submission_of(participation).status == SubmissionStatus.AWAITING_REVIEW


def test_an_event_that_met_a_service_away_is_taken_up_later(
    client, address, published, fake, django_capture_on_commit_callbacks
):
    participation = arrive(fake, published)
    fake.fail(Fault.SERVER_ERROR)
    with django_capture_on_commit_callbacks(execute=True):
        assert send(client, address, event_about(session(participation))).status_code == 204
    assert WebhookEvent.objects.get().processed_at is None
    fake.faults.rules.clear()
    tasks.process_waiting_webhook_events.delay()
    assert WebhookEvent.objects.get().processed_at is None  # its own task may still come
    WebhookEvent.objects.update(received_at=timezone.now() - timedelta(minutes=3))
    for _ in range(2):
        tasks.process_waiting_webhook_events.delay()
    assert submission_of(participation).status == SubmissionStatus.ACTIVE


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (event_about("f" * 24), "There is no such thing there."),
        (event_about("f" * 24, event_type="study.status.change"), "Not a study of ours."),
    ],
)
def test_events_about_others(client, address, body, result, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        assert send(client, address, body).status_code == 204
    assert WebhookEvent.objects.get().result == result


def test_a_study_that_was_paused_there(client, address, published, django_capture_on_commit_callbacks, prolific):
    prolific.transition_study(published.panel_id, "PAUSE")
    with django_capture_on_commit_callbacks(execute=True):
        send(client, address, event_about(published.panel_id, event_type="study.status.change"))
    published.refresh_from_db()
    assert published.raw_status == "PAUSED"


def test_events_worked_through_long_ago_are_forgotten(client, address):
    send(client, address, event_about("a" * 24))
    WebhookEvent.objects.update(processed_at=timezone.now() - timedelta(days=31))
    tasks.process_waiting_webhook_events.delay()
    assert not WebhookEvent.objects.exists()


def test_webhooks_are_set_up_once_and_confirmed(workspace, fake, prolific):
    target = "https://scooter.example.org/webhooks/prolific/x/"
    webhooks.set_up_webhooks(workspace, target)
    first_secret = workspace.webhook_secret
    webhooks.set_up_webhooks(workspace, target)
    subscriptions = prolific.webhook_subscriptions(WORKSPACE_ID)
    assert [(one.target_url, one.is_enabled) for one in subscriptions] == [(target, True)] * 2
    assert {one.event_type for one in subscriptions} == {"submission.status.change", "study.status.change"}
    assert workspace.webhook_secret == fake.hooks.secret != first_secret
    assert workspace.webhooks_set_up_at is not None
    # Its answer lost, the new secret is known there only: the webhooks are dead, and do not look set up.
    fake.fail(Fault.LOST_AFTER_ACTING, "POST /api/v1/hooks/secrets/", times=1)
    with pytest.raises(Ambiguous):
        webhooks.set_up_webhooks(workspace, target)
    assert fake.hooks.secret != workspace.webhook_secret
    assert Workspace.objects.get().webhooks_set_up_at is None
    assert isinstance(prolific, ProlificClient)
    assert not ParticipantIdentity.objects.exists()
