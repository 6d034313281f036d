"""Questions of participants to the researchers, and the answers to them."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from studies.models import ParticipantMessage
from studies.models.messages import LONGEST_MESSAGE
from studies.services.pointer import InvalidAnswer, locked_participation

# Enough for somebody in trouble, too few to bury the questions of others.
MESSAGES_PER_HOUR = 5
MESSAGES_IN_ALL = 30
# A form that is sent twice, by a double click or a reload.
REPEATED_WITHIN = timedelta(minutes=10)


class TooManyMessages(Exception):
    """This participant has written as much as they may for now."""


def send_message(participation_id: int, text: str) -> ParticipantMessage:
    """Keep a question, with the step it was asked at. The same text sent twice is one question.

    Raises InvalidAnswer for a text that is empty or too long, and TooManyMessages.
    """
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > LONGEST_MESSAGE or "\0" in text:
        raise InvalidAnswer(f"A message has between 1 and {LONGEST_MESSAGE} characters.")
    with transaction.atomic():
        # Locked, so that messages that arrive together are counted one after the other.
        participation = locked_participation(participation_id)
        now = timezone.now()
        sent = list(participation.messages.order_by("-id")[:MESSAGES_IN_ALL])
        if sent and sent[0].text == text and sent[0].sent_at > now - REPEATED_WITHIN:
            return sent[0]
        lately = [message for message in sent if message.sent_at > now - timedelta(hours=1)]
        if len(lately) >= MESSAGES_PER_HOUR or len(sent) >= MESSAGES_IN_ALL:
            raise TooManyMessages
        return ParticipantMessage.objects.create(participation=participation, step=participation.step, text=text)


def answer_message(message_id: int, text: str, answered_by: User) -> ParticipantMessage:
    """Show the participant ``text`` as the answer; in place of an earlier one. Raises InvalidAnswer."""
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > LONGEST_MESSAGE:
        raise InvalidAnswer(f"An answer has between 1 and {LONGEST_MESSAGE} characters.")
    with transaction.atomic():
        message = ParticipantMessage.objects.select_for_update(of=("self",)).get(pk=message_id)
        if message.answer != text:
            message.answer, message.answered_at, message.answered_by = text, timezone.now(), answered_by
            message.answer_read_at = None
            message.save(update_fields=["answer", "answered_at", "answered_by", "answer_read_at"])
    return message


def note_answers_read(participation_id: int) -> None:
    """Note that the participant has been shown every answer there is."""
    unread = ParticipantMessage.objects.filter(
        participation=participation_id, answered_at__isnull=False, answer_read_at=None
    )
    unread.update(answer_read_at=timezone.now())


def set_done(message_ids: list[int], *, done: bool) -> int:
    """Note that nothing more is to be done about these messages, or that there is; how many changed."""
    messages = ParticipantMessage.objects.filter(pk__in=message_ids, done_at__isnull=done)
    return messages.update(done_at=timezone.now() if done else None)
