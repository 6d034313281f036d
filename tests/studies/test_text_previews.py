"""Each text of a study as participants read it, also before it is saved and before anything is built."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from scooter_site.common.admin_tools import change_url
from studies.models import Participation, StudyText, TextKind
from studies.services import life
from tests import factories
from tests.studies.admin_pages import posted, text_of
from tests.studies.visitor import Visitor, fetch

pytestmark = pytest.mark.django_db


def address(study, kind):
    return reverse("studies:preview-text", args=[study.slug, kind])


TYPED = {
    "consent": "You look at {items} images for {pay}.\r\n\r\nSecond paragraph <b>",
    "instructions": "Look at {items} images.",
    "question": "Is it “{label_maximum}”?",
    "feedback": "sure: Sure about {items} images? | No | Rather | Yes\r\nwhy: Why?",
}
SHOWN = {
    "consent": "<p>You look at 8 images for GBP 1.65.</p>\n\n<p>Second paragraph &lt;b&gt;</p>",
    "instructions": "<p>Look at 8 images.</p>",
    "question": '<h1 id="question">Is it “I am 100% certain that this image is modified”?</h1>',
    "feedback": "Sure about 8 images?",
}


@pytest.mark.parametrize("kind", TextKind)
def test_what_is_typed_is_shown_as_participants_would_read_it_and_not_saved(client, researcher, kind):
    study = factories.study()
    before = list(StudyText.objects.values_list("kind", "version", "body"))
    response = client.post(address(study, kind), posted(study, **{f"text_{kind}": TYPED[kind]}))
    page = response.content.decode()
    assert response.status_code == 200
    assert SHOWN[kind] in page
    assert "nothing is saved" in page
    assert "data-minimum-width" not in page, "a researcher's window may be small"
    assert list(StudyText.objects.values_list("kind", "version", "body")) == before
    assert not Participation.objects.exists()


@pytest.mark.parametrize("kind", TextKind)
def test_the_stored_text_is_shown_too_also_after_launch(client, researcher, kind):
    study = factories.ready_study()
    life.update_text(study, kind, TYPED[kind].replace("\r\n", "\n"))
    life.launch(study)
    response = client.get(address(study, kind))
    assert SHOWN[kind] in response.content.decode()
    assert "sandbox allow-same-origin allow-scripts" in response["Content-Security-Policy"], "its buttons send nothing"


def test_the_preview_of_the_question_has_the_studys_scale(client, researcher):
    slider = client.get(address(factories.study("paper"), "question")).content.decode()
    assert 'type="range"' in slider
    assert "rating.js" not in slider, "there is no item to rate"
    buttons = client.get(address(factories.study("field"), "question")).content.decode()
    assert re.findall(r'name="value" value="(-?\d)"', buttons) == ["-2", "-1", "0", "1", "2"]
    assert "Definitely real" in buttons


def test_the_preview_of_the_feedback_has_its_choices_and_boxes(client, researcher):
    page = client.post(address(factories.study(), "feedback"), {"text_feedback": TYPED["feedback"]}).content.decode()
    assert re.findall(r'type="radio" name="(item-\w+)" value="(\d)"', page) == [
        ("item-sure", "1"),
        ("item-sure", "2"),
        ("item-sure", "3"),
    ]
    assert '<textarea name="item-why"' in page


def test_feedback_that_cannot_be_read_says_which_line(client, researcher):
    response = client.post(address(factories.study(), "feedback"), {"text_feedback": "a: One?\r\nno name"})
    assert response.status_code == 400
    assert "Line 2: a name and a colon must stand before the question" in text_of(response)


def test_a_word_in_braces_that_is_not_filled_in_is_named_beside_the_text(client, researcher):
    response = client.post(address(factories.study(), "consent"), {"text_consent": "For {pay} or {pya}."})
    assert response.status_code == 400
    assert "Participants would read “{pya}” as it stands." in text_of(response)
    assert "For GBP 1.65 or {pya}." in text_of(response)


def test_examples_are_in_the_preview_of_the_instructions_and_only_staff_sees_them(client, researcher):
    study = factories.ready_study()
    page = client.get(address(study, "instructions")).content.decode()
    examples = re.findall(r'src="(/s/[^"]+/images/example/[^"]+)"', page)
    assert len(examples) == 6
    assert {fetch(client, example).status_code for example in examples} == {200}
    stranger = Visitor(study)
    assert {fetch(stranger.client, example).status_code for example in examples} == {404}


def test_only_staff_who_may_change_studies_preview_texts(client, viewer):
    study = factories.study()
    assert client.get(address(study, "consent")).status_code == 403
    assert Client().get(address(study, "consent")).status_code == 302


def test_there_is_no_preview_of_another_kind(client, researcher):
    study = factories.study()
    assert client.get(address(study, "nothing")).status_code == 404


def test_the_study_page_leads_to_every_preview(client, researcher):
    study = factories.study()
    life.update_text(study, TextKind.FEEDBACK, "comment: Well?")
    response = client.get(change_url(study))
    page = response.content.decode()
    for kind in TextKind:
        assert f'href="{address(study, kind)}"' in page
        assert f'formaction="{address(study, kind)}"' in page
    assert "Feedback questions (version 2)" in text_of(response)
    life.build_materials(study.pk)
    launched = client.get(change_url(factories.running_study())).content.decode()
    assert "Texts as participants see them" in launched
    assert "formaction" not in launched, "frozen: there is nothing to type"
