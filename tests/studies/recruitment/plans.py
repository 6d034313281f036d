"""Plans of studies for tests."""

from decimal import Decimal

from studies.flow import Outcome
from studies.recruitment.payloads import ScreenOutPay, StudyPlan, study_payload

CODES = {
    Outcome.COMPLETED: "AAAAAAAA",
    Outcome.ATTENTION_FAILED: "BBBBBBBB",
    Outcome.COMPREHENSION_FAILED: "CCCCCCCC",
    Outcome.COLOUR_CHECK_FAILED: "DDDDDDDD",
    Outcome.DECLINED: "EEEEEEEE",
    Outcome.TIMED_OUT: "FFFFFFFF",
}


def plan(**fields) -> StudyPlan:
    return StudyPlan(
        **{
            "name": "Rate 60 images",
            "internal_name": "scooter 1",
            "description": "<p>You will rate images with a slider.</p>",
            "landing_url": "https://scooter.example.org/s/abc/",
            "places": 5,
            "minutes": 13,
            "reward_major": Decimal("1.65"),
            "codes": CODES,
            "screen_out_pay": ScreenOutPay.FIXED,
            "screen_out_major": {
                Outcome.COLOUR_CHECK_FAILED: Decimal("0.13"),
                Outcome.COMPREHENSION_FAILED: Decimal("0.32"),
            },
            "screen_out_slots": 2,
            "most_at_once": 4,
            "reference": "scooter:1",
            **fields,
        }
    )


def payload(**fields) -> dict:
    return study_payload(plan(**fields))
