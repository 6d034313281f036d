"""Submissions of the stand-in: what participants do with them, what researchers do, and what is paid."""

import re
from decimal import Decimal
from typing import Any

from scooter_site.demo.fake_prolific import studies
from scooter_site.demo.fake_prolific.world import ApiError, Row, World, new_id, not_found, now, with_fees

REJECTION_CATEGORIES = {
    "TOO_QUICKLY",
    "TOO_SLOWLY",
    "FAILED_INSTRUCTIONS",
    "INCOMP_LONGITUDINAL",
    "FAILED_CHECK",
    "LOW_EFFORT",
    "MALINGERING",
    "NO_CODE",
    "BAD_CODE",
    "NO_DATA",
    "UNSUPP_DEVICE",
    "OTHER",
}
ACTIONS = {"APPROVE", "COMPLETE", "REJECT", "RETURN", "START", "SCREEN_OUT", "UNREJECT", "UNRETURN"}
# From where an action leads to its state; asked for in that state already, it changes nothing.
TRANSITIONS = {
    "APPROVE": ({"AWAITING REVIEW"}, "APPROVED"),
    "REJECT": ({"AWAITING REVIEW"}, "REJECTED"),
    "RETURN": ({"ACTIVE", "RESERVED", "AWAITING REVIEW"}, "RETURNED"),
    "START": ({"RESERVED"}, "ACTIVE"),
    "SCREEN_OUT": ({"AWAITING REVIEW"}, "SCREENED OUT"),
    "UNREJECT": ({"REJECTED"}, "AWAITING REVIEW"),
    "UNRETURN": ({"RETURNED"}, "AWAITING REVIEW"),
}
MAY_STILL_SUBMIT = {"RESERVED", "ACTIVE", "TIMED-OUT"}
BONUS_LINE = re.compile(r"([^,\s]+),(\d+(?:\.\d{1,2})?)")
MOST_BONUSES = 200
MOST_APPROVALS = 1000


# --- What participants do -------------------------------------------------------------------------------------


def arrive(world: World, study_id: str, participant_id: str = "") -> Row:
    """A participant takes a place; 409 where there is none or they took part already."""
    study = studies.get(world, study_id)
    participant_id = participant_id or new_id()
    if study["status"] != "ACTIVE" or not studies.has_free_place(world, study):
        raise ApiError(409, "No place", f"The study is {study['status']} or full.")
    earlier = [one for one in studies.of_study(world, study_id) if one["participant"] == participant_id]
    if any(one["status"] not in {"RETURNED", "TIMED-OUT"} for one in earlier):
        raise ApiError(409, "Took part already", "One submission per participant.")
    submission: Row = {
        "id": new_id(),
        "participant": participant_id,
        "study_id": study_id,
        "status": "RESERVED",
        "entered_code": None,
        "started_at": now(),
        "completed_at": None,
        "return_requested": None,
        "bonuses": [],
        "ip": "192.0.2.7",
    }
    world.submissions[submission["id"]] = submission
    set_status(world, submission, "ACTIVE")
    return submission


def submit(world: World, submission_id: str, code: str | None) -> Row:
    """A participant comes back with a code, or without one ("NOCODE")."""
    submission = get(world, submission_id)
    study = studies.get(world, submission["study_id"])
    if submission["status"] not in MAY_STILL_SUBMIT:
        return submission  # the completion page may be opened twice
    if submission["status"] == "TIMED-OUT" and not studies.places_remain(world, study):
        return submission  # replaced meanwhile
    submission["entered_code"] = code or "NOCODE"
    submission["completed_at"] = now()
    known = next((one for one in study["completion_codes"] if one["code"] == code), None)
    set_status(world, submission, "AWAITING REVIEW")
    for action in known["actions"] if known else []:
        _act(world, study, submission, action)
    studies.settle(world, study)
    return submission


def _act(world: World, study: Row, submission: Row, action: Row) -> None:
    if action["action"] == "AUTOMATICALLY_APPROVE":
        _approve(world, submission)
    elif action["action"] == "REQUEST_RETURN":
        submission["return_requested"] = now()
    elif action["action"] == "FIXED_SCREEN_OUT_PAYMENT" and not studies.slots_used_up(world, study):
        # Without a slot left it waits for review: silent in the documentation.
        world.pay(submission, "screen_out", action["fixed_screen_out_reward"])
        set_status(world, submission, "SCREENED OUT")


def give_back(world: World, submission_id: str) -> Row:
    submission = get(world, submission_id)
    if submission["status"] in {"RESERVED", "ACTIVE", "AWAITING REVIEW", "TIMED-OUT"}:
        set_status(world, submission, "RETURNED")
        studies.settle(world, studies.get(world, submission["study_id"]))
    return submission


def time_out(world: World, submission_id: str) -> Row:
    submission = get(world, submission_id)
    if submission["status"] in {"RESERVED", "ACTIVE"}:
        set_status(world, submission, "TIMED-OUT")
    return submission


# --- What researchers do --------------------------------------------------------------------------------------


def get(world: World, submission_id: str) -> Row:
    if submission_id not in world.submissions:
        raise not_found("The submission")
    return world.submissions[submission_id]


def detail(world: World, submission_id: str) -> Row:
    """A single submission, with the names of fields that only it has."""
    one = get(world, submission_id)
    bonuses = []
    for bonus in one["bonuses"]:
        if bonus["hidden_reads"] > 0:
            bonus["hidden_reads"] -= 1
        else:
            bonuses.append(bonus["amount_minor"])
    return {
        "id": one["id"],
        "participant": one["participant"],
        "study_id": one["study_id"],
        "parent_study_id": None,
        "status": one["status"],
        "entered_code": one["entered_code"],
        "started_at": one["started_at"],
        "completed_at": one["completed_at"],
        "return_requested": one["return_requested"],
        "bonus_payments": bonuses,
        "ip": one["ip"],
    }


def listed(one: Row) -> Row:
    """A row of a list, with the names of fields that lists have."""
    return {
        "id": one["id"],
        "participant_id": one["participant"],
        "status": one["status"],
        "started_at": one["started_at"],
        "completed_at": one["completed_at"],
        "has_siblings": False,
        "study_code": one["entered_code"],
        "return_requested": one["return_requested"],
        "ip": one["ip"],
    }


def counts(world: World, study_id: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in studies.of_study(world, study_id):
        found[one["status"]] = found.get(one["status"], 0) + 1
    return {**found, "TOTAL": sum(found.values())}


def transition(world: World, submission_id: str, body: Row) -> Row:
    submission = get(world, submission_id)
    action = str(body.get("action"))
    if action not in ACTIONS:
        raise ApiError(400, "Validation error", {"action": [f'"{action}" is not a valid choice.']})
    study = studies.get(world, submission["study_id"])
    if action == "COMPLETE":
        return _complete(world, study, submission, body)
    if action == "REJECT":
        _check_rejection(body)
    before, after = TRANSITIONS[action]
    if submission["status"] != after:
        if submission["status"] not in before:
            raise ApiError(400, "Invalid transition", f"Cannot {action} a submission that is {submission['status']}.")
        if action == "APPROVE":
            _approve(world, submission)
        else:
            set_status(world, submission, after)
        studies.settle(world, study)
    return detail(world, submission_id)


def _complete(world: World, study: Row, submission: Row, body: Row) -> Row:
    code = body.get("completion_code")
    known = next((one for one in study["completion_codes"] if one["code"] == code), None)
    if known is None or known.get("actor", "participant") != "researcher":
        raise ApiError(400, "Validation error", {"completion_code": ["Must be a code with actor researcher."]})
    submit(world, submission["id"], code)
    return detail(world, submission["id"])


def _check_rejection(body: Row) -> None:
    problems = {}
    if len(body.get("message") or "") < 100:
        problems["message"] = ["Ensure this field has at least 100 characters."]
    if body.get("rejection_category") not in REJECTION_CATEGORIES:
        problems["rejection_category"] = ["Not a valid choice."]
    if problems:
        raise ApiError(400, "Validation error", problems)


def bulk_approve(world: World, body: Row) -> Row:
    if "submission_ids" in body:
        ids = list(body["submission_ids"])
    else:
        wanted = set(body.get("participant_ids") or [])
        ids = [one["id"] for one in studies.of_study(world, body["study_id"]) if one["participant"] in wanted]
    if len(ids) > MOST_APPROVALS:
        raise ApiError(400, "Validation error", {"submission_ids": [f"At most {MOST_APPROVALS}."]})
    if unknown := [one for one in ids if one not in world.submissions]:
        raise ApiError(400, "Validation error", {"submission_ids": [f"Unknown: {', '.join(unknown)}"]})
    for submission_id in ids:
        if world.submissions[submission_id]["status"] == "AWAITING REVIEW":
            _approve(world, world.submissions[submission_id])
            studies.settle(world, studies.get(world, world.submissions[submission_id]["study_id"]))
    return {"message": "The request to bulk approve has been made successfully."}


def request_return(world: World, submission_id: str, body: Row) -> Row:
    submission = get(world, submission_id)
    submission["return_requested"] = now()
    reasons = body.get("request_return_reasons") or []
    world.messages.append({"recipient_id": submission["participant"], "body": "; ".join(reasons)})
    return detail(world, submission_id)


def _approve(world: World, submission: Row) -> None:
    world.pay(submission, "reward", studies.get(world, submission["study_id"])["reward"])
    set_status(world, submission, "APPROVED")


def set_status(world: World, submission: Row, status: str) -> None:
    submission["status"] = status
    world.announce(
        {
            "event_type": "submission.status.change",
            "resource_id": submission["id"],
            "participant_id": submission["participant"],
            "status": status,
        }
    )


# --- Bonuses --------------------------------------------------------------------------------------------------


def set_up_bonuses(world: World, body: Row) -> Row:
    study_id = studies.get(world, str(body.get("study_id")))["id"]
    lines = [line for line in str(body.get("csv_bonuses") or "").splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST_BONUSES:
        raise ApiError(400, "Validation error", {"csv_bonuses": [f"1 to {MOST_BONUSES} lines."]})
    if wrong := [line for line in lines if not BONUS_LINE.fullmatch(line)]:
        raise ApiError(400, "Validation error", {"csv_bonuses": [f"Cannot read: {wrong[0]}"]})
    amounts = [(_recipient(world, study_id, line), _minor(line)) for line in lines]
    if unknown := [line.split(",")[0] for line, (one, _) in zip(lines, amounts, strict=True) if one is None]:
        raise ApiError(400, "Validation error", {"csv_bonuses": [f"Unknown ids: {', '.join(unknown)}"]})
    amount = sum(minor for _, minor in amounts)
    fees, vat, total = with_fees(amount)
    batch = {
        "id": new_id(),
        "study": study_id,
        "amount": amount,
        "fees": fees,
        "vat": vat,
        "total_amount": total,
    }
    world.batches[batch["id"]] = {**batch, "amounts": amounts}
    return batch


def pay_bonuses(world: World, batch_id: str) -> None:
    """Pays, again too: this call is not idempotent at Prolific."""
    if batch_id not in world.batches:
        raise not_found("The bulk bonus payment")
    for submission, amount_minor in world.batches[batch_id]["amounts"]:
        world.pay(submission, "bonus", amount_minor)
        submission["bonuses"].append({"amount_minor": amount_minor, "hidden_reads": world.settings.bonus_lag_reads})


def _recipient(world: World, study_id: str, line: str) -> Any:
    recipient = line.split(",")[0]
    for one in studies.of_study(world, study_id):
        if recipient in {one["id"], one["participant"]}:
            return one
    return None


def _minor(line: str) -> int:
    return int(Decimal(line.split(",")[1]) * 100)
