"""Prolific's API as functions: thin and typed. Paths, fields and what may be repeated are as in its OpenAPI document.

Every function raises a ``ProlificError``. What is uncertain about the service is decided here and in ``payloads`` and
nowhere else.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Self

import httpx

from studies.recruitment.answers import (
    BonusBatch,
    PanelFilter,
    PanelStudyState,
    SubmissionState,
    WebhookSubscription,
)
from studies.recruitment.errors import ProlificError
from studies.recruitment.http import Connection, Repeat
from studies.recruitment.money import bonus_line
from studies.recruitment.payloads import MOST_APPROVALS, MOST_BONUSES, rejection_problems


class ProlificClient:
    """One workspace's access. Use as a context manager; arguments as for ``Connection``."""

    def __init__(self, token: str, *, base_url: str, **options: Any) -> None:
        self._connection = Connection(token, base_url=base_url, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    # --- Account ----------------------------------------------------------------------------------------------

    def account(self) -> Mapping[str, Any]:
        """Whose token it is: the cheapest way to find out whether it works."""
        return self._get("reading the account", "/api/v1/users/me/")

    def workspaces(self) -> Iterator[Mapping[str, Any]]:
        """Workspaces the account may use: ``id``, ``title``, ..."""
        return self._connection.rows("listing workspaces", "/api/v1/workspaces/")

    # --- Filters and cost -------------------------------------------------------------------------------------

    def filters(self, workspace_id: str) -> list[PanelFilter]:
        """All prescreeners, with their choices."""
        rows = self._connection.rows(
            "listing filters", "/api/v1/filters/", params={"workspace_id": workspace_id}, key="filter_id"
        )
        return [PanelFilter.read(row) for row in rows]

    def eligible_count(self, filters: Sequence[Mapping[str, Any]], workspace_id: str) -> int:
        """How many people the filters let in; 0 means fewer than 25."""
        body = {"filters": list(filters), "workspace_id": workspace_id}
        answer = self._post("counting who is eligible", "/api/v1/eligibility-count/", body, Repeat.SAFE)
        return int(answer["count"])

    def cost_minor(self, reward_minor: int, places: int) -> int:
        """What all places cost with fees and VAT, in minor units."""
        body = {"reward": reward_minor, "total_available_places": places}
        answer = self._post("estimating the cost", "/api/v1/study-cost-calculator/", body, Repeat.SAFE)
        return int(answer["total_cost"])

    # --- Studies ----------------------------------------------------------------------------------------------

    def create_study(self, payload: Mapping[str, Any]) -> PanelStudyState:
        """A draft; nobody sees it before it is published. Ambiguous where it may have been created."""
        answer = self._post("creating the study", "/api/v1/studies/", payload, Repeat.IF_NOT_DONE)
        return PanelStudyState.read(answer)

    def studies(self, project_id: str = "") -> Iterator[PanelStudyState]:
        """All studies of a project, or of the account; to find one whose creation was answered by nothing."""
        path = f"/api/v1/projects/{project_id}/studies/" if project_id else "/api/v1/studies/"
        return map(PanelStudyState.read, self._connection.rows("listing studies", path, by_page=True))

    def study(self, study_id: str) -> PanelStudyState:
        return PanelStudyState.read(self._get("reading the study", f"/api/v1/studies/{study_id}/"))

    def update_study(self, study_id: str, changes: Mapping[str, Any]) -> PanelStudyState:
        """Set fields. Of a published study: places (only up), codes' slots, internal name, submissions_config."""
        operation = "changing the study"
        answer = self._connection.request(
            operation, "PATCH", f"/api/v1/studies/{study_id}/", repeat=Repeat.SAFE, json=dict(changes)
        )
        return PanelStudyState.read(_body(operation, answer))

    def transition_study(self, study_id: str, action: str) -> None:
        """PUBLISH, PAUSE, START or STOP. Ambiguous where it may have been done: read the study."""
        self._tell(
            f"asking to {action.lower()} the study",
            f"/api/v1/studies/{study_id}/transition/",
            {"action": action},
            Repeat.IF_NOT_DONE,
        )

    # --- Submissions ------------------------------------------------------------------------------------------

    def submissions(self, study_id: str) -> Iterator[SubmissionState]:
        """All submissions of a study; without their bonuses."""
        rows = self._connection.rows(
            "listing submissions", "/api/v1/submissions/", params={"study": study_id}, by_page=True
        )
        return (SubmissionState.read(row, study_id=study_id) for row in rows)

    def submission(self, submission_id: str) -> SubmissionState:
        return SubmissionState.read(self._get("reading a submission", f"/api/v1/submissions/{submission_id}/"))

    def submission_counts(self, study_id: str) -> dict[str, int]:
        """Submissions by the service's own word for their state, and ``TOTAL``."""
        answer = self._get("counting submissions", f"/api/v1/studies/{study_id}/submissions/counts/")
        return {str(status): int(count) for status, count in answer.items()}

    def approve(self, submission_ids: Sequence[str]) -> None:
        """Approve up to 1,000 submissions, which pays their reward. Asynchronous; approving twice pays once."""
        if not 1 <= len(submission_ids) <= MOST_APPROVALS:
            raise ValueError(f"{len(submission_ids)} approvals in one request: Prolific takes 1 to {MOST_APPROVALS}.")
        self._tell(
            "approving submissions",
            "/api/v1/submissions/bulk-approve/",
            {"submission_ids": list(submission_ids)},
            Repeat.SAFE,
        )

    def transition_submission(self, submission_id: str, action: str, **fields: Any) -> None:
        """APPROVE, COMPLETE, RETURN, SCREEN_OUT, UNREJECT, ...; to reject there is ``reject``. Idempotent."""
        self._tell(
            f"asking to {action.lower()} a submission",
            f"/api/v1/submissions/{submission_id}/transition/",
            {"action": action, **fields},
            Repeat.SAFE,
        )

    def reject(self, submission_id: str, *, category: str, message: str) -> None:
        """Reject, which pays nothing. Raises ValueError, before any request, where the service would refuse it."""
        if problems := rejection_problems(category, message):
            raise ValueError(" ".join(problems))
        self.transition_submission(submission_id, "REJECT", rejection_category=category, message=message)

    def request_return(self, submission_id: str, reasons: Sequence[str]) -> None:
        """Ask the participant to return the submission, which they need not do. Every request is a message to them."""
        self._tell(
            "asking for a return",
            f"/api/v1/submissions/{submission_id}/request-return/",
            {"request_return_reasons": list(reasons)},
            Repeat.IF_NOT_DONE,
        )

    # --- Bonuses ----------------------------------------------------------------------------------------------

    def set_up_bonuses(self, study_id: str, amounts_major: Sequence[tuple[str, Decimal]]) -> BonusBatch:
        """Prepare bonuses for up to 200 (submission id, amount in pounds); pays nothing yet.

        Never repeated by itself: two batches that were set up could both be paid.
        """
        if not 1 <= len(amounts_major) <= MOST_BONUSES:
            raise ValueError(f"{len(amounts_major)} bonuses in one request: Prolific takes 1 to {MOST_BONUSES}.")
        recipients = [recipient for recipient, _ in amounts_major]
        if len(set(recipients)) < len(recipients):
            raise ValueError("A submission stands twice among the bonuses of one request.")
        body = {
            "study_id": study_id,
            "csv_bonuses": "\n".join(bonus_line(recipient, amount) for recipient, amount in amounts_major),
        }
        answer = self._post("setting up bonuses", "/api/v1/submissions/bonus-payments/", body, Repeat.NEVER)
        return BonusBatch(
            id=str(answer["id"]),
            amount_minor=int(answer["amount"]),
            fees_minor=int(answer["fees"]),
            vat_minor=int(answer["vat"]),
            total_minor=int(answer["total_amount"]),
        )

    def pay_bonuses(self, batch_id: str) -> None:
        """Pay a batch. A second call pays a second time, so it is sent once and never again, whatever the answer.

        Returns when the service has taken it on (it pays later); TooManyRequests, Unavailable and Refused mean that
        it has not paid; after Ambiguous nobody knows before the submissions' own bonuses have been read.
        """
        path = f"/api/v1/bulk-bonus-payments/{batch_id}/pay/"
        self._tell("paying bonuses", path, None, Repeat.NEVER)

    # --- Webhooks ---------------------------------------------------------------------------------------------

    def webhook_event_types(self) -> list[str]:
        answer = self._get("listing event types", "/api/v1/hooks/event-types/")
        rows: Any = answer if isinstance(answer, list) else answer.get("results", [])
        return [str(row if isinstance(row, str) else row["event_type"]) for row in rows]

    def new_webhook_secret(self, workspace_id: str) -> str:
        """The key of the signatures; the workspace's earlier one is void from now on."""
        body = {"workspace_id": workspace_id}
        return str(self._post("making a webhook secret", "/api/v1/hooks/secrets/", body, Repeat.IF_NOT_DONE)["value"])

    def webhook_subscriptions(self, workspace_id: str) -> list[WebhookSubscription]:
        rows = self._connection.rows(
            "listing webhooks", "/api/v1/hooks/subscriptions/", params={"workspace_id": workspace_id}
        )
        return [
            WebhookSubscription(
                id=str(row["id"]),
                event_type=str(row["event_type"]),
                target_url=str(row["target_url"]),
                is_enabled=bool(row.get("is_enabled")),
            )
            for row in rows
        ]

    def subscribe(self, workspace_id: str, event_type: str, target_url: str) -> None:
        """Have ``target_url`` told of events; the subscription is confirmed with the secret that its answer carries."""
        operation = "subscribing to webhooks"
        response = self._connection.request(
            operation,
            "POST",
            "/api/v1/hooks/subscriptions/",
            repeat=Repeat.IF_NOT_DONE,
            json={"workspace_id": workspace_id, "event_type": event_type, "target_url": target_url},
        )
        secret = response.headers.get("X-Hook-Secret")
        if not secret:
            raise ProlificError(operation, text="The answer has no X-Hook-Secret, so it cannot be confirmed.")
        self._post(
            "confirming a webhook",
            f"/api/v1/hooks/subscriptions/{response.json()['id']}/",
            {"secret": secret},
            Repeat.SAFE,
        )

    # --- Requests ---------------------------------------------------------------------------------------------

    def _get(self, operation: str, path: str) -> Mapping[str, Any]:
        return _body(operation, self._connection.request(operation, "GET", path, repeat=Repeat.SAFE))

    def _post(self, operation: str, path: str, body: Any, repeat: Repeat) -> Mapping[str, Any]:
        return _body(operation, self._connection.request(operation, "POST", path, repeat=repeat, json=body))

    def _tell(self, operation: str, path: str, body: Any, repeat: Repeat) -> None:
        """Without reading a good answer's body: whatever it says, it must not turn what was done into a failure."""
        self._connection.request(operation, "POST", path, repeat=repeat, json=body)


def _body(operation: str, response: httpx.Response) -> Mapping[str, Any]:
    """The JSON of a good answer; {} where it has none."""
    if not response.content:
        return {}
    try:
        body: Mapping[str, Any] = response.json()
    except ValueError:
        raise ProlificError(operation, status=response.status_code, text="The answer is no JSON.") from None
    return body
