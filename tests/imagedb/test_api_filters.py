"""Query parameters of the image list."""

import pytest
from rest_framework.test import APIClient

from imagedb.models import Collection, CollectionImage, CollectionVersion, Prediction
from tests import factories
from tests.imagedb.api_clients import IMAGES, collection_with, file_address, ids, listed, user, with_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return APIClient()


class TestFilters:
    @pytest.fixture
    def images(self):
        """Two pairs with answers of the models, and clean images of two classes."""
        cadv = factories.attack(name="cAdv", slug="cadv", family="colour")
        aca = factories.attack(name="ACA", slug="aca", family="generative")
        resnet, vit = factories.target_model(slug="resnet"), factories.target_model(slug="vit")
        tabby, tench = factories.clean_image(), factories.clean_image(image_class=factories.image_class(0))
        measured = {
            "comparison": "same_size",
            "linf": 0,
            "l2": 0.0,
            "changed_share": 0.0,
            "ssim": 1.0,
            "ciede2000": 0.0,
        }
        first = factories.modified_image(tabby, attack=cadv, target_model=resnet, **measured)
        measured = {"comparison": "resampled", "linf": 8, "l2": 2.5, "changed_share": 0.5, "ssim": -0.5, "ciede2000": 3}
        second = factories.modified_image(tench, attack=aca, target_model=vit, is_demo=True, **measured)
        unset = factories.modified_image(tench, attack=aca, target_model=None)
        other = factories.image_class(5)
        Prediction.objects.create(image=first, target_model=resnet, predicted_class=other, confidence=0.9)
        Prediction.objects.create(image=second, target_model=resnet, predicted_class=other, confidence=0.0)
        Prediction.objects.create(image=tabby, target_model=vit, predicted_class=tabby.image_class, confidence=0.5)
        return {"tabby": tabby, "tench": tench, "first": first, "second": second, "unset": unset}

    @pytest.mark.parametrize(
        ("parameters", "names"),
        [
            ({"kind": "clean"}, "tabby tench"),
            ({"kind": "modified"}, "first second unset"),
            ({"attack": "cadv"}, "first"),
            ({"attack": "aca"}, "second unset"),
            ({"target_model": "resnet"}, "first"),
            ({"class_index": 0}, "tench second unset"),
            ({"synset": "n02123045"}, "tabby first"),
            ({"is_demo": "true"}, "second"),
            ({"is_demo": "false"}, "tabby tench first unset"),
            # The second has an answer, but of another model than its own.
            ({"verified": "true"}, "tabby first"),
            ({"verified": "false"}, "tench second unset"),
            ({"min_confidence": 0.5}, "tabby first"),
            ({"max_confidence": 0.5}, "tabby second"),
            ({"max_confidence": 0}, "second"),
            ({"min_confidence": 0}, "tabby first second"),
            ({"min_confidence": 0.4, "max_confidence": 0.6}, "tabby"),
            ({"attack": "aca", "class_index": 0, "is_demo": "true"}, "second"),
            ({"kind": "clean", "attack": "aca"}, ""),
            ({"family": "colour"}, "first"),
            ({"family": "generative"}, "second unset"),
            ({"family": "other"}, ""),
            ({"visibility": "public"}, "tabby tench first second unset"),
            ({"visibility": "private"}, ""),
            ({"comparison": "resampled"}, "second"),
            ({"comparison": "not_comparable"}, ""),
            ({"min_linf": 0}, "first second"),
            ({"max_linf": 0}, "first"),
            ({"min_linf": 8, "max_linf": 8}, "second"),
            ({"min_l2": 0.1}, "second"),
            ({"max_l2": 0}, "first"),
            ({"min_changed_share": 0.5}, "second"),
            ({"max_changed_share": 0.4}, "first"),
            ({"min_ssim": 0}, "first"),
            ({"max_ssim": -0.5}, "second"),
            ({"min_ciede2000": 1}, "second"),
            ({"max_ciede2000": 1}, "first"),
            ({"kind": "clean", "min_linf": 0}, ""),
            ({"max_linf": 255, "attack": "aca"}, "second"),
        ],
    )
    def test_each(self, client, images, parameters, names):
        assert listed(client, **parameters) == ids(*(images[name] for name in names.split()))

    def test_collection_and_version(self, client, images):
        collection_with("set", images["tabby"], images["first"])
        later = CollectionVersion.objects.create(collection=Collection.objects.get(slug="set"), version="2.0-draft")
        CollectionImage.objects.create(version=later, image=images["tench"])
        collection_with("hidden", images["tench"], visibility="private")
        assert listed(client, collection="set") == ids(images["tabby"], images["first"])
        assert listed(client, collection="set", version="1.0", kind="clean") == ids(images["tabby"])
        for parameters, name in (
            ({"version": "1.0"}, "version"),
            ({"collection": "set", "version": "1"}, "version"),
            ({"collection": "set", "version": "2.0-draft"}, "version"),
            ({"collection": "hidden"}, "collection"),
            ({"collection": "none"}, "collection"),
        ):
            response = client.get(IMAGES, parameters)
            assert (response.status_code, list(response.json())) == (400, [name]), parameters
        root = with_token(user("root", is_superuser=True))
        assert listed(root, collection="set", version="2.0-draft") == ids(images["tench"])
        assert listed(root, collection="hidden") == ids(images["tench"])

    @pytest.mark.parametrize("name", ["linf", "l2", "changed_share", "ssim", "ciede2000", "confidence"])
    def test_a_range_without_anything_in_it_is_refused(self, client, images, name):
        response = client.get(IMAGES, {f"min_{name}": 1, f"max_{name}": 0})
        assert (response.status_code, list(response.json())) == (400, [f"min_{name}"])

    def test_source(self, client, images):
        assert listed(client, source=str(images["tench"].public_id)) == ids(images["second"], images["unset"])

    def test_both_confidence_bounds_hold_for_one_prediction(self, client, images):
        image = images["first"]
        Prediction.objects.create(
            image=image,
            target_model=factories.target_model(),
            predicted_class=factories.image_class(5),
            confidence=0.1,
        )
        assert listed(client, min_confidence=0.3, max_confidence=0.8) == ids(images["tabby"])

    @pytest.mark.parametrize(
        ("parameter", "value"),
        [
            ("kind", "Clean "),
            ("kind", "dirty"),
            ("attack", "nope"),
            ("target_model", "nope"),
            ("class_index", "1000"),
            ("class_index", "-1"),
            ("class_index", "1.5"),
            ("class_index", "cat"),
            ("synset", "tabby"),
            ("source", "17"),
            ("is_demo", "maybe"),
            ("is_demo", "1"),
            ("verified", "yes"),
            ("min_confidence", "2"),
            ("max_confidence", "-0.1"),
            ("min_confidence", "nan"),
            ("family", "colours"),
            ("visibility", "hidden"),
            ("comparison", "none"),
            ("min_linf", "256"),
            ("max_linf", "1.5"),
            ("min_l2", "-1"),
            ("max_l2", "inf"),
            ("max_changed_share", "1.1"),
            ("min_ssim", "-1.1"),
            ("max_ciede2000", "x"),
            ("search", "x" * 201),
            ("search", "a\x00b"),
            ("collection", "none"),
            ("kind", ""),
            ("attack", " "),
            ("page_size", "0"),
            ("page_size", "501"),
            ("page_size", "many"),
            ("page_size", "٣"),
            ("cursor", "nonsense"),
            ("cursor", "cD1hYmM="),  # p=abc: a cursor in form, at no id
            ("cursor", "cD0lMDA="),  # p=%00
            ("modle", "x"),
            ("Kind", "clean"),
        ],
    )
    def test_what_is_not_understood_is_refused_by_name(self, client, images, parameter, value):
        response = client.get(IMAGES, {parameter: value})
        assert response.status_code == 400
        assert list(response.json()) == [parameter]

    def test_a_parameter_given_twice_is_refused(self, client):
        response = client.get(f"{IMAGES}?kind=clean&kind=modified")
        assert response.status_code == 400
        assert list(response.json()) == ["kind"]

    @pytest.mark.parametrize("part", ["", "file/", "thumbnail/"])
    @pytest.mark.parametrize("parameter", ["modle", "kind", "page_size"])
    def test_details_and_files_refuse_them_too(self, client, part, parameter):
        response = client.get(f"{IMAGES}{factories.clean_image().public_id}/{part}", {parameter: "clean"})
        assert response.status_code == 400
        assert list(response.json()) == [parameter]

    @pytest.mark.parametrize("value", ["maybe", "", "2"])
    def test_rendition_is_true_or_false(self, client, value):
        response = client.get(file_address(factories.clean_image()), {"rendition": value})
        assert response.status_code == 400
        assert list(response.json()) == ["rendition"]

    @pytest.mark.parametrize("address", ["attacks/", "target-models/", "classes/", "classes/1/"])
    def test_the_other_lists_refuse_them(self, client, address):
        response = client.get(f"/api/v1/{address}?modle=x")
        assert response.status_code == 400
        assert list(response.json()) == ["modle"]
