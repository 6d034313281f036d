"""What is sent to create a study, and what is refused before it is sent."""

from decimal import Decimal

import pytest

from studies.flow import Outcome
from studies.recruitment.money import bonus_line, to_major, to_minor
from studies.recruitment.payloads import (
    ScreenOutPay,
    rejection_problems,
    screen_out_slots,
    with_slots,
)
from tests.studies.recruitment.plans import payload, plan


def actions(**fields) -> dict[str, dict]:
    return {code["code"]: code["actions"][0] for code in payload(**fields)["completion_codes"]}


def test_the_address_keeps_the_placeholders_as_prolific_fills_them_in():
    assert payload()["external_study_url"] == (
        "https://scooter.example.org/s/abc/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
        "&SESSION_ID={{%SESSION_ID%}}"
    )


def test_money_goes_in_pence_and_only_desktops_are_let_in():
    sent = payload()
    assert sent["reward"] == 165
    assert type(sent["reward"]) is int
    assert sent["device_compatibility"] == ["desktop"]
    assert sent["submissions_config"] == {"max_submissions_per_participant": 1, "max_concurrent_submissions": 4}
    assert "project" not in sent
    assert payload(project_id="p" * 24)["project"] == "p" * 24


def test_every_outcome_has_a_code_with_the_action_it_calls_for():
    found = actions()
    assert found["AAAAAAAA"] == {"action": "MANUALLY_REVIEW"}
    assert found["BBBBBBBB"] == {"action": "MANUALLY_REVIEW"}
    assert found["CCCCCCCC"] == {"action": "MANUALLY_REVIEW"}  # one code at most may have a fixed screen-out
    assert found["DDDDDDDD"] == {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 13, "slots": 2}
    assert found["EEEEEEEE"]["action"] == found["FFFFFFFF"]["action"] == "REQUEST_RETURN"
    assert all(found[code]["return_reason"] for code in ("EEEEEEEE", "FFFFFFFF"))


def test_without_fixed_screen_outs_those_people_are_reviewed():
    assert actions(screen_out_pay=ScreenOutPay.REVIEW_AND_BONUS)["DDDDDDDD"] == {"action": "MANUALLY_REVIEW"}
    only_comprehension = {Outcome.COMPREHENSION_FAILED: Decimal("0.32")}
    assert actions(screen_out_major=only_comprehension)["CCCCCCCC"]["fixed_screen_out_reward"] == 32


def test_more_slots_change_nothing_else_of_the_codes():
    before = payload()["completion_codes"]
    after = with_slots(before, 7)
    assert screen_out_slots(before) == 2
    assert screen_out_slots(after) == 7
    assert with_slots(after, 2) == before
    assert screen_out_slots(payload(screen_out_pay=ScreenOutPay.REVIEW_AND_BONUS)["completion_codes"]) is None


@pytest.mark.parametrize(("length", "refused"), [(99, True), (100, False)])
def test_a_rejection_needs_a_hundred_characters(length, refused):
    assert bool(rejection_problems("FAILED_CHECK", "x" * length)) is refused


def test_spaces_do_not_make_a_rejection_longer():
    assert rejection_problems("FAILED_CHECK", "x" * 99 + "  ")


def test_a_rejection_needs_a_reason_of_the_service():
    assert rejection_problems("I_DID_NOT_LIKE_IT", "x" * 100)


def test_pounds_and_pence():
    assert to_minor(Decimal("1.65")) == 165
    assert to_major(13) == Decimal("0.13")
    assert bonus_line("abc", Decimal("0.5")) == "abc,0.50"
    with pytest.raises(ValueError, match="pence"):
        to_minor(Decimal("0.125"))
    for amount in ("0", "-0.10"):
        with pytest.raises(ValueError, match="more than nothing"):
            bonus_line("abc", Decimal(amount))


def test_a_plan_is_a_value():
    assert plan() == plan()
