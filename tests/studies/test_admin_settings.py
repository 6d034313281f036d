"""A study's form in the admin: five answers make a draft, settings and texts, what is refused."""

import re

import pytest
from django.urls import reverse

from scooter_site.common.admin_tools import change_url
from studies import selectors
from studies.models import Study, StudyText, TextKind
from tests import factories
from tests.studies.admin_pages import posted, text_of

pytestmark = pytest.mark.django_db


def test_five_answers_make_a_complete_draft(client, researcher):
    attack, target_model = factories.attack(), factories.target_model()
    page = client.get(reverse("admin:studies_study_add"))
    slug = re.search(r'name="slug" value="([a-z0-9]{8})"', page.content.decode()).group(1)
    answer = client.post(
        reverse("admin:studies_study_add"),
        {
            "title": "Snow on roofs",
            "slug": slug,
            "attack": attack.pk,
            "target_model": target_model.pk,
            "preset_name": "field",
            "_save": "Save",
        },
    )
    study = Study.objects.get()
    assert answer.url == change_url(study)
    assert (study.title, study.slug, study.preset, study.scale_minimum) == ("Snow on roofs", slug, "field", -2)
    assert study.created_by == researcher
    assert study.texts.count() == 4
    assert study.completion_codes.count() == 6


def test_each_new_study_is_offered_another_slug(client, researcher):
    pages = [client.get(reverse("admin:studies_study_add")).content.decode() for _ in range(5)]
    assert len({re.search(r'name="slug" value="(\w+)"', page).group(1) for page in pages}) == 5


def test_a_slug_that_tells_is_warned_about(client, researcher):
    attack = factories.attack(slug="snow-attack")
    answer = client.post(
        reverse("admin:studies_study_add"),
        {
            "title": "Snow",
            "slug": "our-snow-attack-1",
            "attack": attack.pk,
            "target_model": factories.target_model().pk,
            "preset_name": "paper",
            "_save": "Save",
        },
        follow=True,
    )
    assert "Consider another slug" in text_of(answer)
    assert Study.objects.exists()


def test_settings_and_texts_of_a_draft_are_edited_on_its_page(client, researcher):
    study = factories.study()
    before = StudyText.objects.get(study=study, kind=TextKind.QUESTION)
    answer = client.post(
        change_url(study), posted(study, dataset_count=7, buffer_percent=0, text_question="Real or not?")
    )
    assert answer.url == change_url(study)
    study.refresh_from_db()
    assert (study.dataset_count, study.buffer_percent) == (7, 0)
    newest = selectors.study_text(study, TextKind.QUESTION)
    assert (newest.body, newest.version) == ("Real or not?", before.version + 1)
    assert StudyText.objects.filter(study=study, kind=TextKind.CONSENT).count() == 1, "unchanged: no new version"


def test_a_page_saved_without_a_change_makes_no_new_text(client, researcher):
    study = factories.study()
    client.post(change_url(study), posted(study))
    assert study.texts.count() == 4
    client.post(change_url(study), posted(study, text_consent="One.\r\n\r\nTwo."))
    assert selectors.study_text(study, TextKind.CONSENT).body == "One.\n\nTwo."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"instructed_check_count": 20}, "21 attention checks (corrupted and instructed ones together) do not fit"),
        ({"plates_required": 6}, "More plates must be right than are shown."),
        ({"comprehension_required": 13}, "More pairs must be right than are shown."),
        ({"scale_minimum": 100}, "The highest value must be above the lowest."),
        ({"dataset_count": 0}, "Ensure this value is greater than or equal to 1."),
        ({"text_consent": ""}, "This field is required."),
        ({"text_feedback": "comment: Well?\r\nsure: Sure? | Yes"}, "Line 2: 2 to 10 choices are possible"),
        ({"text_consent": "For {pya}."}, "Participants would read “{pya}” as it stands. What is filled in: {contact}"),
        ({"text_question": "Is {it so?"}, "Participants would read “{it” as it stands."),
        ({"text_feedback": "why: {Pay}? | {items} | items}"}, "would read “{Pay}”, “items}” as it stands."),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused_at_their_field(client, researcher, changes, words):
    study = factories.study()
    answer = client.post(change_url(study), posted(study, **changes))
    assert answer.status_code == 200
    assert words in text_of(answer)
    assert set(study.texts.values_list("version", flat=True)) == {1}, "nothing half-written"


def test_completion_codes_are_edited_before_launch(client, researcher):
    study = factories.study()
    code = study.completion_codes.first()
    client.post(change_url(study), posted(study, **{"completion_codes-0-code": "THANKS99"}))
    code.refresh_from_db()
    assert code.code == "THANKS99"


def test_after_launch_only_what_no_answer_depends_on_can_be_changed(client, researcher):
    study = factories.running_study()
    page = client.get(change_url(study))
    assert "frozen since the launch" in text_of(page)
    assert b'name="dataset_count"' not in page.content
    assert b'name="text_consent"' not in page.content
    codes = list(study.completion_codes.values_list("code", flat=True))
    client.post(
        change_url(study),
        posted(
            study, title="A better title", dataset_count=9, text_question="Other?", **{"completion_codes-0-code": "X"}
        ),
    )
    changed = Study.objects.get()
    assert (changed.title, changed.dataset_count) == ("A better title", study.dataset_count)
    assert study.texts.count() == 4
    assert list(study.completion_codes.values_list("code", flat=True)) == codes


def test_nothing_is_edited_while_datasets_are_drawn(client, researcher):
    study = factories.study()
    Study.objects.update(materials_requested_at="2026-01-01T00:00:00Z")
    page = client.get(change_url(study))
    assert "Datasets are being drawn" in text_of(page)
    assert b"data-refresh-url" in page.content
    assert client.post(change_url(study), posted(study, dataset_count=7)).status_code == 403
