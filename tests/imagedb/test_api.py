"""The catalogue's API: what is said of images, attacks, models and classes; paging."""

import hashlib
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from imagedb.models import Image, ImageKind, Prediction
from tests import factories
from tests.imagedb.api_clients import IMAGES, body, collection_with, file_address, ids, user, with_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return APIClient()


class TestContent:
    def test_an_image_in_full(self, client):
        attack, model = factories.attack(), factories.target_model()
        source = factories.clean_image()
        image = factories.modified_image(
            source,
            attack=attack,
            target_model=model,
            licence="CC0-1.0",
            attribution="Somebody",
            original_filename="cadv/1.png",
            original_profile="sRGB",
            comparison="same_size",
            linf=0,
            l2=0.0,
            changed_share=0.0,
            ssim=1.0,
            ciede2000=0.0,
        )
        Prediction.objects.create(
            image=image, target_model=model, predicted_class=factories.image_class(282), confidence=0.0
        )
        collection_with("set", image, versions=("1.0", "1.1"))
        collection_with("hidden", image, visibility="private")
        address = f"http://testserver{IMAGES}{image.public_id}/"
        assert client.get(f"{IMAGES}{image.public_id}/").json() == {
            "id": str(image.public_id),
            "kind": "modified",
            "class": {"index": 281, "synset": "n02123045", "name": "tabby"},
            "source": str(source.public_id),
            "attack": attack.slug,
            "target_model": model.slug,
            "predictions": [
                {
                    "target_model": model.slug,
                    "predicted_class": {
                        "index": 282,
                        "synset": "n02123159",
                        "name": factories.image_class(282).name,
                    },
                    "confidence": 0.0,
                }
            ],
            "verified": True,
            "comparison": "same_size",
            "linf": 0,
            "l2": 0.0,
            "changed_share": 0.0,
            "ssim": 1.0,
            "ciede2000": 0.0,
            "width": 64,
            "height": 48,
            "original_filename": "cadv/1.png",
            "original_sha256": image.original_sha256,
            "original_bytes": image.original_bytes,
            "original_format": "PNG",
            "original_mode": "RGB",
            "original_profile": "sRGB",
            "rendition_sha256": image.rendition_sha256,
            "rendition_bytes": image.rendition_bytes,
            "collections": [{"collection": "set", "version": "1.0"}, {"collection": "set", "version": "1.1"}],
            "visibility": "public",
            "licence": "CC0-1.0",
            "attribution": "Somebody",
            "is_demo": False,
            "created_at": image.created_at.isoformat().replace("+00:00", "Z"),
            "file": address + "file/",
            "thumbnail": address + "thumbnail/",
        }

    def test_a_clean_image_has_neither_source_nor_attack(self, client):
        data = client.get(f"{IMAGES}{factories.clean_image().public_id}/").json()
        assert (data["source"], data["attack"], data["target_model"], data["verified"]) == (None, None, None, False)
        assert (data["comparison"], data["linf"], data["ssim"], data["collections"]) == ("", None, None, [])

    def test_an_attack_in_full(self, client):
        facts = {
            "slug": "cadv",
            "name": "cAdv",
            "family": "colour",
            "description": "Recolours.",
            "threat_model": "white_box",
            "is_targeted": False,
            "parameters": {"k": 8},
            "paper_title": "Big but Imperceptible",
            "paper_url": "https://example.org/paper",
            "code_url": "https://example.org/code",
            "bibtex": "@article{x}",
            "venue": "ICLR",
            "year": 2020,
            "is_demo": False,
        }
        factories.attack(**facts)
        assert client.get("/api/v1/attacks/cadv/").json() == {**facts, "evaluations": []}
        assert client.get("/api/v1/attacks/").json()["results"] == [{**facts, "evaluations": []}]

    def test_a_target_model_in_full(self, client):
        facts = {
            "slug": "resnet50",
            "name": "ResNet50",
            "architecture": "ResNet-50",
            "training": "adversarial",
            "source": "Salman2020Do_R50",
            "weights_reference": "sha256:00",
            "preprocessing": "resize 256",
            "dataset": "ImageNet-1k",
            "clean_accuracy": 0.0,
            "description": "Robust.",
            "is_demo": True,
        }
        factories.target_model(**facts)
        assert client.get("/api/v1/target-models/resnet50/").json() == facts

    def test_classes(self, client):
        assert client.get("/api/v1/classes/0/").json()["synset"] == "n01440764"
        assert client.get("/api/v1/classes/281/").json()["name"] == "tabby"

    def test_what_there_is_not(self, client):
        for absent in ("attacks/none/", "target-models/none/", "classes/1000/", "classes/x/"):
            assert client.get(f"/api/v1/{absent}").status_code == 404


class TestPaging:
    def pages(self, client, between=lambda: None, **parameters):
        address, seen = f"{IMAGES}?" + "&".join(f"{key}={value}" for key, value in parameters.items()), []
        while address:
            data = client.get(address).json()
            seen += [row["id"] for row in data["results"]]
            between()
            address = data["next"]
        return seen

    def rows(self, count: int) -> list[Image]:
        """Rows without files, all of the same moment."""
        moment = timezone.now()
        made = Image.objects.bulk_create(
            Image(
                kind="clean",
                image_class=factories.image_class(),
                original_filename="same.png",
                original_sha256=hashlib.sha256(uuid.uuid4().bytes).hexdigest(),
                original_bytes=1,
                original_crc32=0,
                rendition_bytes=1,
                rendition_crc32=0,
                width=1,
                height=1,
                visibility="public",
            )
            for _ in range(count)
        )
        Image.objects.update(created_at=moment)
        return made

    def test_every_row_exactly_once_while_rows_are_added(self, client):
        before = self.rows(1000)
        added = []

        def add_some():
            if len(added) < 50:
                added.extend(self.rows(10))

        seen = self.pages(client, add_some, page_size=100)
        assert len(seen) == len(set(seen))
        assert set(seen) == ids(*before, *added)

    def test_filters_stay_through_the_pages(self, client):
        self.rows(7)
        factories.modified_image(attack=factories.attack(), target_model=None)
        assert len(self.pages(client, page_size=2, kind="clean")) == 8
        assert len(self.pages(client, page_size=2, kind="modified")) == 1

    def test_page_size(self, client):
        self.rows(60)
        assert len(client.get(IMAGES).json()["results"]) == 50
        assert len(client.get(IMAGES, {"page_size": 1}).json()["results"]) == 1
        assert len(client.get("/api/v1/classes/", {"page_size": 500}).json()["results"]) == 500


class TestQueryCounts:
    def fill(self, count: int) -> None:
        attack, model = factories.attack(), factories.target_model()
        for _ in range(count):
            image = factories.modified_image(attack=attack, target_model=model)
            for shown, index in ((image, 5), (image.source, 281)):
                named = factories.image_class(index)
                Prediction.objects.create(image=shown, target_model=model, predicted_class=named, confidence=0.5)
            collection_with(f"set-{image.pk}", image, image.source)

    # The page's keys, its rows, their predictions and collections; whose the token is; what the account may see.
    @pytest.mark.parametrize(("account", "expected"), [(None, 4), ("member", 11), ("root", 5)])
    @pytest.mark.parametrize("filters", [{}, {"kind": "modified", "verified": "true", "min_confidence": 0.5}])
    @pytest.mark.parametrize("search", [{}, {"search": "tabby"}])
    def test_a_list_takes_as_many_for_many_rows_as_for_few(self, account, expected, filters, search):
        client = APIClient()
        if account:
            client = with_token(user(account, accepted_terms=True, is_superuser=account == "root"))
            client.get(IMAGES)  # notes the use of the token, which the following requests need not
        if search:  # the words of classes, attacks and models; PostgreSQL is asked what it expects
            expected += 3 + (3 if connection.vendor == "postgresql" else 0)
        counts = []
        for more in (2, 10):
            self.fill(more)
            with CaptureQueriesContext(connection) as queries:
                rows = client.get(IMAGES, {**filters, **search}).json()["results"]
            assert (
                len(rows) == Image.objects.filter(kind__in=[filters["kind"]] if filters else ImageKind.values).count()
            )
            counts.append(len(queries))
        assert counts == [expected, expected]

    def test_a_detail_and_a_file(self, client, django_assert_num_queries):
        self.fill(1)
        image = Image.objects.get(kind="modified")
        # The image; its predictions; its collections; what is shown of it.
        with django_assert_num_queries(4):
            client.get(f"{IMAGES}{image.public_id}/")
        with django_assert_num_queries(1):
            body(client.get(file_address(image)))
