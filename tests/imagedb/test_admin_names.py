"""Attacks, target models, classes and accepted terms in the admin."""

import json

import pytest
from django.urls import reverse

from imagedb import terms
from imagedb.bibtex import problem_of
from imagedb.models import Attack, TargetModel, TermsAcceptance, Visibility
from scooter_site.common.admin_tools import change_url
from tests import factories
from tests.imagedb import catalogue
from tests.imagedb.pages import text_of

pytestmark = pytest.mark.django_db

IMAGES = reverse("admin:imagedb_image_changelist")
ADD_ATTACK = reverse("admin:imagedb_attack_add")


@pytest.mark.parametrize("model", [Attack, TargetModel])
def test_attacks_and_target_models_are_added_with_a_name(client, researcher, model):
    address = reverse(f"admin:imagedb_{model._meta.model_name}_add")
    assert client.get(address).status_code == 200
    client.post(address, {"name": "Snow", "slug": "snow", "family": "colour", "trained_on": "x", "_save": "Save"})
    assert model.objects.get().slug == "snow"


def test_an_attack_in_use_is_not_deleted_and_the_page_says_why(admin_client):
    image = factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    delete = reverse("admin:imagedb_attack_delete", args=[image.attack.pk])
    assert "protected related objects" in text_of(admin_client.get(delete))
    admin_client.post(delete, {"post": "yes"})
    assert Attack.objects.exists()


def test_lists_count_the_images_and_lead_to_them(client, researcher):
    attack = factories.attack()
    for _ in range(2):
        factories.modified_image(attack=attack, target_model=factories.target_model())
    page = client.get(reverse("admin:imagedb_attack_changelist"))
    address = f"{IMAGES}?attack__id__exact={attack.pk}"
    assert f'href="{address}">2</a>' in page.content.decode()
    assert "2 images" in text_of(client.get(address))


def test_the_classes_are_a_fixed_list(admin_client):
    assert "1000 ImageNet classes" in text_of(admin_client.get(reverse("admin:imagedb_imageclass_changelist")))
    assert admin_client.get(reverse("admin:imagedb_imageclass_add")).status_code == 403


def fields(**values):
    return {"name": "Snow", "slug": "snow", "family": "colour", "_save": "Save", **values}


def test_an_attack_has_all_that_its_page_tells(client, researcher):
    bibtex = "@inproceedings{snow2026, title = {Snow {on} roofs}}"
    client.post(
        ADD_ATTACK,
        fields(
            threat_model="white_box",
            is_targeted="false",
            parameters='{"epsilon": 8, "schedule": {"steps": [1, 2]}}',
            bibtex=f"  {bibtex} ",
            venue="CVPR",
            year=2026,
            code_url="example.org/code",
        ),
    )
    attack = Attack.objects.get()
    assert (attack.threat_model, attack.is_targeted, attack.bibtex) == ("white_box", False, bibtex)
    assert attack.parameters == {"epsilon": 8, "schedule": {"steps": [1, 2]}}
    assert attack.code_url == "https://example.org/code"
    page = client.get(change_url(attack)).content.decode()
    assert "&quot;epsilon&quot;: 8" in page, "JSON, not Python"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("{'epsilon': 8}", "This is not JSON: Expecting property name enclosed in double quotes in line 1, column 2"),
        ('{"a": 1,}', "This is not JSON"),
        ("[8]", "Give names with values, in braces"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": ["\\u0000"]}', "cannot be stored"),
        ('{"\\ud800": 1}', "cannot be stored"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_with_the_reason(client, researcher, typed, message):
    assert message in text_of(client.post(ADD_ATTACK, fields(parameters=typed)))
    assert not Attack.objects.exists()


@pytest.mark.parametrize(("typed", "stored"), [("", {}), (" ", {}), ("{}", {}), ('{"a": 0}', {"a": 0})])
def test_parameters_may_be_empty_and_0_is_a_value(client, researcher, typed, stored):
    client.post(ADD_ATTACK, fields(parameters=typed))
    assert Attack.objects.get().parameters == stored


def test_parameters_stay_as_they_are_when_something_else_is_changed(client, researcher):
    attack = factories.attack(parameters={"a": {"b": None}, "Ü": "é"})
    page = client.get(change_url(attack))
    form = page.context["adminform"].form
    client.post(change_url(attack), fields(parameters=form["parameters"].value()))
    attack.refresh_from_db()
    assert (attack.name, attack.parameters) == ("Snow", {"a": {"b": None}, "Ü": "é"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("@article{a, title={B}}", ""),
        ("@article{a,\n title={\\{B}}\n\n@misc{b, note={C}}", ""),
        ("title = {B}", "begins with @"),
        ("@article{, title={B}}", "begins with @"),
        ("@article{a, title={B}", "is not closed"),
        ("@article{a, title={B}}}", "A brace too many"),
    ],
)
def test_bibtex_is_looked_at(text, problem):
    assert problem in problem_of(text)
    assert bool(problem) == bool(problem_of(text))


def test_bibtex_that_is_none_is_refused(client, researcher):
    assert "is not closed" in text_of(client.post(ADD_ATTACK, fields(bibtex="@article{a, title={B}")))
    assert not Attack.objects.exists()


def test_a_target_model_has_all_that_its_page_tells(client, researcher):
    values = {
        "architecture": "ResNet-50",
        "training": "adversarial",
        "dataset": "ImageNet-1k",
        "source": "Salman2020Do_R50",
        "weights_reference": "sha256:0",
        "preprocessing": "Centre crop 224",
        "clean_accuracy": 0.6402,
    }
    add = reverse("admin:imagedb_targetmodel_add")
    assert 'name="dataset"' not in client.get(add).content.decode(), "the theme takes that for something of its own"
    client.post(
        add,
        fields(**{name: value for name, value in values.items() if name != "dataset"}, trained_on=values["dataset"]),
    )
    model = TargetModel.objects.get()
    assert {name: getattr(model, name) for name in values} == values
    answer = client.post(change_url(model), fields(trained_on="x", clean_accuracy=64))
    assert "less than or equal to 1" in text_of(answer)


def test_only_images_that_one_sees_are_counted(client, researcher):
    attack = factories.attack()
    for visibility in (Visibility.REGISTERED, Visibility.PRIVATE):
        factories.modified_image(attack=attack, target_model=None, visibility=visibility)
    page = client.get(reverse("admin:imagedb_attack_changelist")).content.decode()
    assert f'href="{IMAGES}?attack__id__exact={attack.pk}">1</a>' in page


def test_a_slug_in_a_frozen_manifest_stays_and_the_page_says_why(client, researcher):
    image = factories.modified_image(attack=factories.attack(name="Snow", slug="ice"), target_model=None)
    catalogue.freeze_by_hand(catalogue.version(image))
    answer = client.post(change_url(image.attack), fields(slug="snow"), follow=True)
    assert "Nothing was changed. The manifest of a frozen version of a collection names it" in text_of(answer)
    assert Attack.objects.get().slug == "ice"
    assert json.dumps(image.attack.parameters) == "{}"


def test_the_lists_cost_a_fixed_number_of_queries(admin_client, django_assert_max_num_queries):
    def queries():
        counts = []
        for name in ("attack", "targetmodel"):
            with django_assert_max_num_queries(25) as captured:
                admin_client.get(reverse(f"admin:imagedb_{name}_changelist"))
            counts.append(len(captured))
        return counts

    factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    few = queries()
    for _ in range(5):
        factories.modified_image(attack=factories.attack(), target_model=factories.target_model())
    assert queries() == few


def test_accepted_terms_are_a_record(admin_client):
    acceptance = TermsAcceptance.objects.create(user=catalogue.account("reader"), version=terms.CURRENT_VERSION)
    listed = reverse("admin:imagedb_termsacceptance_changelist")
    assert "reader" in text_of(admin_client.get(listed))
    assert admin_client.get(change_url(acceptance)).status_code == 200
    assert admin_client.get(reverse("admin:imagedb_termsacceptance_add")).status_code == 403
    assert admin_client.post(change_url(acceptance), {"version": "other"}).status_code == 403
    delete = reverse("admin:imagedb_termsacceptance_delete", args=[acceptance.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
