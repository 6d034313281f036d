"""The stand-in behaves as Prolific's documentation says: asked here over bare HTTP, not through our client."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
import time

import httpx
import pytest

from scooter_site.demo.fake_prolific import FakeProlific
from scooter_site.demo.fake_prolific.faults import WebhookFaults
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID
from tests.studies.recruitment.plans import CODES, payload

CERTIFICATES = httpx.create_ssl_context()  # read once: it takes longer than a test


@pytest.fixture
def api(fake):
    with httpx.Client(
        base_url=f"{fake.url}/api/v1", headers={"Authorization": f"Token {TOKEN}"}, verify=CERTIFICATES
    ) as client:
        yield client


def created(api, **fields) -> dict:
    answer = api.post("/studies/", json=payload(**fields))
    assert answer.status_code == 201, answer.text
    return answer.json()


def published(api, **fields) -> str:
    study = created(api, **fields)
    assert move(api, study["id"], "PUBLISH").status_code == 200
    return study["id"]


def move(api, study_id, action, **fields):
    return api.post(f"/studies/{study_id}/transition/", json={"action": action, **fields})


def status_of(api, study_id) -> str:
    return api.get(f"/studies/{study_id}/").json()["status"]


# --- Drafts ---------------------------------------------------------------------------------------------------


def test_a_token_is_needed(fake):
    assert httpx.get(f"{fake.url}/api/v1/users/me/").status_code == 401


def test_a_new_study_is_an_unpublished_draft(api):
    study = created(api)
    assert study["status"] == "UNPUBLISHED"
    assert study["is_ready_to_publish"] is True
    assert len(study["id"]) == 24


@pytest.mark.parametrize("name", ["name", "description", "external_study_url", "reward", "completion_codes"])
def test_required_fields(api, name):
    body = payload()
    del body[name]
    answer = api.post("/studies/", json=body)
    assert answer.status_code == 400
    assert set(answer.json()["error"]) >= {"status", "error_code", "title", "detail"}
    assert name in answer.json()["error"]["detail"]


def codes(*actions):
    return [
        {"code": str(number), "code_type": "OTHER", "actions": list(its)} for number, its in enumerate(actions, start=1)
    ]


FIXED = {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 20, "slots": 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"reward": 129},  # 13 minutes at 6.00 an hour are 1.30
        {"reward": 1.65},
        {"prolific_id_option": "by_pigeon"},
        {"device_compatibility": ["toaster"]},
        {"maximum_allowed_time": 34},  # 2 + 2·13 + 2·√13 = 35.2
        {"filters": [{"filter_id": "fluent-languages", "selected_values": [19]}]},
        {"completion_codes": codes([FIXED], [FIXED])},
        {"completion_codes": codes([{**FIXED, "fixed_screen_out_reward": 165}])},
        {"completion_codes": codes([{"action": "REQUEST_RETURN"}])},
        {"completion_codes": codes([{"action": "AUTOMATICALLY_APPROVE"}, {"action": "MANUALLY_REVIEW"}])},
        {"completion_codes": [*codes([]), *codes([])]},
    ],
)
def test_drafts_that_are_refused(api, changes):
    assert api.post("/studies/", json={**payload(), **changes}).status_code == 400


def test_a_workspace_may_lack_fixed_screen_outs(api, fake):
    fake.settings.refuses_fixed_screen_outs = True
    assert api.post("/studies/", json=payload()).status_code == 400
    assert api.post("/studies/", json={**payload(), "completion_codes": codes([])}).status_code == 201


# --- Life of a study ------------------------------------------------------------------------------------------


def test_transitions(api):
    study_id = created(api)["id"]
    refused = {"UNPUBLISHED": ["PAUSE", "STOP", "START"], "ACTIVE": ["PUBLISH", "START"], "PAUSED": ["PAUSE"]}
    for action, status in [("PUBLISH", "ACTIVE"), ("PAUSE", "PAUSED"), ("START", "ACTIVE"), ("STOP", "COMPLETED")]:
        for wrong in refused[status_of(api, study_id)]:
            assert move(api, study_id, wrong).status_code == 400
        assert move(api, study_id, action).status_code == 200
        assert status_of(api, study_id) == status


def test_scheduling_needs_a_time(api):
    study_id = created(api)["id"]
    assert move(api, study_id, "SCHEDULE_PUBLISH").status_code == 400
    assert move(api, study_id, "SCHEDULE_PUBLISH", publish_at="2026-12-01T10:00:00Z").status_code == 200
    assert status_of(api, study_id) == "SCHEDULED"
    assert move(api, study_id, "CANCEL_PUBLISH").status_code == 200


def test_after_publishing_only_some_fields_change(api):
    study_id = published(api, places=3)
    address = f"/studies/{study_id}/"
    assert api.patch(address, json={"reward": 200}).status_code == 400
    assert api.patch(address, json={"total_available_places": 2}).status_code == 400
    assert api.patch(address, json={"total_available_places": 4, "internal_name": "x"}).status_code == 200
    assert api.delete(address).status_code == 400
    changed = payload()["completion_codes"]
    changed[0]["code"] = "OTHER"
    assert api.patch(address, json={"completion_codes": changed}).status_code == 400


def test_a_completed_study_opens_again_by_more_places(api):
    study_id = published(api, places=1)
    assert move(api, study_id, "STOP").status_code == 200
    assert move(api, study_id, "START").status_code == 400
    assert api.patch(f"/studies/{study_id}/", json={"total_available_places": 2}).json()["status"] == "ACTIVE"


def test_people_inside_a_paused_study_can_finish(api, fake):
    study_id = published(api)
    one = fake.arrive(study_id)
    move(api, study_id, "PAUSE")
    assert fake.submit(one["id"], "AAAAAAAA")["status"] == "AWAITING REVIEW"
    assert httpx.post(f"{fake.url}/fake/arrive", json={"study_id": study_id}).status_code == 409


def test_used_up_slots_pause_the_study_until_there_are_more(api, fake):
    study_id = published(api, screen_out_slots=2)
    for number in range(2):
        assert status_of(api, study_id) == "ACTIVE", number
        one = fake.arrive(study_id)
        assert fake.submit(one["id"], "DDDDDDDD")["status"] == "SCREENED OUT"
    assert status_of(api, study_id) == "PAUSED"
    assert [(one["kind"], one["amount_minor"]) for one in fake.world.payments] == [("screen_out", 13)] * 2
    assert api.get(f"/studies/{study_id}/").json()["places_taken"] == 0
    assert move(api, study_id, "START").status_code == 400
    more = payload(screen_out_slots=3)["completion_codes"]
    assert api.patch(f"/studies/{study_id}/", json={"completion_codes": more}).status_code == 200
    assert move(api, study_id, "START").status_code == 200


# --- Submissions ----------------------------------------------------------------------------------------------


def test_the_address_a_participant_opens_is_filled_in(api, fake):
    study_id = published(api)
    one = fake.arrive(study_id)
    assert one["address"] == (
        f"https://scooter.example.org/s/abc/?PROLIFIC_PID={one['participant']}&STUDY_ID={study_id}&SESSION_ID={one['id']}"
    )


def test_lists_and_single_submissions_name_fields_differently(api, fake):
    study_id = published(api)
    one = fake.arrive(study_id)
    fake.submit(one["id"], None)
    [row] = api.get("/submissions/", params={"study": study_id}).json()["results"]
    single = api.get(f"/submissions/{one['id']}/").json()
    assert (row["participant_id"], row["study_code"]) == (one["participant"], "NOCODE")
    assert (single["participant"], single["entered_code"]) == (one["participant"], "NOCODE")
    assert "bonus_payments" in single
    assert "bonus_payments" not in row
    assert api.get("/submissions/").status_code == 400
    assert api.get(f"/studies/{study_id}/submissions/counts/").json() == {"AWAITING REVIEW": 1, "TOTAL": 1}


def test_both_styles_of_pages(api, fake):
    study_id = published(api, places=25, most_at_once=25)
    ids = [fake.arrive(study_id)["id"] for _ in range(25)]
    first = api.get("/submissions/", params={"study": study_id}).json()
    assert [row["id"] for row in first["results"]] == ids[:20]
    assert first["meta"]["count"] == 25
    assert "page=2" in first["_links"]["next"]["href"]
    last = api.get("/submissions/", params={"study": study_id, "page": 2}).json()
    assert last["_links"]["next"]["href"] is None
    rows = api.get(f"/studies/{study_id}/submissions/", params={"limit": 10, "offset": 20}).json()["results"]
    assert [row["id"] for row in rows] == ids[20:]


def test_only_those_who_wait_or_were_approved_take_a_place_for_good(api, fake):
    study_id = published(api, places=1)
    returned = fake.arrive(study_id)
    with pytest.raises(Exception, match="No place"):
        fake.arrive(study_id)
    fake.give_back(returned["id"])
    late = fake.arrive(study_id)
    fake.time_out(late["id"])
    in_time = fake.arrive(study_id)
    fake.submit(in_time["id"], "AAAAAAAA")
    assert fake.submit(late["id"], "AAAAAAAA")["status"] == "TIMED-OUT"  # replaced meanwhile
    assert status_of(api, study_id) == "AWAITING REVIEW"


def test_rejections(api, fake):
    study_id = published(api)
    one = fake.arrive(study_id)
    fake.submit(one["id"], "BBBBBBBB")
    address = f"/submissions/{one['id']}/transition/"
    rejection = {"action": "REJECT", "rejection_category": "FAILED_CHECK"}
    assert api.post(address, json={**rejection, "message": "x" * 99}).status_code == 400
    assert api.post(address, json={"action": "REJECT", "message": "x" * 100}).status_code == 400
    assert api.post(address, json={**rejection, "message": "x" * 100}).json()["status"] == "REJECTED"
    assert api.post(address, json={"action": "APPROVE"}).status_code == 400
    assert api.post(address, json={"action": "UNREJECT"}).json()["status"] == "AWAITING REVIEW"
    for _ in range(2):  # idempotent
        assert api.post(address, json={"action": "APPROVE"}).json()["status"] == "APPROVED"
    assert len(fake.world.payments) == 1


def test_completing_needs_a_researchers_code(api, fake):
    study_id = published(api)
    one = fake.arrive(study_id)
    body = {"action": "COMPLETE", "completion_code": "AAAAAAAA"}
    assert api.post(f"/submissions/{one['id']}/transition/", json=body).status_code == 400


# --- Bonuses --------------------------------------------------------------------------------------------------


def test_bonuses_are_set_up_in_pounds_and_every_call_pays(api, fake):
    study_id = published(api)
    one = fake.arrive(study_id)
    body = {"study_id": study_id, "csv_bonuses": f"{one['id']},30"}
    batch = api.post("/submissions/bonus-payments/", json=body).json()
    assert (batch["amount"], batch["total_amount"]) == (3000, 3000 + 990 + 198)
    assert fake.world.payments == []
    for _ in range(2):
        assert api.post(f"/bulk-bonus-payments/{batch['id']}/pay/").status_code == 202
    assert api.get(f"/submissions/{one['id']}/").json()["bonus_payments"] == [3000, 3000]


@pytest.mark.parametrize("lines", ["nobody,1.00", "ID;1.00", "ID,1.005", "", "\n".join(["ID,0.01"] * 201)])
def test_bonus_files_that_are_refused(api, fake, lines):
    study_id = published(api)
    one = fake.arrive(study_id)
    body = {"study_id": study_id, "csv_bonuses": lines.replace("ID", one["id"])}
    answer = api.post("/submissions/bonus-payments/", json=body)
    assert answer.status_code == 400
    assert ("nobody" in answer.text) is ("nobody" in lines)


def test_bonuses_may_show_late(api, fake):
    fake.settings.bonus_lag_reads = 1
    study_id = published(api)
    one = fake.arrive(study_id)
    body = {"study_id": study_id, "csv_bonuses": f"{one['participant']},0.13"}
    batch = api.post("/submissions/bonus-payments/", json=body).json()
    api.post(f"/bulk-bonus-payments/{batch['id']}/pay/")
    readings = [api.get(f"/submissions/{one['id']}/").json()["bonus_payments"] for _ in range(2)]
    assert readings == [[], [13]]


# --- Webhooks -------------------------------------------------------------------------------------------------


class Listener:
    """Takes the place of our webhook address."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.received: list[tuple[dict[str, str], bytes]] = []

    def __call__(self, address: str, headers: dict[str, str], body: bytes) -> int:
        self.received.append((headers, body))
        return self.answers.pop(0) if self.answers else 200

    @property
    def statuses(self) -> list[str]:
        return [json.loads(body)["status"] for _, body in self.received]


def listening(fake, event_type="submission.status.change") -> str:
    with httpx.Client(
        base_url=f"{fake.url}/api/v1", headers={"Authorization": f"Token {TOKEN}"}, verify=CERTIFICATES
    ) as api:
        secret = api.post("/hooks/secrets/", json={"workspace_id": WORKSPACE_ID}).json()["value"]
        body = {"workspace_id": WORKSPACE_ID, "event_type": event_type, "target_url": "https://scooter.example.org/h"}
        answer = api.post("/hooks/subscriptions/", json=body)
        address = f"/hooks/subscriptions/{answer.json()['id']}/"
        assert api.post(address, json={"secret": "wrong"}).status_code == 400
        assert api.post(address, json={"secret": answer.headers["X-Hook-Secret"]}).json()["is_enabled"] is True
    return secret


def people(fake, count=1):
    with httpx.Client(
        base_url=f"{fake.url}/api/v1", headers={"Authorization": f"Token {TOKEN}"}, verify=CERTIFICATES
    ) as api:
        study_id = published(api, places=count, most_at_once=count)
    for _ in range(count):
        fake.submit(fake.arrive(study_id)["id"], CODES["completed"])
    fake.hooks.flush()


def test_events_are_signed_and_sent_again_under_the_same_id_until_they_are_taken():
    listener = Listener(500, 0)
    with FakeProlific(send=listener) as fake:
        fake.settings.webhook_retry_seconds = 0.01
        secret = listening(fake)
        people(fake)
        assert fake.hooks.events[0]["status"] == "SUCCEEDED"
    headers, body = listener.received[0]
    signed = headers["X-Prolific-Request-Timestamp"].encode() + body
    expected = base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
    assert headers["X-Prolific-Request-Signature"] == expected
    assert len({received["X-Event-ID"] for received, _ in listener.received[:3]}) == 1
    assert listener.statuses == ["ACTIVE", "ACTIVE", "ACTIVE", "AWAITING REVIEW"]
    assert set(json.loads(body)) == {"event_type", "resource_id", "participant_id", "status"}


def test_events_can_be_doubled_reordered_and_lost():
    listener = Listener()
    with FakeProlific(send=listener) as fake:
        listening(fake)
        fake.faults.webhooks = WebhookFaults(duplicate=1.0, reorder=1.0)
        people(fake)
        assert listener.statuses == ["AWAITING REVIEW", "AWAITING REVIEW", "ACTIVE"]
        fake.faults.webhooks = WebhookFaults(drop=1.0)
        people(fake)
        assert len(listener.received) == 3


def test_events_can_be_late():
    listener = Listener()
    with FakeProlific(send=listener) as fake:
        listening(fake)
        fake.faults.webhooks = WebhookFaults(delay_seconds=1.0)
        began = time.monotonic()
        people(fake)
        assert time.monotonic() - began > 0.3  # 1.0 times what chance draws, twice
        assert listener.statuses == ["ACTIVE", "AWAITING REVIEW"]


def test_addresses_must_be_https_and_public(fake, api):
    api.post("/hooks/secrets/", json={"workspace_id": WORKSPACE_ID})
    body = {"workspace_id": WORKSPACE_ID, "event_type": "study.status.change", "target_url": "http://example.org/h"}
    assert api.post("/hooks/subscriptions/", json=body).status_code == 400


# --- Its own addresses ----------------------------------------------------------------------------------------


def test_a_person_can_take_part_in_a_browser(fake, api):
    study_id = published(api)
    with httpx.Client(base_url=fake.url, verify=CERTIFICATES) as browser:
        assert "Take part in this study" in browser.get("/").text
        answer = browser.post(f"/take-part/{study_id}")
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith("https://scooter.example.org/s/abc/?PROLIFIC_PID=")
        assert "AWAITING REVIEW" in browser.get("/submissions/complete", params={"cc": "AAAAAAAA"}).text


def test_it_runs_as_a_command():
    command = [sys.executable, "-m", "scooter_site.demo.fake_prolific", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().split()[4].rstrip(":")
        assert httpx.get(url).status_code == 200
        assert httpx.post(f"{url}/fake/faults", json={"rules": [{"fault": "429", "times": 1}]}).status_code == 200
        assert httpx.get(f"{url}/api/v1/users/me/").status_code == 429
        assert httpx.get(f"{url}/fake/payments").json() == []
        process.terminate()
        assert process.wait(10) == 0
