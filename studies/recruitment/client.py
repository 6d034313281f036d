"""Prolific's API as functions: thin and typed. Paths, fields and what may be repeated are as in its OpenAPI document.

Every function raises a ``ProlificError``. What is uncertain about the service is decided here and in ``payloads`` and
nowhere else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Self, TypeVar

from studies.recruitment.answers import (
    BonusBatch,
    PanelFilter,
    PanelStudyState,
    SubmissionState,
    WebhookSubscription,
    identifier,
    whole,
)
from studies.recruitment.errors import ProlificError
from studies.recruitment.http import Connection, Repeat, understood
from studies.recruitment.money import bonus_line
from studies.recruitment.payloads import MOST_APPROVALS, MOST_BONUSES, rejection_problems

Value = TypeVar("Value")


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
        return self._get("reading the account", "/api/v1/users/me/", dict)

    def workspaces(self) -> Iterator[Mapping[str, Any]]:
        """Workspaces the account may use: ``id``, ``title``, ..."""
        return self._connection.rows("listing workspaces", "/api/v1/workspaces/", dict)

    # --- Filters and cost -------------------------------------------------------------------------------------

    def filters(self, workspace_id: str) -> list[PanelFilter]:
        """All prescreeners, with their choices."""
        path, params = "/api/v1/filters/", {"workspace_id": workspace_id}
        return list(self._connection.rows("listing filters", path, PanelFilter.read, params=params, key="filter_id"))

    def eligible_count(self, filters: Sequence[Mapping[str, Any]], workspace_id: str) -> int:
        """How many people the filters let in; 0 means fewer than 25."""
        body = {"filters": list(filters), "workspace_id": workspace_id}
        path = "/api/v1/eligibility-count/"
        return self._post("counting who is eligible", path, body, lambda answer: whole(answer["count"]), Repeat.SAFE)

    def cost_minor(self, reward_minor: int, places: int) -> int:
        """What all places cost with fees and VAT, in minor units."""
        body = {"reward": reward_minor, "total_available_places": places}
        path = "/api/v1/study-cost-calculator/"
        return self._post("estimating the cost", path, body, lambda answer: whole(answer["total_cost"]), Repeat.SAFE)

    # --- Studies ----------------------------------------------------------------------------------------------

    def create_study(self, payload: Mapping[str, Any]) -> PanelStudyState:
        """A draft; nobody sees it before it is published. Ambiguous where it may have been created."""
        return self._post("creating the study", "/api/v1/studies/", payload, PanelStudyState.read, Repeat.IF_NOT_DONE)

    def studies(self, project_id: str = "") -> Iterator[PanelStudyState]:
        """All studies of a project, or of the account; to find one whose creation was answered by nothing."""
        path = f"/api/v1/projects/{project_id}/studies/" if project_id else "/api/v1/studies/"
        return self._connection.rows("listing studies", path, PanelStudyState.read, by_page=True)

    def study(self, study_id: str) -> PanelStudyState:
        return self._get("reading the study", f"/api/v1/studies/{study_id}/", PanelStudyState.read)

    def update_study(self, study_id: str, changes: Mapping[str, Any]) -> PanelStudyState:
        """Set fields. Of a published study: places (only up), codes' slots, internal name, submissions_config."""
        path = f"/api/v1/studies/{study_id}/"
        return self._connection.ask("changing the study", "PATCH", path, PanelStudyState.read, json=dict(changes))

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
        return self._connection.rows(
            "listing submissions",
            "/api/v1/submissions/",
            lambda row: SubmissionState.read(row, study_id=study_id),
            params={"study": study_id},
            by_page=True,
        )

    def submission(self, submission_id: str) -> SubmissionState:
        return self._get("reading a submission", f"/api/v1/submissions/{submission_id}/", SubmissionState.read)

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
        path = "/api/v1/submissions/bonus-payments/"
        return self._post("setting up bonuses", path, body, BonusBatch.read, Repeat.NEVER)

    def pay_bonuses(self, batch_id: str) -> None:
        """Pay a batch. A second call pays a second time, so it is sent once and never again, whatever the answer.

        Returns when the service has taken it on (it pays later); TooManyRequests, Unavailable and Refused mean that
        it has not paid; after Ambiguous nobody knows before the submissions' own bonuses have been read.
        """
        path = f"/api/v1/bulk-bonus-payments/{batch_id}/pay/"
        self._tell("paying bonuses", path, None, Repeat.NEVER)

    # --- Webhooks ---------------------------------------------------------------------------------------------

    def new_webhook_secret(self, workspace_id: str) -> str:
        """The key of the signatures; the workspace's earlier one is void from now on."""
        body, path = {"workspace_id": workspace_id}, "/api/v1/hooks/secrets/"
        return self._post(
            "making a webhook secret", path, body, lambda answer: identifier(answer["value"]), Repeat.IF_NOT_DONE
        )

    def webhook_subscriptions(self, workspace_id: str) -> list[WebhookSubscription]:
        path, params = "/api/v1/hooks/subscriptions/", {"workspace_id": workspace_id}
        return list(self._connection.rows("listing webhooks", path, WebhookSubscription.read, params=params))

    def subscribe(self, workspace_id: str, event_type: str, target_url: str) -> None:
        """Have ``target_url`` told of events; the subscription is confirmed with the secret that its answer carries."""
        operation, path = "subscribing to webhooks", "/api/v1/hooks/subscriptions/"
        body = {"workspace_id": workspace_id, "event_type": event_type, "target_url": target_url}
        response = self._connection.request(operation, "POST", path, repeat=Repeat.IF_NOT_DONE, json=body)
        subscription_id = understood(operation, response, lambda answer: identifier(answer["id"]), Repeat.IF_NOT_DONE)
        secret = response.headers.get("X-Hook-Secret")
        if not secret:
            raise ProlificError(operation, text="The answer has no X-Hook-Secret, so it cannot be confirmed.")
        self._tell("confirming a webhook", f"{path}{subscription_id}/", {"secret": secret}, Repeat.SAFE)

    # --- Requests ---------------------------------------------------------------------------------------------

    def _get(self, operation: str, path: str, read: Callable[[Mapping[str, Any]], Value]) -> Value:
        return self._connection.ask(operation, "GET", path, read)

    def _post(
        self, operation: str, path: str, body: Any, read: Callable[[Mapping[str, Any]], Value], repeat: Repeat
    ) -> Value:
        return self._connection.ask(operation, "POST", path, read, repeat=repeat, json=body)

    def _tell(self, operation: str, path: str, body: Any, repeat: Repeat) -> None:
        """Without reading a good answer's body: whatever it says, it must not turn what was done into a failure."""
        self._connection.request(operation, "POST", path, repeat=repeat, json=body)
