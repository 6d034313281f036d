"""Studies of the stand-in: what a draft may be, and the states it goes through."""

import math
import re
from typing import Any

from scooter_site.demo.fake_prolific.world import (
    PROJECT_ID,
    ApiError,
    Row,
    World,
    new_id,
    not_found,
    with_fees,
)

REQUIRED = (
    "name",
    "description",
    "external_study_url",
    "prolific_id_option",
    "completion_codes",
    "total_available_places",
    "estimated_completion_time",
    "reward",
)
MINIMUM_PER_HOUR_MINOR = 600
CHANGEABLE_AFTER_PUBLISH = {
    "internal_name",
    "total_available_places",
    "access_details",
    "submissions_config",
    "completion_codes",  # their slots only
}
TRANSITIONS = {
    ("UNPUBLISHED", "PUBLISH"): "ACTIVE",
    ("UNPUBLISHED", "SCHEDULE_PUBLISH"): "SCHEDULED",
    ("SCHEDULED", "CANCEL_PUBLISH"): "UNPUBLISHED",
    ("ACTIVE", "PAUSE"): "PAUSED",
    ("ACTIVE", "STOP"): "COMPLETED",
    ("PAUSED", "STOP"): "COMPLETED",
    ("PAUSED", "START"): "ACTIVE",
}
ACTIONS_WITH_KEYS = {
    "AUTOMATICALLY_APPROVE": set(),
    "MANUALLY_REVIEW": set(),
    "REQUEST_RETURN": {"return_reason"},
    "ADD_TO_PARTICIPANT_GROUP": {"participant_group"},
    "REMOVE_FROM_PARTICIPANT_GROUP": {"participant_group"},
    "FIXED_SCREEN_OUT_PAYMENT": {"fixed_screen_out_reward", "slots"},
    "DYNAMIC_PAYMENT": set(),
}
TAKES_PLACE = {"RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED"}
AT_WORK = {"RESERVED", "ACTIVE"}


def create(world: World, body: Row) -> Row:
    missing = {name: ["This field is required."] for name in REQUIRED if body.get(name) in (None, "", [])}
    if missing:
        raise ApiError(400, "Validation error", missing, 140000)
    _check(world, body)
    study = {
        **body,
        "id": new_id(),
        "status": "UNPUBLISHED",
        "is_ready_to_publish": True,
        "project": body.get("project") or PROJECT_ID,
        "filters": body.get("filters") or [],
        "internal_name": body.get("internal_name") or "",
        "metadata": body.get("metadata") or "",
    }
    world.studies[study["id"]] = study
    return shown(world, study)


def shown(world: World, study: Row) -> Row:
    """A study as the service answers it."""
    return {
        **study,
        "places_taken": _taken(world, study, TAKES_PLACE - AT_WORK),
        "total_cost": with_fees(study["reward"] * study["total_available_places"])[2],
    }


def get(world: World, study_id: str) -> Row:
    if study_id not in world.studies:
        raise not_found("The study")
    return world.studies[study_id]


def change(world: World, study_id: str, body: Row) -> Row:
    study = get(world, study_id)
    if study["status"] not in {"UNPUBLISHED", "SCHEDULED"}:
        if frozen := sorted(set(body) - CHANGEABLE_AFTER_PUBLISH):
            raise ApiError(400, "Validation error", {name: ["Cannot be changed after publishing."] for name in frozen})
        if body.get("total_available_places", study["total_available_places"]) < study["total_available_places"]:
            raise ApiError(400, "Validation error", {"total_available_places": ["Places can only be increased."]})
        if "completion_codes" in body:
            _only_more_slots(study["completion_codes"], body["completion_codes"])
    changed = {**study, **body}
    _check(world, changed)
    more_places = changed["total_available_places"] > study["total_available_places"]
    study.update(body)
    if more_places and study["status"] in {"COMPLETED", "AWAITING REVIEW"}:
        set_status(world, study, "ACTIVE")
    return shown(world, study)


def transition(world: World, study_id: str, body: Row) -> Row:
    study = get(world, study_id)
    action = str(body.get("action"))
    if (study["status"], action) not in TRANSITIONS:
        raise ApiError(400, "Invalid transition", f"Cannot {action} a study that is {study['status']}.")
    if action == "SCHEDULE_PUBLISH" and not body.get("publish_at"):
        raise ApiError(400, "Validation error", {"publish_at": ["This field is required."]})
    if action == "START" and slots_used_up(world, study):
        # Silent in the documentation, which only says that slots have to be raised first.
        raise ApiError(400, "Invalid transition", "All screen-out slots are used up. Increase slots first.")
    set_status(world, study, TRANSITIONS[study["status"], action])
    return shown(world, study)


def set_status(world: World, study: Row, status: str) -> None:
    study["status"] = status
    world.announce(
        {
            "event_type": "study.status.change",
            "resource_id": study["id"],
            "metadata": study["metadata"],
            "status": status,
        }
    )


def has_free_place(world: World, study: Row) -> bool:
    at_once = (study.get("submissions_config") or {}).get("max_concurrent_submissions", -1)
    if 0 <= at_once <= _taken(world, study, AT_WORK):
        return False
    return _taken(world, study, TAKES_PLACE) < study["total_available_places"]


def settle(world: World, study: Row) -> None:
    """The states that a study reaches by what happens to its submissions."""
    if study["status"] == "ACTIVE" and slots_used_up(world, study) and places_remain(world, study):
        set_status(world, study, "PAUSED")
        return
    if (
        study["status"] in {"ACTIVE", "PAUSED"}
        and not places_remain(world, study)
        and not _taken(world, study, AT_WORK)
    ):
        set_status(world, study, "AWAITING REVIEW")
    if study["status"] == "AWAITING REVIEW" and not _taken(world, study, {"AWAITING REVIEW"}):
        set_status(world, study, "COMPLETED")


def places_remain(world: World, study: Row) -> bool:
    return _taken(world, study, TAKES_PLACE - AT_WORK) < study["total_available_places"]


def slots_used_up(world: World, study: Row) -> bool:
    action = screen_out_action(study)
    return action is not None and _taken(world, study, {"SCREENED OUT"}) >= action["slots"]


def screen_out_action(study: Row) -> Row | None:
    for code in study["completion_codes"]:
        for action in code["actions"]:
            if action["action"] == "FIXED_SCREEN_OUT_PAYMENT":
                found: Row = action
                return found
    return None


def of_study(world: World, study_id: str) -> list[Row]:
    return [one for one in world.submissions.values() if one["study_id"] == study_id]


def _taken(world: World, study: Row, statuses: set[str]) -> int:
    return sum(one["status"] in statuses for one in of_study(world, study["id"]))


# --- What a study may be --------------------------------------------------------------------------------------


def _check(world: World, body: Row) -> None:
    problems: dict[str, list[str]] = {}
    if body["prolific_id_option"] not in {"question", "url_parameters", "not_required"}:
        problems["prolific_id_option"] = [f'"{body["prolific_id_option"]}" is not a valid choice.']
    for name in ("total_available_places", "estimated_completion_time", "reward"):
        if isinstance(body[name], bool) or not isinstance(body[name], int) or body[name] < 1:
            problems[name] = ["A valid positive integer is required."]
    if problems:
        raise ApiError(400, "Validation error", problems)
    minutes = body["estimated_completion_time"]
    if body["reward"] < math.ceil(minutes * MINIMUM_PER_HOUR_MINOR / 60):
        problems["reward"] = ["The reward is below the minimum of 6.00 per hour."]
    if (allowed := body.get("maximum_allowed_time")) and allowed < 2 + 2 * minutes + 2 * math.sqrt(minutes):
        problems["maximum_allowed_time"] = ["This is too short for the estimated completion time."]
    if set(body.get("device_compatibility") or []) - {"desktop", "tablet", "mobile"}:
        problems["device_compatibility"] = ["Not a valid choice."]
    if found := _filter_problem(body.get("filters") or []):
        problems["filters"] = [found]
    if found := _codes_problem(world, body):
        problems["completion_codes"] = [found]
    if problems:
        raise ApiError(400, "Validation error", problems)


def _filter_problem(filters: list[Row]) -> str:
    for one in filters:
        if "filter_id" not in one:
            return "Each filter needs a filter_id."
        values = one.get("selected_values", [])
        if not all(isinstance(value, str) for value in values):
            return "selected_values must be strings."
    return ""


def _codes_problem(world: World, body: Row) -> str:
    codes = body["completion_codes"]
    if len({code.get("code") for code in codes}) < len(codes):
        return "Codes must be unique within the study."
    fixed = 0
    for code in codes:
        if any(name not in code for name in ("code", "code_type", "actions")):
            return "code, code_type and actions are required."
        names = {action.get("action") for action in code["actions"]}
        if unknown := names - set(ACTIONS_WITH_KEYS):
            return f"Unknown action: {unknown.pop()}."
        if {"AUTOMATICALLY_APPROVE", "MANUALLY_REVIEW"} <= names:
            return "A code cannot both approve and wait for review."
        for action in code["actions"]:
            if missing := ACTIONS_WITH_KEYS[action["action"]] - set(action):
                return f"{action['action']} needs {', '.join(sorted(missing))}."
            if action["action"] == "FIXED_SCREEN_OUT_PAYMENT":
                fixed += 1
                if action["fixed_screen_out_reward"] >= body["reward"]:
                    return "fixed_screen_out_reward must be less than the reward."
    if fixed and world.settings.refuses_fixed_screen_outs:
        return "FIXED_SCREEN_OUT_PAYMENT is not available in this workspace."
    return "Only one code may have FIXED_SCREEN_OUT_PAYMENT." if fixed > 1 else ""


def _only_more_slots(before: list[Row], after: list[Row]) -> None:
    def without_slots(codes: list[Row]) -> Any:
        return [{**code, "actions": [{**action, "slots": None} for action in code["actions"]]} for code in codes]

    if without_slots(before) != without_slots(after):
        raise ApiError(400, "Validation error", {"completion_codes": ["Only slots can be changed after publishing."]})
    slots = [
        (old.get("slots", 0), new.get("slots", 0))
        for one, other in zip(before, after, strict=True)
        for old, new in zip(one["actions"], other["actions"], strict=True)
    ]
    if any(new < old for old, new in slots):
        raise ApiError(400, "Validation error", {"completion_codes": ["Slots can only be increased."]})


ADDRESS_PLACEHOLDER = re.compile(r"\{\{%(PROLIFIC_PID|STUDY_ID|SESSION_ID)%\}\}")


def filled_address(study: Row, participant_id: str, submission_id: str) -> str:
    """The study's address as a participant opens it."""
    values = {"PROLIFIC_PID": participant_id, "STUDY_ID": study["id"], "SESSION_ID": submission_id}
    return ADDRESS_PLACEHOLDER.sub(lambda match: values[match[1]], study["external_study_url"])
