"""The quality pages of researchers: what they show, who may decide, and what deciding answers."""

import pytest
from django.urls import reverse

from scooter_site.common.admin_tools import change_url
from studies.models import Decision, Participation
from studies.quality import DESCRIPTIONS
from tests import factories, walks
from tests.studies.admin_pages import account, text_of
from tests.studies.participations import TEST

pytestmark = pytest.mark.django_db


def quality_page(study, show=""):
    return reverse("admin:studies_study_quality", args=[study.pk]) + (f"?show={show}" if show else "")


def decide(client, participation, verdict, reason="Seen in the data", **fields):
    newest = Decision.objects.filter(participation=participation).last()
    body = {"verdict": verdict, "reason": reason, "seen": newest.pk if newest else "", **fields}
    answer = client.post(reverse("admin:studies_participation_decide", args=[participation.pk]), body, follow=True)
    participation.refresh_from_db()
    return answer


def said(answer):
    return [(message.level_tag, str(message)) for message in answer.context["messages"]]


def test_a_study_has_every_rule_with_threshold_and_counts_and_the_people_it_points_at(client, researcher, study):
    good, careless = walks.complete(study), walks.complete(study, failed_checks=1)
    page = text_of(client.get(quality_page(study)))
    for description in DESCRIPTIONS.values():
        assert description.label in page
        assert description.fair in page
    assert "Flagged by a rule 1" in page
    assert "Flagged (1) Not counting (1) Decided by a person (0) Everybody (2)" in page
    assert str(careless.public_id)[:8] in page
    assert str(good.public_id)[:8] not in page
    assert "Excluded by the policy" in page
    assert "Failed attention checks: 1 (threshold 0) (does not count since)" in page
    everybody = text_of(client.get(quality_page(study, "all")))
    assert str(good.public_id)[:8] in everybody
    assert "Nobody." in text_of(client.get(quality_page(study, "decided")))


def test_the_study_leads_to_its_quality_and_shows_the_policy_among_its_settings(client, researcher, study):
    page = client.get(change_url(study))
    assert quality_page(study) in page.content.decode()
    assert "Flag, a person decides" in text_of(page)


def test_a_researcher_excludes_includes_and_undoes_with_reasons(client, researcher, study):
    participation = walks.complete(study)
    page = text_of(client.get(change_url(participation)))
    assert "Nothing has been decided." in page
    assert "Reason for a decision" in page
    answer = decide(client, participation, "exclude", "Every answer in one second <b>")
    assert said(answer) == [
        ("success", "The ratings no longer count, and the place is free. Code and pay stay as they are.")
    ]
    assert not participation.is_valid
    page = text_of(answer)
    assert "Excluded by researcher: Every answer in one second <b> (does not count since)" in page
    assert b"second <b>" not in answer.content
    assert "Undo “excluded”" in page
    answer = decide(client, participation, "undo", "It was another person")
    assert participation.is_valid
    number = participation.dataset.number
    assert said(answer) == [("success", f"The ratings count. Set {number} has 1 of 2 valid participants.")]
    decision = Decision.objects.last()
    assert (decision.author, decision.reason) == (researcher, "It was another person")


def test_inclusion_beyond_the_plan_says_so(client, researcher):
    study = factories.running_study(buffer_percent=50)
    failed = walks.complete(study, failed_checks=1)
    for _ in range(4):
        walks.complete(study)
    answer = decide(client, failed, "include")
    expected = f"Set {failed.dataset.number} now has 3 valid participants where 2 were planned"
    assert expected in said(answer)[0][1]


def test_what_is_refused_is_a_message_and_changes_nothing(client, researcher, study):
    participation = walks.complete(study)
    assert said(decide(client, participation, "exclude", " ")) == [("error", "Say why: every decision has a reason.")]
    decide(client, participation, "exclude", "First")
    ((level, message),) = said(decide(client, participation, "exclude", "Second", seen=""))
    assert (level, "excluded by researcher, because “First”" in message) == ("error", True)
    assert Decision.objects.count() == 1


def exclude(client, study, ticked, reason="Too fast", **fields):
    address = reverse("admin:studies_study_exclude", args=[study.pk])
    return client.post(address, {"participation": ticked, "reason": reason, **fields}, follow=True)


def test_several_are_excluded_at_once_each_by_a_decision_of_its_own(client, researcher, study):
    first, second, kept = (walks.complete(study) for _ in range(3))
    page = client.get(quality_page(study, "all")).content.decode()
    boxes = [f"{each.pk}:" for each in (first, second)]
    assert all(f'value="{box}" form="exclude"' in page for box in boxes)
    answer = exclude(client, study, boxes, show="all")
    assert said(answer) == [
        ("success", "2 participants excluded, and the places are free. Codes and pay stay as they are.")
    ]
    assert answer.redirect_chain == [(quality_page(study, "all"), 302)]
    assert set(Participation.objects.filter(is_valid=True)) == {kept}
    rows = Decision.objects.order_by("id").values_list("participation", "verdict", "reason", "author")
    assert list(rows) == [(each.pk, "exclude", "Too fast", researcher.pk) for each in (first, second)]
    assert f'value="{first.pk}:' not in answer.content.decode(), "who does not count is not excluded again"


def test_of_several_only_those_are_excluded_about_whom_nothing_new_was_decided(client, researcher, study):
    stale, fresh = walks.complete(study), walks.complete(study)
    decide(client, stale, "exclude", "First")
    decide(client, stale, "undo", "Second thoughts")
    ((ok, done), (error, why)) = said(exclude(client, study, [f"{stale.pk}:", f"{fresh.pk}:"]))
    assert (ok, done.startswith("1 participant excluded"), error) == ("success", True, "error")
    assert why.startswith(f"{stale}: Nothing was done, for meanwhile something else was decided")
    stale.refresh_from_db()
    assert stale.is_valid
    newest = Decision.objects.filter(participation=stale).last().pk
    exclude(client, study, [f"{stale.pk}:{newest}"])
    stale.refresh_from_db()
    assert not stale.is_valid


@pytest.mark.parametrize("ticked", [[], ["x"], ["0:"], ["9" * 40], ["7:1:2"], ["-1:"]])
def test_what_was_not_ticked_excludes_nobody(client, researcher, study, ticked):
    other = walks.complete(factories.running_study())
    ((level, message),) = said(exclude(client, study, [*ticked, f"{other.pk}:"]))
    assert (level, message) == ("error", "Nobody was excluded: tick the participants first.")
    assert said(exclude(client, other.study, [f"{other.pk}:"], reason=" "))[0][1].endswith(
        "Say why: every decision has a reason."
    )
    assert Decision.objects.count() == 0


def test_only_who_may_decide_excludes_several(client, study):
    participation = walks.complete(study)
    for permissions in (["view_study", "view_participation"], ["decide_participation"]):
        client.force_login(account(*(f"studies.{name}" for name in permissions), name=permissions[0]))
        assert exclude(client, study, [f"{participation.pk}:"]).status_code == 403
    client.force_login(account("studies.view_study", "studies.view_participation", name="reader"))
    assert b'form="exclude"' not in client.get(quality_page(study, "all")).content
    assert client.get(reverse("admin:studies_study_exclude", args=[study.pk])).status_code in {403, 405}
    assert Participation.objects.get().is_valid


def test_deciding_needs_a_permission_of_its_own(client, study):
    participation = walks.complete(study)
    client.force_login(
        account("studies.view_study", "studies.view_participation", "studies.change_study", name="reader")
    )
    page = client.get(change_url(participation))
    assert "Quality and decisions" in text_of(page)
    assert "Reason for a decision" not in text_of(page)
    address = reverse("admin:studies_participation_decide", args=[participation.pk])
    assert client.post(address, {"verdict": "exclude", "reason": "x", "seen": ""}).status_code == 403
    client.force_login(account("studies.decide_participation", name="blind"))
    assert client.post(address, {"verdict": "exclude", "reason": "x", "seen": ""}).status_code == 403
    assert Participation.objects.get().is_valid


def test_the_quality_page_needs_sight_of_participants_and_a_link_decides_nothing(client, researcher, study):
    participation = walks.complete(study)
    address = reverse("admin:studies_participation_decide", args=[participation.pk])
    assert client.get(address).status_code == 405
    assert client.post(quality_page(study)).status_code == 405
    client.force_login(account("studies.view_study", name="planner"))
    assert client.get(quality_page(study)).status_code == 403
    assert quality_page(study) not in client.get(change_url(study)).content.decode()


def test_what_cannot_be_decided_says_why(client, researcher, study):
    running, test = walks.to_main(study), walks.complete(study, TEST)
    assert "has not finished yet" in text_of(client.get(change_url(running)))
    page = text_of(client.get(change_url(test)))
    assert "Test runs and previews never count" in page
    assert "Reason for a decision" not in page


def test_other_sessions_of_the_same_person_are_shown(client, researcher, study):
    first, second = (walks.complete(study, participant_id=name, session_id=name) for name in ("p", "q"))
    second.identity.participant_id = "p"
    second.identity.save()
    page = text_of(client.get(change_url(first)))
    assert (
        f"The same person took part in other sessions, and counts once: participation {str(second.public_id)[:8]}"
        in page
    )


def test_the_pages_ask_the_database_the_same_however_many_people(
    client, researcher, study, django_assert_max_num_queries
):
    walks.complete(study, failed_checks=1)
    client.get(quality_page(study, "all"))
    with django_assert_max_num_queries(12) as first:
        client.get(quality_page(study, "all"))
    for _ in range(2):
        walks.complete(study, failed_checks=1)
    with django_assert_max_num_queries(len(first)):
        client.get(quality_page(study, "all"))
