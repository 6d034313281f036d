"""Where Prolific tells us that something has changed."""

import json
import logging

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from scooter_site.common.encryption import CannotDecrypt
from scooter_site.common.tasks import enqueue
from studies import tasks
from studies.models import WebhookEvent, Workspace
from studies.recruitment.webhooks import signature_is_good
from studies.services.recruitment_sync import keep_event

logger = logging.getLogger(__name__)

LONGEST_BODY = 64 * 1024


@csrf_exempt  # no browser of ours sends this; the signature says who does
@require_POST
def prolific_webhook(request: HttpRequest, key: str) -> HttpResponse:
    """Keep the event and answer; a worker reads what it is about. 401 for a bad signature, 400 for a bad body."""
    workspace = get_object_or_404(Workspace, webhook_key=key)
    if int(request.headers.get("Content-Length") or 0) > LONGEST_BODY:
        return JsonResponse({"error": "The body is too large."}, status=413)
    try:
        secret = workspace.webhook_secret
    except CannotDecrypt:
        logger.error("The webhook secret of %s cannot be read: set the webhooks up again", workspace)  # noqa: TRY400
        return JsonResponse({"error": "Webhooks have to be set up again."}, status=401)
    if not signature_is_good(
        secret,
        timestamp=request.headers.get("X-Prolific-Request-Timestamp", ""),
        body=request.body,
        signature=request.headers.get("X-Prolific-Request-Signature", ""),
        now=timezone.now(),
    ):
        return JsonResponse({"error": "The signature does not fit."}, status=401)
    event = _event(request, workspace)
    if event is None:
        return JsonResponse({"error": "Not an event: event_type, resource_id and X-Event-ID are needed."}, status=400)
    if (event_pk := keep_event(event)) is not None:
        enqueue(tasks.process_webhook_event, event_pk)
    return HttpResponse(status=204)


def _event(request: HttpRequest, workspace: Workspace) -> WebhookEvent | None:
    try:
        payload = json.loads(request.body)
    except ValueError:
        return None
    event_id = request.headers.get("X-Event-ID", "")
    if not isinstance(payload, dict) or not event_id:
        return None
    fields = {name: str(payload.get(name) or "") for name in ("event_type", "resource_id")}
    if not fields["event_type"] or not fields["resource_id"]:
        return None
    return WebhookEvent(
        workspace=workspace,
        event_id=event_id[:100],
        event_type=fields["event_type"][:60],
        resource_id=fields["resource_id"][:64],
    )
