"""Having Prolific tell us what changes there."""

from django.utils import timezone

from studies.models import Workspace
from studies.services.recruitment import client_of

# Of the types that the service has, those that something here depends on.
WEBHOOK_EVENTS = ("submission.status.change", "study.status.change")


def set_up_webhooks(workspace: Workspace, target_url: str) -> None:
    """Have the workspace tell ``target_url`` what changes, signed with a new secret. May be called again.

    The secret is stored before anything is subscribed, so that no event comes that could not be believed.
    """
    # Cleared first: a new secret voids the one that we have, even if the answer with it is lost.
    workspace.webhooks_set_up_at = None
    workspace.save(update_fields=["webhooks_set_up_at"])
    with client_of(workspace) as client:
        workspace.webhook_secret = client.new_webhook_secret(workspace.workspace_id)
        workspace.save(update_fields=["encrypted_webhook_secret"])
        there = client.webhook_subscriptions(workspace.workspace_id)
        told = {one.event_type for one in there if one.target_url == target_url and one.is_enabled}
        for event_type in WEBHOOK_EVENTS:
            if event_type not in told:
                client.subscribe(workspace.workspace_id, event_type, target_url)
    workspace.webhooks_set_up_at = timezone.now()
    workspace.save(update_fields=["webhooks_set_up_at"])
