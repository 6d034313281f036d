"""People who come from the panel, end here in one way or another, and hand in their submission there or return it."""

from django.contrib.auth.models import User
from django.utils import timezone

from studies.flow import Outcome, Step
from studies.models import PanelStudy, ParticipantIdentity, Participation, PaymentRun
from studies.selectors.payments import unclear_bonuses
from studies.services import payment_execution, payments, recruitment_sync


def ended(
    fake, panel_study: PanelStudy, outcome: Outcome, *, failures: int = 0, hands_in: bool = True
) -> Participation:
    """Somebody who took a place there and has ended here; handed in with the code shown, or returned."""
    one = fake.arrive(panel_study.panel_id)
    study = panel_study.study
    person = Participation.objects.create(
        study=study,
        step=Step.END,
        outcome=outcome,
        attention_failures=failures,
        completion_code=study.completion_codes.get(outcome=outcome),
        finished_at=timezone.now(),
    )
    ParticipantIdentity.objects.create(
        participation=person, study=study, participant_id=one["participant"], session_id=one["id"]
    )
    if hands_in:
        fake.submit(one["id"], person.completion_code.code)
    else:
        fake.give_back(one["id"])
    return person


def completed(fake, panel_study: PanelStudy, *, failed_checks: int = 0) -> Participation:
    outcome = Outcome.ATTENTION_FAILED if failed_checks else Outcome.COMPLETED
    return ended(fake, panel_study, outcome, failures=failed_checks)


def failed_comprehension(fake, panel_study: PanelStudy) -> Participation:
    return ended(fake, panel_study, Outcome.COMPREHENSION_FAILED)


def returned_screen_out(fake, panel_study: PanelStudy) -> Participation:
    """Failed the colour check and returned the submission instead of handing it in: due a bonus."""
    return ended(fake, panel_study, Outcome.COLOUR_CHECK_FAILED, hands_in=False)


def session(participation: Participation) -> str:
    return participation.identity.session_id


def paid_by_submission(fake) -> dict[str, list[int]]:
    """Every payment that reached somebody, in pence."""
    found: dict[str, list[int]] = {}
    for payment in fake.world.payments:
        found.setdefault(payment["submission_id"], []).append(payment["amount_minor"])
    return found


def confirmed_run(panel_study: PanelStudy, payer: User) -> PaymentRun:
    """What is due by the service's present state, prepared and confirmed."""
    recruitment_sync.read_panel_study(panel_study.pk)
    run = payments.prepare(panel_study, payer)
    payments.confirm(run, payer, seen=payments.fingerprint(run))
    return run


def say_unpaid(run: PaymentRun) -> int:
    """Somebody opens the run's page and says at once that its unclear bonuses were not paid."""
    unclear = unclear_bonuses(run, payment_execution.settled_before()).values_list("id", flat=True)
    return payment_execution.declare_unpaid(run, "payer", seen=list(unclear))
