"""What the tests of participations share."""

from datetime import timedelta

from django.utils import timezone

from studies.models import Participation, ParticipationKind

REAL, TEST, PREVIEW = ParticipationKind.REAL, ParticipationKind.TEST, ParticipationKind.PREVIEW


def expire_lease(participation):
    Participation.objects.filter(pk=participation.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
