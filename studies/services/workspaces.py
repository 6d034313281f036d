"""Whether a workspace here can be used there."""

from studies.models import Workspace
from studies.services.recruitment import RecruitmentError, client_of


def check_access(workspace: Workspace) -> None:
    """Ask Prolific whose token it is, and whether it may use this workspace.

    Raises RecruitmentError, or ProlificError: NotAllowed where Prolific does not know the token.
    """
    with client_of(workspace) as client:
        account = client.account()
        ids = {str(one["id"]) for one in client.workspaces()}
    if workspace.workspace_id not in ids:
        raise RecruitmentError("Prolific knows the token, but not for a workspace with this id.")
    currency = account.get("currency_code")
    if currency and currency != workspace.currency:
        raise RecruitmentError(f"The token's account pays in {currency}, and this workspace in {workspace.currency}.")
