"""The last page: each outcome with its own text, code and link."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from studies.flow import Outcome, Step
from studies.models import Study
from studies.services.participations import close_timed_out, return_participation
from tests import walks
from tests.studies.visitor import PROLIFIC_LINK, Visitor

pytestmark = pytest.mark.django_db


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
    elif outcome == Outcome.RETURNED:
        return_participation(visitor.at(Step.MAIN).pk)
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
