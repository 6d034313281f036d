"""The pages on which payments are checked and confirmed: what they say, and who may do what."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from scooter_site.demo.fake_prolific.faults import Fault
from studies.models import Payment, PaymentRun
from studies.recruitment.client import ProlificClient
from studies.recruitment.errors import Refused
from studies.recruitment.payments import Way
from studies.services import recruitment_sync
from studies.services.payment_execution import execute
from tests.studies.admin_pages import account, text_of
from tests.studies.pay.people import (
    completed,
    confirmed_run,
    failed_comprehension,
    paid_by_submission,
    returned_screen_out,
    session,
)

pytestmark = pytest.mark.django_db

PREPARING = ("studies.view_study", "studies.view_paymentrun", "studies.add_paymentrun", "studies.view_participation")
MESSAGE = (
    "You failed the attention checks at items 12 and 57, which said in words which end of the scale to choose there."
)


@pytest.fixture
def payer(client):
    user = account(*PREPARING, "studies.confirm_paymentrun", name="payer")
    client.force_login(user)
    return user


@pytest.fixture
def people(fake, published):
    found = [
        completed(fake, published),
        completed(fake, published, failed_checks=2),
        returned_screen_out(fake, published),
        failed_comprehension(fake, published),
    ]
    recruitment_sync.read_panel_study(published.pk)
    return found


def overview(panel_study) -> str:
    return reverse("admin:studies_paymentrun_study", args=[panel_study.study_id])


def prepared(client, panel_study):
    address = reverse("admin:studies_paymentrun_prepare", args=[panel_study.study_id])
    return client.post(address, follow=True)


def deed(name, run) -> str:
    return reverse(f"admin:studies_paymentrun_{name}", args=[run.pk])


def confirm(client, response, run):
    return client.post(deed("confirm", run), {"seen": response.context["seen"]}, follow=True)


def test_from_what_is_due_to_paid(client, payer, fake, published, people, django_capture_on_commit_callbacks):
    page = text_of(client.get(overview(published)))
    assert "GBP 3.43 for 4 people, without fees" in page
    assert "Payment runs None yet." in page
    response = prepared(client, published)
    page = text_of(response)
    assert "Waits for confirmation" in page
    assert "People 4 They get GBP 3.43 Fees and taxes GBP 1.36 Total GBP 4.79" in page
    assert "Approve 2 2 × GBP 1.65 GBP 3.30" in page
    assert "Bonus 1 1 × GBP 0.13 GBP 0.13" in page
    assert "Ask to return 1 nothing GBP 0.00" in page
    assert "Failed the attention checks (2 attention checks failed)" in page
    assert paid_by_submission(fake) == {}

    run = PaymentRun.objects.get()
    with django_capture_on_commit_callbacks(execute=True):
        said = text_of(confirm(client, response, run))
    assert "Confirmed. The payments are being carried out" in said
    assert paid_by_submission(fake) == {session(people[0]): [165], session(people[1]): [165], session(people[2]): [13]}
    page = text_of(client.get(reverse("admin:studies_paymentrun_change", args=[run.pk])))
    assert page.count("Done") == 4
    assert "Carried out" in page
    page = text_of(client.get(overview(published)))
    assert "Nothing is due" in page
    assert "1 person was asked to return a submission and gets a bonus afterwards" in page
    assert "Approved: 2 GBP 3.30" in page
    assert "Bonuses: 1 GBP 0.13 Together, without fees GBP 3.43" in page
    logged = LogEntry.objects.filter(user=payer).order_by("id").values_list("change_message", flat=True)
    assert list(logged) == ["Prepared.", "Confirmed."]


def test_no_page_shows_a_panel_id_to_who_may_not_see_them(client, payer, fake, published, people):
    response = prepared(client, published)
    assert session(people[0]) not in response.content.decode()
    client.force_login(account(*PREPARING, "studies.view_participantidentity", name="sees ids"))
    page = client.get(reverse("admin:studies_paymentrun_change", args=[PaymentRun.objects.get().pk])).content.decode()
    assert session(people[0]) in page
    assert people[0].identity.participant_id not in page


def test_who_may_prepare_may_not_confirm(client, payer, fake, published, people):
    client.force_login(account(*PREPARING, name="prepares"))
    response = prepared(client, published)
    assert "takes the permission to confirm payment runs" in text_of(response)
    run = PaymentRun.objects.get()
    assert client.post(deed("confirm", run), {"seen": response.context["seen"]}).status_code == 403
    payment = run.payments.filter(way=Way.APPROVE).first()
    assert (
        client.post(reverse("admin:studies_paymentrun_verdict", args=[run.pk, payment.pk, "reject"])).status_code == 403
    )
    assert client.post(deed("unpaid", run)).status_code == 403
    assert client.post(deed("unseen", run)).status_code == 403
    client.force_login(account("studies.view_study", name="looks"))
    assert client.get(overview(published)).status_code == 403
    assert client.post(deed("withdraw", run)).status_code == 403
    assert Client().get(overview(published)).status_code == 302
    run.refresh_from_db()
    assert run.confirmed_at is None


def test_looking_changes_nothing(client, payer, published, people):
    prepare = reverse("admin:studies_paymentrun_prepare", args=[published.study_id])
    assert client.get(prepare).status_code == 405
    prepared(client, published)
    run = PaymentRun.objects.get()
    for name in ("confirm", "withdraw", "unpaid", "unseen"):
        assert client.get(deed(name, run)).status_code == 405


def test_a_rejection_is_written_on_the_page_and_can_be_taken_back(client, payer, published, people):
    page = prepared(client, published).content.decode()
    assert page.count("Reject instead</summary>") == 1  # only who failed two checks
    run = PaymentRun.objects.get()
    first, second = run.payments.filter(way=Way.APPROVE)
    address = reverse("admin:studies_paymentrun_verdict", args=[run.pk, second.pk, "reject"])
    said = text_of(client.post(address, {"category": "FAILED_CHECK", "message": "Too short"}, follow=True))
    assert "has 9 characters; Prolific wants at least 100" in said
    said = text_of(client.post(address, {"category": "FAILED_CHECK", "message": MESSAGE}, follow=True))
    assert f"Failed attention checks: “{MESSAGE}”" in said
    assert "They get GBP 1.78" in said
    other = reverse("admin:studies_paymentrun_verdict", args=[run.pk, first.pk, "reject"])
    said = text_of(client.post(other, {"category": "FAILED_CHECK", "message": MESSAGE}, follow=True))
    assert "0 attention checks failed" in said
    back = reverse("admin:studies_paymentrun_verdict", args=[run.pk, second.pk, "approve"])
    assert "They get GBP 3.43" in text_of(client.post(back, follow=True))
    assert client.post(reverse("admin:studies_paymentrun_verdict", args=[run.pk, second.pk, "gone"])).status_code == 404


def test_what_was_read_before_a_change_is_not_confirmed(client, payer, fake, published, people):
    response = prepared(client, published)
    run = PaymentRun.objects.get()
    payment = run.payments.filter(way=Way.APPROVE).last()
    address = reverse("admin:studies_paymentrun_verdict", args=[run.pk, payment.pk, "reject"])
    client.post(address, {"category": "LOW_EFFORT", "message": MESSAGE})
    assert "changed since you opened it" in text_of(confirm(client, response, run))
    run.refresh_from_db()
    assert run.confirmed_at is None


def test_a_withdrawn_run_leaves_everything_due(client, payer, published, people):
    response = prepared(client, published)
    run = PaymentRun.objects.get()
    assert "Withdrawn. Nothing was paid" in text_of(client.post(deed("withdraw", run), follow=True))
    assert "has been withdrawn" in text_of(confirm(client, response, run))
    assert "GBP 3.43 for 4 people" in text_of(client.get(overview(published)))


def test_unclear_bonuses_are_put_before_a_person(
    client, payer, fake, published, people, django_capture_on_commit_callbacks
):
    response = prepared(client, published)
    run = PaymentRun.objects.get()
    fake.fail(Fault.LOST_BEFORE_ACTING, "bulk-bonus-payments", times=1)
    with django_capture_on_commit_callbacks(execute=True):
        assert "1 bonus paid?" not in text_of(confirm(client, response, run))
    run.batches.update(pay_requested_at=timezone.now() - timedelta(hours=2))
    page = text_of(client.get(reverse("admin:studies_paymentrun_change", args=[run.pk])))
    assert "Was 1 bonus paid?" in page
    assert "Being carried out" in page
    assert "Nothing is unclear any more" in text_of(client.post(deed("unpaid", run), {"seen": "0"}, follow=True))
    unclear = run.payments.get(way=Way.BONUS).pk
    said = text_of(client.post(deed("unpaid", run), {"seen": [unclear]}, follow=True))
    assert "1 bonus noted as not paid: due again, in a new run." in said
    assert "Not paid, said payer: Prolific showed no such bonus." in said
    assert "People 3 They get GBP 3.30" in said
    assert "GBP 0.13 for 1 person" in text_of(client.get(overview(published)))


def test_what_was_taken_on_and_then_refused_can_be_given_up(
    client, payer, fake, published, people, monkeypatch, django_capture_on_commit_callbacks
):
    """Prolific says yes to two approvals, does neither, and says no ever after."""
    response = prepared(client, published)
    run = PaymentRun.objects.get()
    with monkeypatch.context() as patched, django_capture_on_commit_callbacks(execute=True):
        patched.setattr("scooter_site.demo.fake_prolific.submissions._approve", lambda world, submission: None)
        page = text_of(confirm(client, response, run))
    assert "not shown" not in page
    approvals = run.payments.filter(way=Way.APPROVE)
    approvals.update(claimed_at=timezone.now() - timedelta(hours=2))

    def refuse(*_: object) -> None:
        raise Refused("approving", status=400, text="Not now, not ever.")

    with monkeypatch.context() as patched:
        patched.setattr(ProlificClient, "approve", refuse)
        patched.setattr(ProlificClient, "transition_submission", refuse)
        execute(run.pk)
    assert list(approvals.values_list("state", "error")) == [("sent", "Not now, not ever.")] * 2
    page = client.get(reverse("admin:studies_paymentrun_change", args=[run.pk]))
    assert "2 approvals or rejections not shown" in text_of(page)
    first, second = page.context["unseen"]
    assert "There is none any more" in text_of(client.post(deed("unseen", run), follow=True))
    assert "1 given up" in text_of(client.post(deed("unseen", run), {"seen": [first]}, follow=True))
    run.refresh_from_db()
    assert run.finished_at is None
    said = text_of(client.post(deed("unseen", run), {"seen": [first, second]}, follow=True))
    assert "Given up by payer: Prolific did not show it. Not now, not ever." in said
    run.refresh_from_db()
    assert (run.finished_at is None, run.error) == (False, "")
    # Due again, and paid once.
    execute(confirmed_run(published, payer).pk)
    assert paid_by_submission(fake) == {session(people[0]): [165], session(people[1]): [165], session(people[2]): [13]}


def test_the_list_and_unknown_runs(client, payer, published, people, django_assert_max_num_queries):
    prepared(client, published)
    with django_assert_max_num_queries(12):
        page = text_of(client.get(reverse("admin:studies_paymentrun_changelist")))
    assert f"Payment run {PaymentRun.objects.get().pk}" in page
    assert client.get(reverse("admin:studies_paymentrun_change", args=[999])).status_code == 404
    assert client.get(reverse("admin:studies_paymentrun_change", args=["x"])).status_code == 404


def test_the_page_of_a_large_run_takes_no_more_queries(client, payer, fake, published, django_assert_max_num_queries):
    for _ in range(12):
        completed(fake, published)
    recruitment_sync.read_panel_study(published.pk)
    prepared(client, published)
    run = PaymentRun.objects.get()
    assert Payment.objects.count() == 12
    with django_assert_max_num_queries(14):
        client.get(reverse("admin:studies_paymentrun_change", args=[run.pk]))
