from django.conf import settings
from django.db import models
from django.db.models import Q

from studies.flow import Step
from studies.models.participation import Participation

LONGEST_MESSAGE = 2000


class ParticipantMessage(models.Model):
    """A participant's question to the researchers, and their answer, which the participant's own pages show.

    Asks for no name and no address: the participation is the way back to whoever wrote it.
    """

    participation = models.ForeignKey(Participation, on_delete=models.CASCADE, related_name="messages")
    step = models.CharField(
        max_length=15, choices=[(step.value, step.label) for step in Step], help_text="Where the participant was."
    )
    text = models.TextField(max_length=LONGEST_MESSAGE)
    sent_at = models.DateTimeField(auto_now_add=True)
    answer = models.TextField(max_length=LONGEST_MESSAGE, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    answer_read_at = models.DateTimeField(
        "read", null=True, blank=True, help_text="When the participant's own page first showed them this answer."
    )
    done_at = models.DateTimeField(null=True, blank=True, help_text="Nothing more is to be done about it.")

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["participation"], name="message_waiting", condition=Q(answered_at=None) & Q(done_at=None)
            )
        ]
        constraints = [
            models.CheckConstraint(
                name="answered_message_has_answer_and_time",
                condition=(Q(answer="") & Q(answered_at__isnull=True)) | (~Q(answer="") & Q(answered_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="only_an_answer_is_read", condition=Q(answer_read_at__isnull=True) | Q(answered_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"message of {self.participation}"

    @property
    def has_new_answer(self) -> bool:
        """Whether there is an answer that the participant has not seen."""
        return self.answered_at is not None and self.answer_read_at is None
