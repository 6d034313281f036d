"""``Image.verified`` is what the predictions say, whoever writes them and however."""

from importlib import import_module

import pytest
from django.db import connection

from imagedb.models import Image, Prediction
from tests import factories

pytestmark = pytest.mark.django_db
OTHER_CLASS = 5


@pytest.fixture
def models():
    return factories.target_model(), factories.target_model()


def predict(image: Image, model, index: int = OTHER_CLASS) -> Prediction:
    return Prediction.objects.create(image=image, target_model=model, predicted_class=factories.image_class(index))


def verified(image: Image) -> bool:
    image.refresh_from_db()
    return image.verified


def test_a_clean_image_by_any_models_answer(models):
    image = factories.clean_image()
    assert not verified(image)
    first, second = predict(image, models[0], 281), predict(image, models[1], 281)
    assert verified(image)
    first.delete()
    assert verified(image)
    second.delete()
    assert not verified(image)


def test_a_modified_image_by_its_own_models_answer(models):
    own, other = models
    image = factories.modified_image(attack=factories.attack(), target_model=own)
    prediction = predict(image, other)
    assert not verified(image)
    Prediction.objects.filter(pk=prediction.pk).update(target_model=own)
    assert verified(image)
    Prediction.objects.filter(pk=prediction.pk).update(target_model=other)
    assert not verified(image)


def test_an_answer_that_is_moved_to_another_image(models):
    first, second = factories.clean_image(), factories.clean_image()
    prediction = predict(first, models[0], 281)
    Prediction.objects.filter(pk=prediction.pk).update(image=second)
    assert (verified(first), verified(second)) == (False, True)


def test_a_target_model_that_becomes_known_later(models):
    image = factories.modified_image(attack=factories.attack(), target_model=None)
    predict(image, models[0])
    assert not verified(image)
    Image.objects.filter(pk=image.pk).update(target_model=models[0])
    assert verified(image)
    Image.objects.filter(pk=image.pk).update(target_model=models[1])
    assert not verified(image)


def test_many_at_once(models):
    images = [factories.clean_image() for _ in range(3)]
    own_class = factories.image_class()
    Prediction.objects.bulk_create(
        Prediction(image=image, target_model=models[0], predicted_class=own_class) for image in images[:2]
    )
    assert [verified(image) for image in images] == [True, True, False]


def test_nobody_can_say_otherwise(models):
    image = factories.clean_image()
    Image.objects.filter(pk=image.pk).update(verified=True)
    assert not verified(image)
    stale = Image.objects.get(pk=image.pk)
    predict(image, models[0], 281)
    stale.licence = "CC0-1.0"
    stale.save()
    assert verified(image), "saving what was read before the answer came takes nothing back"
    assert not verified(factories.clean_image(verified=True))


def test_the_migration_finds_those_that_are_there(models):
    clean, modified = (
        factories.clean_image(),
        factories.modified_image(attack=factories.attack(), target_model=models[0]),
    )
    without = factories.modified_image(clean, attack=modified.attack, target_model=models[1])
    predict(clean, models[0], 281)
    predict(modified, models[0])
    predict(without, models[0])
    with connection.cursor() as cursor:
        cursor.execute(import_module("imagedb.migrations.0008_verify_images").VERIFY)
    assert [verified(image) for image in (clean, modified, without, modified.source)] == [True, True, False, False]
