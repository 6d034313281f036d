"""Previews over HTTP: who may look, at what, and that nothing stays."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from studies import selectors
from studies.flow import Outcome, Step
from studies.models import Participation, ParticipationKind, TrialKind
from studies.selectors import exports
from studies.views.access import COOKIE
from tests import factories, walks
from tests.studies.visitor import Visitor, assert_notice, assert_step, assert_to_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff_client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("staff", password="x"))
    return client


def test_a_preview_shows_every_step_and_leaves_nothing(study, staff_client):
    visitor = Visitor(study, staff_client)
    assert_to_run(staff_client.post(visitor.address("preview")), study)
    for step in [*Step, Step.MAIN]:
        assert_to_run(staff_client.post(visitor.address("preview-jump"), {"step": step.value}), study)
        response = visitor.page()
        assert_step(response, step)
        assert "nothing is kept" in response.content.decode()
    trial = walks.current_trial(visitor.participation)
    assert visitor.image("trial", trial.token).status_code == 200 or trial.kind == TrialKind.INSTRUCTED
    assert visitor.rate(trial.token, 0).status_code == 200
    response = staff_client.post(visitor.address("preview-leave"), follow=True)
    assert "You have left the preview" in response.content.decode()
    assert reverse("admin:studies_study_change", args=[study.pk]) in response.content.decode()
    assert not Participation.objects.exists()
    assert COOKIE not in {name for name, cookie in staff_client.cookies.items() if cookie.value}
    assert staff_client.post(visitor.address("preview-leave")).status_code == 303


def test_a_preview_shows_the_page_of_every_outcome_and_nothing_of_it_counts(study, staff_client):
    visitor = Visitor(study, staff_client)
    staff_client.post(visitor.address("preview"))
    before = selectors.monitor(study)
    for outcome in Outcome:
        assert_to_run(staff_client.post(visitor.address("preview-jump"), {"step": f"end:{outcome}"}), study)
        page = visitor.page().content.decode()
        assert f'data-outcome="{outcome}"' in page
        assert f'<option value="end:{outcome}" selected>' in page
        code = study.completion_codes.filter(outcome=outcome).first()
        assert (code is not None) == outcome.has_code
        assert code is None or code.code in page
    assert selectors.monitor(study) == before
    assert list(exports.rating_rows(study, counting_only=False)) == list(exports.participant_rows(study)) == []
    assert not exports.paid_participations(study, Outcome.COMPLETED).exists()
    assert staff_client.post(visitor.address("preview-jump"), {"step": "end:nowhere"}).status_code == 303
    assert f'data-outcome="{outcome}"' in visitor.page().content.decode(), "it stays where it is"


def test_a_preview_offers_only_what_the_study_has(staff_client):
    study = factories.running_study(plate_count=0, plates_required=0)
    visitor = Visitor(study, staff_client)
    staff_client.post(visitor.address("preview"))
    page = visitor.page().content.decode()
    assert 'value="end:completed"' in page
    assert 'value="end:colour_check_failed"' not in page
    assert 'value="colour_check"' not in page


def test_a_preview_does_not_hand_over_to_the_panel(prolific_study, staff_client):
    visitor = Visitor(prolific_study, staff_client)
    staff_client.post(visitor.address("preview"))
    staff_client.post(visitor.address("preview-jump"), {"step": "end"})
    text = visitor.page().content.decode()
    assert "Back to Prolific" in text
    assert "data-seconds" not in text
    assert "http-equiv" not in text


def test_starting_a_preview_again_drops_the_one_before(study, staff_client):
    visitor = Visitor(study, staff_client)
    for _ in range(2):
        staff_client.post(visitor.address("preview"))
    assert Participation.objects.count() == 1


def test_a_preview_does_not_become_a_participation_of_the_link(study, staff_client):
    visitor = Visitor(study, staff_client)
    staff_client.post(visitor.address("preview"))
    visitor.land()
    assert visitor.participation.kind == ParticipationKind.REAL


def test_only_staff_who_may_change_studies_preview(study):
    address = Visitor(study).address("preview")
    assert Client().post(address).status_code == 302
    client = Client()
    user = User.objects.create_user("assistant", password="x", is_staff=True)
    client.force_login(user)
    assert client.post(address).status_code == 403
    assert not Participation.objects.exists()
    user.user_permissions.add(Permission.objects.get(codename="change_study"))
    assert client.post(address).status_code == 303


def test_a_study_without_materials_cannot_be_previewed_and_says_why(staff_client):
    draft = factories.study()
    response = staff_client.post(reverse("studies:preview", args=[draft.slug]))
    assert response.status_code == 409
    assert "have not been built yet" in response.content.decode()


def test_participants_cannot_jump(visitor):
    visitor.land()
    response = visitor.client.post(visitor.address("preview-jump"), {"step": "end"})
    assert_notice(response, "no_session", 403)
    assert visitor.participation.step == Step.CONSENT
    visitor.client.post(visitor.address("preview-leave"))
    assert Participation.objects.count() == 1


def test_who_is_no_preview_leaves_nothing_by_the_buttons_of_one(visitor):
    participation = visitor.at(Step.MAIN)
    for name in ("preview-jump", "preview-leave"):
        visitor.client.post(visitor.address(name), {"step": "end:completed"})
    assert_step(visitor.page(), Step.MAIN)
    assert visitor.participation == participation
