"""How often an attack fooled a target model, as stated: admin, database, API."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.urls import reverse

from imagedb.models import AttackEvaluation, Image, Visibility
from scooter_site.common.admin_tools import change_url
from tests import factories
from tests.imagedb.pages import text_of

pytestmark = pytest.mark.django_db

ADD = reverse("admin:imagedb_attackevaluation_add")


@pytest.fixture
def pair():
    return {"attack": factories.attack(), "target_model": factories.target_model()}


def typed(pair, attacked, fooling, **fields):
    ids = {name: row.pk for name, row in pair.items()}
    return {**ids, "images_attacked": attacked, "images_fooling": fooling, "_save": "Save", **fields}


def test_a_researcher_states_it_and_changes_it(client, researcher, pair):
    assert client.get(ADD).status_code == 200
    client.post(ADD, typed(pair, 120, 90, citation="Table 2", source_url="example.org/paper"))
    evaluation = AttackEvaluation.objects.get()
    assert (evaluation.images_attacked, evaluation.images_fooling) == (120, 90)
    assert evaluation.source_url == "https://example.org/paper"
    listed = text_of(client.get(reverse("admin:imagedb_attackevaluation_changelist")))
    assert "75.0 %" in listed
    other = factories.attack()
    client.post(change_url(evaluation), typed({**pair, "attack": other}, 50, 0))
    evaluation.refresh_from_db()
    assert (evaluation.images_attacked, evaluation.images_fooling) == (50, 0)
    assert evaluation.attack == pair["attack"], "the pair stays"


@pytest.mark.parametrize(
    ("attacked", "fooling", "field", "message"),
    [
        (120, 121, "images_fooling", "121 cannot have fooled the model, since only 120 were attacked."),
        (0, 0, "images_attacked", "Ensure this value is greater than or equal to 1."),
        (10, -1, "images_fooling", "Ensure this value is greater than or equal to 0."),
        ("", 0, "images_attacked", "This field is required."),
    ],
)
def test_numbers_that_cannot_be_are_refused_at_their_field(client, researcher, pair, attacked, fooling, field, message):
    response = client.post(ADD, typed(pair, attacked, fooling))
    assert response.context["adminform"].form.errors == {field: [message]}
    assert not AttackEvaluation.objects.exists()


def test_a_pair_has_one_evaluation(client, researcher, pair):
    AttackEvaluation.objects.create(**pair, images_attacked=2, images_fooling=1)
    response = client.post(ADD, typed(pair, 3, 1))
    assert "There is an evaluation of this attack on this target model" in text_of(response)


@pytest.mark.parametrize(("attacked", "fooling"), [(120, 121), (0, 0), (10, -1)])
def test_the_database_refuses_them_too(pair, attacked, fooling):
    with pytest.raises(IntegrityError), transaction.atomic():
        AttackEvaluation.objects.create(**pair, images_attacked=attacked, images_fooling=fooling)


def test_an_attack_with_an_evaluation_is_not_deleted(pair):
    AttackEvaluation.objects.create(**pair, images_attacked=2, images_fooling=1)
    with pytest.raises(ProtectedError):
        pair["attack"].delete()


def test_the_api_tells_it_unless_the_pair_is_private(client, pair):
    AttackEvaluation.objects.create(**pair, images_attacked=50, images_fooling=0, citation="Table 2")
    address = f"/api/v1/attacks/{pair['attack'].slug}/"
    stated = {
        "target_model": pair["target_model"].slug,
        "images_attacked": 50,
        "images_fooling": 0,
        "citation": "Table 2",
        "source_url": "",
    }
    assert client.get(address).json()["evaluations"] == [stated]
    row = client.get("/api/v1/attacks/?format=csv").content.decode().splitlines()
    assert "evaluations_images_attacked" in row[0]
    factories.modified_image(**pair)
    Image.objects.update(visibility=Visibility.PRIVATE)
    assert client.get(address).json()["evaluations"] == []
    Image.objects.update(visibility=Visibility.PUBLIC)
    assert client.get(address).json()["evaluations"] == [stated]
