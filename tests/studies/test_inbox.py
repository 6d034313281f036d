"""Questions of participants: sent from their pages, answered in the admin, read under the same link."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils import timezone

from scooter_site.common.admin_tools import change_url
from studies.flow import Step
from studies.models import ParticipantMessage, Participation, ParticipationKind, Study
from studies.selectors.messages import message_counts, waiting_messages
from studies.services import messages as service
from studies.services.messages import TooManyMessages, answer_message, send_message, set_done
from studies.services.pointer import InvalidAnswer
from tests import factories, walks
from tests.studies.admin_pages import account, text_of
from tests.studies.visitor import WINDOW, Visitor, assert_notice

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
INBOX = "admin:studies_participantmessage_changelist"


def write(visitor, text):
    return visitor.client.post(visitor.address("contact"), {"text": text})


@pytest.mark.parametrize("step", list(Step))
def test_every_page_leads_to_the_researchers(visitor, step):
    visitor.at(step)
    page = visitor.page().content.decode()
    assert f'href="{visitor.address("contact")}"' in page
    assert write(visitor, f"A question at {step}").status_code == 303
    message = ParticipantMessage.objects.get()
    assert (message.step, message.text) == (step, f"A question at {step}")
    assert message.participation == visitor.participation
    assert timezone.now() - message.sent_at < timedelta(minutes=1)


def test_the_study_goes_on_where_it_was(visitor):
    visitor.at(Step.MAIN)
    before = Participation.objects.values("step", "last_seen_at", "outcome", "dataset").get()
    write(visitor, "What does modified mean?")
    assert Participation.objects.values("step", "last_seen_at", "outcome", "dataset").get() == before
    page = text_of(visitor.client.get(visitor.address("contact"), {"sent": "1"}))
    assert "Your message has been sent." in page
    assert "What does modified mean? Not answered yet." in page


def test_the_answer_is_shown_under_the_same_link(visitor, client, researcher):
    visitor.land(id="anna")
    write(visitor, "How long does it take?")
    message = ParticipantMessage.objects.get()
    saved = client.post(change_url(message), {"answer": "About 13 minutes.\r\nTake your time.", "_save": "Save"})
    assert saved.status_code == 302
    message.refresh_from_db()
    assert (message.answer, message.answered_by) == ("About 13 minutes.\nTake your time.", researcher)

    assert "Read the researchers’ answer" in text_of(visitor.page())
    page = text_of(visitor.client.get(visitor.address("contact")))
    assert "About 13 minutes. Take your time." in page
    another = Visitor(visitor.study)
    another.land(id="bert")
    assert "About 13 minutes" not in text_of(another.client.get(another.address("contact")))
    assert "Contact the researchers" in text_of(another.page())


def test_an_answer_is_new_until_its_participant_has_seen_it(visitor, client, researcher):
    visitor.land(id="anna")
    write(visitor, "How long does it take?")
    contact = visitor.address("contact")
    visitor.client.get(contact)
    message = ParticipantMessage.objects.get()
    assert message.answer_read_at is None, "there is no answer yet"
    answer_message(message.pk, "About 13 minutes.", researcher)
    assert "Answered" in text_of(client.get(reverse(INBOX)))
    client.get(change_url(message))
    visitor.client.head(contact)
    assert "Read the researchers’ answer" in text_of(visitor.page()), "nobody has shown it to the participant"

    assert "New: The researchers answered on" in text_of(visitor.client.get(contact))
    message.refresh_from_db()
    assert timezone.now() - message.answer_read_at < timedelta(minutes=1)
    assert "New:" not in text_of(visitor.client.get(contact))
    assert "Contact the researchers" in text_of(visitor.page())
    assert "Read" in text_of(client.get(reverse(INBOX), {"state": "answered"}))
    assert "How long" not in text_of(client.get(reverse(INBOX), {"state": "unread"}))

    answer_message(message.pk, "About 15 minutes.", researcher)
    assert "Read the researchers’ answer" in text_of(visitor.page()), "a corrected answer is a new one"
    assert "How long" in text_of(client.get(reverse(INBOX), {"state": "unread"}))


def test_pages_that_stand_in_place_of_the_study_lead_to_the_researchers_too(visitor):
    """Of whom a session is known; nobody else could be answered."""
    link = f'href="{visitor.address("contact")}"'
    visitor.land()
    refused = visitor.post("consent", decision="accept", viewport_width="300", viewport_height="300")
    assert_notice(refused, "window_too_small", 400)
    assert link in refused.content.decode()
    Study.objects.update(status="closed")
    refused = visitor.post("consent", decision="accept", **WINDOW)
    assert_notice(refused, "closed", 403)
    assert link in refused.content.decode()
    assert link in visitor.land(session="0" * 32).content.decode()
    stranger = Visitor(visitor.study).land()
    assert_notice(stranger, "closed", 403)
    assert link not in stranger.content.decode()


def test_nothing_that_is_written_runs(visitor, client, researcher):
    visitor.at(Step.CONSENT)
    write(visitor, SCRIPT)
    message = ParticipantMessage.objects.get()
    answer_message(message.pk, SCRIPT, researcher)
    pages = [
        visitor.client.get(visitor.address("contact")),
        client.get(reverse(INBOX)),
        client.get(change_url(message)),
        client.get(change_url(message.participation)),
    ]
    for page in pages:
        assert page.status_code == 200
        assert "<script>alert(1)" not in page.content.decode()
        assert "<img src=x" not in page.content.decode()
        assert "alert(1)" in page.content.decode()


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "Please write your question first."), (" \n", "Please write your question first."), ("x" * 2001, "shorten")],
)
def test_an_empty_or_overlong_message_is_asked_for_again(visitor, text, problem):
    visitor.at(Step.CONSENT)
    page = write(visitor, text)
    assert page.status_code == 400
    assert problem in text_of(page)
    assert not ParticipantMessage.objects.exists()
    if text.strip():
        assert text in page.content.decode(), "nobody should have to write it again"


def test_a_line_break_counts_as_the_one_character_that_the_browser_counts(visitor):
    visitor.at(Step.CONSENT)
    text = "a\n" * 999 + "ab"
    assert len(text) == 2000
    assert write(visitor, text.replace("\n", "\r\n")).status_code == 303
    assert ParticipantMessage.objects.get().text == text


def test_a_form_sent_twice_is_one_question(visitor):
    visitor.at(Step.CONSENT)
    write(visitor, "Hello?")
    assert write(visitor, "Hello?").status_code == 303
    assert ParticipantMessage.objects.count() == 1
    ParticipantMessage.objects.update(sent_at=timezone.now() - timedelta(minutes=11))
    write(visitor, "Hello?")
    assert ParticipantMessage.objects.count() == 2


def test_only_so_many_in_an_hour_and_in_all(visitor, monkeypatch):
    participation = visitor.at(Step.CONSENT)
    for number in range(5):
        assert write(visitor, f"Question {number}").status_code == 303
    page = write(visitor, "Question 5")
    assert page.status_code == 429
    assert "Question 5" in page.content.decode()
    assert ParticipantMessage.objects.count() == 5
    ParticipantMessage.objects.update(sent_at=timezone.now() - timedelta(minutes=61))
    assert write(visitor, "Question 5").status_code == 303
    monkeypatch.setattr(service, "MESSAGES_IN_ALL", 6)
    with pytest.raises(TooManyMessages):
        send_message(participation.pk, "Question 6")


def test_somebody_without_a_session_is_told_how_to_get_one(study, client):
    page = client.post(reverse("studies:contact", args=[study.slug]), {"text": "Hello?"})
    assert_notice(page, "no_session", 403)
    assert not ParticipantMessage.objects.exists()


def test_the_page_asks_for_no_personal_details(prolific_study):
    visitor = Visitor(prolific_study)
    visitor.at(Step.CONSENT)
    page = visitor.client.get(visitor.address("contact"))
    assert "Please write no name, e-mail address or other personal details" in text_of(page)
    assert "use the messages of Prolific" in text_of(page)
    assert b'type="email"' not in page.content


def test_what_is_written_in_a_preview_reaches_nobody(study):
    preview = walks.enter(study, ParticipationKind.PREVIEW)
    send_message(preview.pk, "Just looking")
    assert waiting_messages().count() == 0
    assert message_counts(study) == (0, 0)


def test_the_inbox_says_what_waits(client, researcher):
    study = factories.running_study()
    participation = walks.enter(study)
    sent = [send_message(participation.pk, f"Question {number}") for number in range(4)]
    answer_message(sent[0].pk, "Yes.", researcher)
    set_done([sent[1].pk], done=True)
    assert message_counts(study) == (4, 2)
    page = text_of(client.get(reverse(INBOX)))
    for state in ("Waits for an answer", "Answered", "Done"):
        assert state in page
    for state, questions in {"waiting": [2, 3], "answered": [0], "done": [1]}.items():
        page = text_of(client.get(reverse(INBOX), {"state": state}))
        assert [number for number in range(4) if f"Question {number}" in page] == questions
    assert "mail Messages 2" in text_of(client.get(reverse("admin:index")))
    assert "Messages (2 waiting)" in text_of(client.get(change_url(study)))


def test_messages_are_put_aside_and_taken_up_again(client, researcher):
    participation = walks.enter(factories.running_study())
    sent = [send_message(participation.pk, f"Question {number}") for number in range(3)]
    bulk = {"action": "mark_done", "_selected_action": [message.pk for message in sent[:2]]}
    page = client.post(reverse(INBOX), bulk, follow=True)
    assert "2 messages marked as done." in text_of(page)
    assert [message.text for message in waiting_messages()] == ["Question 2"]
    client.post(change_url(sent[0]), {"answer": "", "_save": "Save"})
    assert waiting_messages().count() == 2
    client.post(change_url(sent[0]), {"answer": "", "is_done": "on", "_save": "Save"})
    assert waiting_messages().count() == 1


def test_an_answer_can_be_corrected_but_not_taken_away(client, researcher):
    message = send_message(walks.enter(factories.running_study()).pk, "When?")
    client.post(change_url(message), {"answer": "At noon.", "_save": "Save"})
    page = client.post(change_url(message), {"answer": " ", "_save": "Save"})
    assert "correct it, but do not empty it" in text_of(page)
    client.post(change_url(message), {"answer": "At one.", "_save": "Save"})
    message.refresh_from_db()
    assert message.answer == "At one."
    with pytest.raises(InvalidAnswer):
        answer_message(message.pk, "", researcher)


def test_who_may_only_look_at_messages_answers_none(client):
    message = send_message(walks.enter(factories.running_study()).pk, "When?")
    client.force_login(account("studies.view_participantmessage"))
    assert "When?" in text_of(client.get(change_url(message)))
    assert client.post(change_url(message), {"answer": "Now.", "_save": "Save"}).status_code == 403
    client.post(reverse(INBOX), {"action": "mark_done", "_selected_action": [message.pk]})
    message.refresh_from_db()
    assert (message.answer, message.done_at) == ("", None)


def test_who_may_not_see_messages_sees_none_and_no_number(client):
    participation = walks.enter(factories.running_study())
    message = send_message(participation.pk, "A private question")
    client.force_login(account("studies.view_study", "studies.view_participation"))
    assert client.get(reverse(INBOX)).status_code == 403
    assert client.get(change_url(message)).status_code == 403
    assert "private question" not in text_of(client.get(change_url(participation)))
    assert "waiting" not in text_of(client.get(change_url(participation.study)))
    assert "mail Messages" not in text_of(client.get(reverse("admin:index")))


def test_the_inbox_costs_the_same_for_2_and_for_20(client, researcher, django_assert_max_num_queries):
    def queries():
        with django_assert_max_num_queries(40) as captured:
            assert client.get(reverse(INBOX)).status_code == 200
        return len(captured)

    study = factories.running_study()
    for number in range(2):
        send_message(walks.enter(study).pk, f"Question {number}")
    few = queries()
    study.participations.update(outcome="", step="consent")
    participations = Participation.objects.bulk_create(Participation(study=study) for _ in range(18))
    for participation in participations:
        send_message(participation.pk, "Another")
    assert queries() == few


def test_messages_show_no_panel_ids(client, researcher):
    study = factories.running_study()
    message = send_message(walks.enter(study, participant_id="panel-person", session_id="s9").pk, "When?")
    for page in (client.get(reverse(INBOX)), client.get(change_url(message))):
        assert "panel-person" not in page.content.decode()
    assert Permission.objects.filter(codename="change_participantmessage", group__name="Researchers").exists()
    assert User.objects.get(pk=researcher.pk).has_perm("studies.change_participantmessage")
