"""The client against the stand-in: repeats, lost answers, pages, errors. No payment is ever asked for twice."""

import json
import logging
from decimal import Decimal

import httpx
import pytest

from scooter_site.demo.fake_prolific.faults import Fault
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import (
    Ambiguous,
    NotAllowed,
    NotFound,
    ProlificError,
    Refused,
    TooManyRequests,
    Unavailable,
)
from studies.recruitment.statuses import PanelStudyStatus, SubmissionStatus
from tests.studies.recruitment.plans import payload

PAY = r"/pay/$"


@pytest.fixture
def study_id(prolific) -> str:
    study = prolific.create_study(payload(places=300, most_at_once=300))
    prolific.transition_study(study.id, "PUBLISH")
    return study.id


def submitted(fake, study_id, count=1, code="AAAAAAAA") -> list[str]:
    ids = [fake.arrive(study_id)["id"] for _ in range(count)]
    for one in ids:
        fake.submit(one, code)
    return ids


def batch_of(prolific, fake, study_id) -> str:
    [one] = submitted(fake, study_id)
    return prolific.set_up_bonuses(study_id, [(one, Decimal("0.13"))]).id


# --- Repeats --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.TOO_MANY_REQUESTS, Fault.SERVER_ERROR, Fault.LOST_BEFORE_ACTING])
def test_reading_is_tried_again(fake, prolific, waits, fault):
    fake.fail(fault, times=3)
    assert prolific.account()["currency_code"] == "GBP"
    assert len(waits) == 3
    assert 0.5 <= waits[0] <= 1 <= waits[1] <= 2 <= waits[2] <= 4


def test_reading_is_given_up_after_five_tries(fake, prolific, waits):
    fake.fail(Fault.SERVER_ERROR)
    with pytest.raises(Unavailable) as caught:
        prolific.account()
    assert len(fake.requests) == 5
    assert len(waits) == 4
    assert caught.value.status == 500


def test_a_bulk_approval_is_tried_again_and_pays_once(fake, prolific, study_id):
    ids = submitted(fake, study_id, 3)
    for fault in (Fault.TOO_MANY_REQUESTS, Fault.LOST_AFTER_ACTING, Fault.SERVER_ERROR_AFTER_ACTING):
        fake.fail(fault, "bulk-approve", times=1)
    prolific.approve(ids)
    assert sorted(one["submission_id"] for one in fake.world.payments) == sorted(ids)
    assert {one["amount_minor"] for one in fake.world.payments} == {165}


@pytest.mark.parametrize("fault", [Fault.LOST_AFTER_ACTING, Fault.SERVER_ERROR_AFTER_ACTING, Fault.HANGS_AFTER_ACTING])
def test_a_payment_whose_answer_is_lost_is_ambiguous_and_not_asked_for_again(fake, prolific, study_id, waits, fault):
    fake.faults.hang_seconds = 1
    batch = batch_of(prolific, fake, study_id)
    fake.fail(fault, PAY, times=1)
    with pytest.raises(Ambiguous):
        prolific.pay_bonuses(batch)
    assert [one["amount_minor"] for one in fake.world.payments] == [13]
    assert waits == []
    assert sum(request.endswith("/pay/") for request in fake.requests) == 1


def test_a_payment_that_was_refused_for_haste_is_not_asked_for_again_either(fake, prolific, study_id, waits):
    batch = batch_of(prolific, fake, study_id)
    fake.fail(Fault.TOO_MANY_REQUESTS, PAY, times=1)
    with pytest.raises(TooManyRequests):
        prolific.pay_bonuses(batch)
    assert fake.world.payments == []
    assert waits == []


def test_a_study_that_may_have_been_created_is_not_created_again(fake, prolific):
    fake.fail(Fault.TOO_MANY_REQUESTS, "POST /api/v1/studies/", times=1)
    fake.fail(Fault.LOST_AFTER_ACTING, "POST /api/v1/studies/", times=1)
    with pytest.raises(Ambiguous):
        prolific.create_study(payload())
    assert [study.internal_name for study in prolific.studies()] == ["scooter 1"]


def test_a_service_that_is_not_there_is_unavailable_even_for_payments():
    with ProlificClient(TOKEN, base_url="http://127.0.0.1:9", sleep=lambda seconds: None) as client:
        with pytest.raises(Unavailable):
            client.pay_bonuses("batch")
        with pytest.raises(Unavailable):
            client.account()


# --- Errors and secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["wrapped", "inner", "message"])
def test_the_services_own_words_are_kept(fake, prolific, shape):
    fake.faults.error_shape = shape
    with pytest.raises(Refused) as caught:
        prolific.create_study(payload(reward_major=Decimal("0.10"), screen_out_major={}))
    assert "reward: The reward is below the minimum of 6.00 per hour" in caught.value.text


def test_kinds_of_refusal(fake, prolific):
    with pytest.raises(NotFound):
        prolific.study("0" * 24)
    with ProlificClient("another", base_url=fake.url) as stranger, pytest.raises(NotAllowed):
        stranger.account()


def test_neither_token_nor_ids_get_into_logs_or_errors(fake, prolific, study_id, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # as in the settings
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    [one] = submitted(fake, study_id)
    fake.fail(Fault.SERVER_ERROR, "/submissions/")
    with pytest.raises(Unavailable) as caught:
        prolific.submission(one)
    said = caplog.text + str(caught.value) + repr(caught.value)
    assert "trying again" in said
    assert TOKEN not in said
    assert one not in said
    assert caught.value.__cause__ is None


# --- Pages ----------------------------------------------------------------------------------------------------


def test_lists_are_read_over_all_pages(fake, prolific, study_id):
    ids = submitted(fake, study_id, 250)
    rows = list(prolific.submissions(study_id))
    assert [row.id for row in rows] == ids
    assert {row.status for row in rows} == {SubmissionStatus.AWAITING_REVIEW}
    assert sum("GET /api/v1/submissions/" in request for request in fake.requests) == 3


def rows_of(answers, **options):
    """What is read of a list whose pages answer as given, one after the other; and what was asked."""
    asked = []

    def answer(request):
        asked.append(dict(request.url.params))
        return httpx.Response(200, json=answers[len(asked) - 1])

    client = ProlificClient("token", base_url="http://service")
    connection = client._connection
    connection._http = httpx.Client(base_url="http://service", transport=httpx.MockTransport(answer))
    return list(connection.rows("listing", "/list/", lambda row: row["id"], page_size=2, **options)), asked


def test_pages_by_rows_end_where_the_count_is_reached():
    answers = [
        {"results": [{"id": 1}, {"id": 2}], "meta": {"count": 3}},
        {"results": [{"id": 3}], "meta": {"count": 3}},
    ]
    assert rows_of(answers) == ([1, 2, 3], [{"limit": "2"}, {"limit": "2", "offset": "2"}])


def test_pages_without_links_and_count_end_with_a_page_that_is_not_full():
    answers = [{"results": [{"id": 1}, {"id": 2}]}, {"results": [{"id": 3}]}]
    assert rows_of(answers, by_page=True) == ([1, 2, 3], [{"page_size": "2"}, {"page_size": "2", "page": "2"}])


def test_a_row_that_moved_to_the_next_page_meanwhile_is_read_once():
    answers = [{"results": [{"id": 1}, {"id": 2}]}, {"results": [{"id": 2}, {"id": 3}]}, {"results": []}]
    assert rows_of(answers)[0] == [1, 2, 3]


def test_the_next_pages_address_is_followed_by_its_query_alone():
    first = {"results": [{"id": 1}], "_links": {"next": {"href": "https://elsewhere.example/list/?cursor=x"}}}
    last = {"results": [{"id": 2}], "_links": {"next": {"href": None}}}
    assert rows_of([first, last]) == ([1, 2], [{"limit": "2"}, {"cursor": "x"}])


# --- Amounts --------------------------------------------------------------------------------------------------


def test_bonuses_go_out_in_pounds_and_come_back_in_pence(fake, prolific, study_id):
    one, other = submitted(fake, study_id, 2)
    batch = prolific.set_up_bonuses(study_id, [(one, Decimal("1.50")), (other, Decimal("0.75"))])
    assert (batch.amount_minor, batch.fees_minor, batch.vat_minor, batch.total_minor) == (225, 75, 15, 315)
    assert prolific.submission(one).bonuses_minor == ()
    prolific.pay_bonuses(batch.id)
    assert prolific.submission(one).bonuses_minor == (150,)
    assert next(prolific.submissions(study_id)).bonuses_minor is None


def test_what_the_service_would_refuse_is_not_sent(fake, prolific):
    sent = len(fake.requests)
    with pytest.raises(ValueError, match="1 to 200"):
        prolific.set_up_bonuses("s", [(str(number), Decimal(1)) for number in range(201)])
    with pytest.raises(ValueError, match="twice"):
        prolific.set_up_bonuses("s", [("a", Decimal(1)), ("a", Decimal(1))])
    with pytest.raises(ValueError, match="1 to 1000"):
        prolific.approve([])
    with pytest.raises(ValueError, match="99 characters"):
        prolific.reject("s", category="FAILED_CHECK", message="x" * 99)
    assert len(fake.requests) == sent


def test_cost_counts_and_filters(prolific):
    assert prolific.cost_minor(165, 690) == 158_936  # 113,850 + 37,571 fees + 7,515 VAT
    english = next(one for one in prolific.filters(WORKSPACE_ID) if one.title == "Fluent languages")
    assert english.choices["19"] == "English"
    assert prolific.eligible_count([{"filter_id": english.id, "selected_values": ["19"]}], WORKSPACE_ID) == 60_000


def test_a_study_through_its_life(prolific):
    study = prolific.create_study(payload())
    assert study.status is PanelStudyStatus.UNPUBLISHED
    for action, status in [("PUBLISH", "ACTIVE"), ("PAUSE", "PAUSED"), ("START", "ACTIVE"), ("STOP", "COMPLETED")]:
        prolific.transition_study(study.id, action)
        assert prolific.study(study.id).raw_status == status
    assert prolific.update_study(study.id, {"total_available_places": 6}).status is PanelStudyStatus.ACTIVE


def answering(monkeypatch, status: int, text: str = "") -> None:
    monkeypatch.setattr(httpx.Client, "request", lambda *_, **__: httpx.Response(status, text=text))


@pytest.mark.parametrize("status", [302, 408, 409, 425])
def test_an_answer_that_is_neither_yes_nor_no_is_ambiguous(prolific, monkeypatch, status):
    answering(monkeypatch, status)
    with pytest.raises(Ambiguous):
        prolific.pay_bonuses("batch")
    with pytest.raises(Ambiguous):
        prolific.request_return("submission", ["Please."])
    with pytest.raises(Unavailable if status in {408, 425} else Refused):
        prolific.approve(["submission"])


@pytest.mark.parametrize("status", [400, 404, 405, 422])
def test_a_no_is_a_no(prolific, monkeypatch, status):
    answering(monkeypatch, status)
    with pytest.raises(Refused):
        prolific.pay_bonuses("batch")


def test_a_good_answer_to_a_call_that_only_tells_may_have_any_body(prolific, monkeypatch):
    """Were it an error, who was asked to return would be asked again."""
    answering(monkeypatch, 200, "OK")
    prolific.request_return("submission", ["Please."])
    prolific.approve(["submission"])
    prolific.transition_submission("submission", "APPROVE")
    prolific.transition_study("study", "PAUSE")
    prolific.pay_bonuses("batch")


# --- Answers that cannot be read ------------------------------------------------------------------------------

READ = {
    "account": lambda one: one.account(),
    "workspaces": lambda one: list(one.workspaces()),
    "filters": lambda one: one.filters(WORKSPACE_ID),
    "eligible": lambda one: one.eligible_count([], WORKSPACE_ID),
    "cost": lambda one: one.cost_minor(165, 690),
    "study": lambda one: one.study("s"),
    "studies": lambda one: list(one.studies()),
    "change": lambda one: one.update_study("s", {}),
    "submissions": lambda one: list(one.submissions("s")),
    "submission": lambda one: one.submission("a"),
    "webhooks": lambda one: one.webhook_subscriptions(WORKSPACE_ID),
}
MAKE = {
    "create": lambda one: one.create_study(payload()),
    "set up": lambda one: one.set_up_bonuses("s", [("a", Decimal("0.13"))]),
    "secret": lambda one: one.new_webhook_secret(WORKSPACE_ID),
    "subscribe": lambda one: one.subscribe(WORKSPACE_ID, "study.status.change", "https://here.example/"),
}
UNREADABLE = {
    "<html>We are back at noon.</html>": "The answer is no JSON: <html>We are back at noon.</html>",
    "": "The answer is no JSON: it is empty",
    '[{"ip": "192.0.2.7"}]': "The answer has another form than expected",
    '{"error": {"title": "Maintenance", "detail": "Back at noon."}}': "Maintenance. Back at noon",
    '{"results": [7], "id": [], "ip": "192.0.2.7"}': "The answer has another form than expected",
    "null": "The answer has another form than expected",
}


# Of the account nothing is read: any object will do.
@pytest.mark.parametrize(
    ("call", "text"), [(c, t) for c in [*READ, *MAKE] for t in UNREADABLE if not (c == "account" and t.startswith("{"))]
)
def test_an_answer_that_cannot_be_read_is_a_failure_of_the_service_in_its_words(prolific, monkeypatch, call, text):
    answering(monkeypatch, 200, text)
    with pytest.raises(ProlificError) as caught:
        (READ | MAKE)[call](prolific)
    # Of what must not be asked for twice, nobody knows whether it was done.
    assert type(caught.value) is (Ambiguous if call in MAKE else ProlificError)
    assert UNREADABLE[text] in caught.value.text
    assert caught.value.status == 200
    assert "192.0.2.7" not in caught.value.text


@pytest.mark.parametrize("amount", [13.5, "13.5", "much", None, True, float("inf"), [13]])
def test_no_amount_is_rounded_on_reading(prolific, monkeypatch, amount):
    answering(monkeypatch, 200, json.dumps({"id": "a", "status": "RETURNED", "bonus_payments": [amount]}))
    with pytest.raises(ProlificError, match="reading a submission"):
        prolific.submission("a")


@pytest.mark.parametrize("amount", [13, 13.0, "13"])
def test_whole_amounts_are_read_however_they_are_written(prolific, monkeypatch, amount):
    answering(monkeypatch, 200, json.dumps({"id": "a", "status": "RETURNED", "bonus_payments": [amount]}))
    assert prolific.submission("a").bonuses_minor == (13,)
