"""A whole campaign against the stand-in: people who fail, leave, dawdle and forget their code, and a service that errs,
loses answers, and repeats and reorders its events. In the end every dataset has its participants, and the ledger there
shows everybody paid once, to the penny of a sum that is worked out here by other means.

CAMPAIGN=full takes the paper's 60 datasets and 690 places in place of 4 datasets and 23.
"""

import contextlib
import os
import random
from collections import Counter
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from scooter_site.demo.fake_prolific import FakeProlific
from scooter_site.demo.fake_prolific.faults import Fault, WebhookFaults
from scooter_site.demo.fake_prolific.world import TOKEN, WORKSPACE_ID, with_fees
from studies.admin.recruitment import enough_places
from studies.flow import Outcome
from studies.models import (
    Panel,
    PanelStudy,
    Participation,
    ParticipationKind,
    Payment,
    PaymentRun,
    PaymentState,
    Submission,
    WebhookEvent,
    Workspace,
)
from studies.recruitment import http
from studies.recruitment.errors import ProlificError
from studies.recruitment.review import Offer
from studies.recruitment.statuses import SubmissionStatus
from studies.selectors import places_left
from studies.selectors.payments import due_now
from studies.selectors.recruitment import submissions_to_review
from studies.services import participations, payments, recruitment, recruitment_sync
from studies.services.participations import StudyFull
from studies.services.payment_execution import execute
from studies.services.payments import PaymentRefused
from studies.services.time_out import close_all_timed_out
from studies.services.webhooks import set_up_webhooks
from tests import factories, walks
from tests.studies.pay.people import say_unpaid
from tests.studies.recruitment.conftest import LANDING
from tests.studies.recruitment.deciding import decide

pytestmark = [pytest.mark.services, pytest.mark.django_db]

# What people do, of a hundred. The first who come do one of each, so that the smallest campaign has all of it.
WAYS = {
    "completes": 66,
    "fails attention": 6,
    "fails comprehension": 6,
    "fails colour": 10,
    "declines": 2,
    "returns": 4,
    "times out": 2,
    "begins anew": 2,
    "forgets the code": 2,
}
DATASETS, EACH = (60, 10) if os.environ.get("CAMPAIGN") == "full" else (4, 5)
PLACES = -(-DATASETS * EACH * 115 // 100)
MOST_ARRIVALS = 2 * PLACES
# Fewer steps than a real participant has, and every kind of them.
SHORT = {
    "dataset_count": DATASETS,
    "participants_per_dataset": EACH,
    "buffer_percent": 15,
    "clean_per_dataset": 2,
    "modified_per_dataset": 1,
    "plate_count": 1,
    "plates_required": 1,
    "comprehension_pair_count": 1,
    "comprehension_required": 1,
    "corrupted_check_count": 0,
    "instructed_check_count": 1,
}


def pence(minutes: str) -> int:
    """What a study with the paper's rate owes for so many minutes."""
    return int((Decimal("760") * Decimal(minutes) / 60).quantize(Decimal(1), ROUND_HALF_UP))


OWED = {
    "completes": pence("13"),
    "fails attention": pence("13"),
    "begins anew": pence("13"),
    "forgets the code": pence("13"),
    "fails comprehension": pence("2.5"),
    "fails colour": pence("1"),
}


class Campaign:
    def __init__(self, fake: FakeProlific, deliveries: list, panel_study: PanelStudy, payer: User) -> None:
        self.fake, self.deliveries, self.panel_study, self.payer = fake, deliveries, panel_study, payer
        self.client = Client()
        self.chance = random.Random(7)
        self.first_ways = list(WAYS)
        self.ways: dict[str, str] = {}  # of each submission
        self.turned_away = 0
        self.shown_cost_minor = panel_study.estimated_cost_minor

    # --- People -----------------------------------------------------------------------------------------------

    def next_way(self) -> str:
        if self.first_ways:
            return self.first_ways.pop()
        (way,) = self.chance.choices(list(WAYS), list(WAYS.values()))
        return way

    def one_arrives(self, again: str = "") -> None:
        """``again``: the participant who has given their submission back and takes another place at once."""
        one = self.fake.arrive(self.panel_study.panel_id, again)
        ids = {name: values[0] for name, values in parse_qs(urlsplit(one["address"]).query).items()}
        try:
            person = participations.enter_study(
                self.panel_study.study,
                kind=ParticipationKind.REAL,
                participant_id=ids["PROLIFIC_PID"],
                session_id=ids["SESSION_ID"],
            )
            way = "begins anew" if again else self.next_way()
            if way == "begins anew" and not again:
                self.ways[one["id"]] = "returns"
                walks.consent(person)
                self.fake.give_back(one["id"])
                self.one_arrives(again=one["participant"])
                return
            self.ways[one["id"]] = way
            self.go(person, one["id"], way)
        except StudyFull:
            self.turned_away += 1
            self.ways[one["id"]] = "turned away"
            self.fake.give_back(one["id"])

    def go(self, person: Participation, submission_id: str, way: str) -> None:
        if way == "declines":
            participations.decline_consent(person.pk)
            self.fake.give_back(submission_id)
            return
        person = walks.answer_plates(walks.consent(person), wrong=int(way == "fails colour"))
        if way != "fails colour":
            if way == "returns":
                self.fake.give_back(submission_id)
                return
            if way == "times out":
                self.fake.time_out(submission_id)
                return
            person = walks.answer_pairs(person, wrong=int(way == "fails comprehension"))
            if way != "fails comprehension":
                person = walks.rate_all(person, failed_checks=int(way == "fails attention"))
                participations.give_feedback(person.pk, {})
        person.refresh_from_db()
        code = None if way == "forgets the code" else person.completion_code.code
        self.fake.submit(submission_id, code)

    def those_who_were_asked_return(self) -> None:
        for one in list(self.fake.world.submissions.values()):
            if one["return_requested"] and one["status"] == "AWAITING REVIEW":
                self.fake.give_back(one["id"])

    # --- Here -------------------------------------------------------------------------------------------------

    def keep_in_step(self) -> None:
        """Webhooks as they came, then what no event told."""
        self.fake.hooks.flush()
        waiting, self.deliveries[:] = list(self.deliveries), []
        for address, headers, body in waiting:
            response = self.client.post(address, body, content_type="application/json", headers=headers)
            assert response.status_code == 204
        for event in WebhookEvent.objects.filter(processed_at__isnull=True):
            recruitment_sync.process_event(event.pk)

    def decide(self) -> None:
        for submission in submissions_to_review():
            # The offers of a reason begin with what the outcome earns.
            decide(submission, Offer.APPROVE, "operator")

    def open_again(self) -> None:
        """What the page advises when all places there have been taken, and people then gave theirs back."""
        self.panel_study.refresh_from_db()
        if places := enough_places(self.panel_study):
            with contextlib.suppress(ProlificError):  # once more in the next round
                recruitment.raise_places(self.panel_study, places)

    def pay(self) -> None:
        recruitment_sync.read_panel_study(self.panel_study.pk)
        self.decide()
        try:
            run = payments.prepare(self.panel_study, self.payer)
        except PaymentRefused:
            return
        payments.confirm(run, self.payer, seen=payments.fingerprint(run))
        for _ in range(20):
            hours_ago = timezone.now() - timedelta(hours=2)
            Payment.objects.filter(claimed_at__isnull=False).update(claimed_at=hours_ago)
            execute(run.pk)
            run.refresh_from_db()
            if run.finished_at:
                return
            states = set(run.payments.values_list("state", flat=True))
            if PaymentState.PLANNED not in states and run.batches.filter(payments__state="claimed").exists():
                run.batches.filter(pay_requested_at__isnull=False).update(pay_requested_at=hours_ago)
                say_unpaid(run)
        pytest.fail(f"The run does not end: {run.error}")


@pytest.fixture
def campaign(settings, monkeypatch):
    deliveries: list = []

    def send(address, headers, body):
        deliveries.append((urlsplit(address).path, headers, body))
        return 204

    with FakeProlific(send=send) as fake:
        settings.PROLIFIC_API_URL = fake.url
        monkeypatch.setattr(http, "FIRST_WAIT_SECONDS", 0)
        workspace = Workspace(name="Laboratory", workspace_id=WORKSPACE_ID)
        workspace.token = TOKEN
        workspace.save()
        study = factories.running_study(panel=Panel.PROLIFIC, **SHORT)
        panel_study = PanelStudy.objects.create(study=study, workspace=workspace, **recruitment.suggested(study))
        recruitment.create_draft(panel_study, LANDING)
        recruitment.estimate_cost(panel_study)
        recruitment.publish(panel_study, LANDING)
        hook = reverse("prolific-webhook", args=[workspace.webhook_key])
        set_up_webhooks(workspace, f"https://scooter.example.org{hook}")
        fake.fail(Fault.SERVER_ERROR, probability=0.05)
        fake.fail(Fault.LOST_AFTER_ACTING, probability=0.02)
        fake.faults.webhooks = WebhookFaults(duplicate=0.1, reorder=0.1, drop=0.02)
        payer = User.objects.create_user("payer")
        yield Campaign(fake, deliveries, panel_study, payer)


def test_everybody_is_paid_once_and_every_dataset_is_complete(campaign):
    fake, panel_study = campaign.fake, campaign.panel_study
    study = panel_study.study
    assert study.place_count == PLACES
    arrivals = 0
    while places_left(study, ParticipationKind.REAL) and arrivals < MOST_ARRIVALS:
        for _ in range(2 * DATASETS):
            if fake.world.studies[panel_study.panel_id]["status"] != "ACTIVE":
                break
            try:
                campaign.one_arrives()
            except Exception as error:
                if getattr(error, "status", None) != 409:  # no free place there just now
                    raise
                break
            arrivals += 1
        campaign.keep_in_step()
        campaign.pay()
        campaign.those_who_were_asked_return()
        campaign.open_again()
    close_all_timed_out(timezone.now())  # a day later
    for _ in range(6):
        campaign.keep_in_step()
        campaign.pay()
        campaign.those_who_were_asked_return()

    assert set(campaign.ways.values()) >= set(WAYS)
    assert set(Participation.objects.values_list("outcome", flat=True)) == set(Outcome)

    # Every dataset has its participants, and the places on top of the plan are spread evenly.
    valid = Counter(Participation.objects.filter(is_valid=True).values_list("dataset_id", flat=True))
    assert len(valid) == DATASETS
    assert min(valid.values()) >= EACH
    assert max(valid.values()) - min(valid.values()) <= 2
    failed = Participation.objects.filter(outcome=Outcome.ATTENTION_FAILED).count()
    study.refresh_from_db()
    assert PLACES <= study.place_count <= PLACES + EACH
    assert valid.total() + failed == study.place_count

    # Everybody got what they are owed, in one payment, and nobody else got anything.
    expected = {one: [OWED[way]] for one, way in campaign.ways.items() if way in OWED}
    found: dict[str, list[int]] = {}
    for payment in fake.world.payments:
        found.setdefault(payment["submission_id"], []).append(payment["amount_minor"])
    assert found == expected

    # Nobody waits for anything.
    assert due_now(panel_study) == []
    assert not submissions_to_review().exists()
    assert not Payment.objects.exclude(state__in=[PaymentState.DONE, PaymentState.FAILED]).exists()
    assert not PaymentRun.objects.filter(finished_at__isnull=True).exists()
    assert not Submission.objects.filter(
        status__in=[SubmissionStatus.AWAITING_REVIEW, SubmissionStatus.ACTIVE, SubmissionStatus.UNKNOWN]
    ).exists()

    # Within what was shown before it began.
    paid = sum(sum(amounts) for amounts in found.values())
    assert with_fees(paid)[2] <= campaign.shown_cost_minor
