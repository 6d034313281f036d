"""The catalogue over the API: who sees what, contents, paging, and how many queries it takes."""

import hashlib
import uuid

import pytest
from django.contrib.auth.models import AnonymousUser, Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from imagedb.models import Image, Prediction
from imagedb.selectors import visible_images
from tests import factories
from tests.imagedb.api_clients import IMAGES, body, file_address, ids, listed, user, with_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> APIClient:
    return APIClient()


class TestVisibility:
    """Who sees which image: in the selector, the lists, the details, the files and the pages alike."""

    @pytest.fixture
    def cast(self):
        owner = user("owner")
        viewer = user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_image"))
        other_staff = user("other staff", is_staff=True)
        permitted_but_no_staff = user("permitted")
        permitted_but_no_staff.user_permissions.add(Permission.objects.get(codename="view_image"))
        images = {
            "public": factories.clean_image(visibility="public"),
            "registered": factories.clean_image(visibility="registered"),
            "private": factories.clean_image(visibility="private", uploaded_by=owner),
        }
        seen_by = [
            (None, {"public"}),
            (user("member"), {"public", "registered"}),
            (owner, {"public", "registered", "private"}),
            (other_staff, {"public", "registered"}),
            (permitted_but_no_staff, {"public", "registered"}),
            (viewer, {"public", "registered", "private"}),
            (user("root", is_staff=True, is_superuser=True), {"public", "registered", "private"}),
        ]
        return images, seen_by

    def test_matrix(self, cast):
        images, seen_by = cast
        for account, visible in seen_by:
            assert set(visible_images(account or AnonymousUser())) == {images[name] for name in visible}
            for client in [APIClient()] if account is None else [with_token(account), APIClient()]:
                if account is not None and not client._credentials:
                    client.force_login(account)  # a session serves as well as a token
                assert listed(client) == ids(*(images[name] for name in visible))
                for name, image in images.items():
                    expected = 200 if name in visible else 404
                    for address in (
                        f"{IMAGES}{image.public_id}/",
                        file_address(image),
                        file_address(image) + "?rendition=true",
                        f"{IMAGES}{image.public_id}/thumbnail/",
                    ):
                        response = client.get(address)
                        body(response)
                        assert response.status_code == expected, (account, name, address)

    def test_pages_follow_the_same_rule(self, cast, client):
        images, seen_by = cast
        for account, visible in seen_by:
            client.logout()
            if account is not None:
                client.force_login(account)
            for name, image in images.items():
                for part in ("thumbnail", "file"):
                    response = client.get(f"/catalogue/images/{image.public_id}/{part}/")
                    body(response)
                    assert response.status_code == (200 if name in visible else 404), (account, name, part)

    def test_what_is_hidden_answers_as_what_is_not_there(self, client):
        hidden = factories.clean_image(visibility="private")
        answers = [client.get(f"{IMAGES}{public_id}/") for public_id in (hidden.public_id, uuid.uuid4())]
        assert answers[0].status_code == 404
        assert answers[0].content == answers[1].content

    def test_a_hidden_source_is_not_named(self, client):
        source = factories.clean_image(visibility="private")
        image = factories.modified_image(source, attack=factories.attack(), target_model=None)
        assert client.get(f"{IMAGES}{image.public_id}/").data["source"] is None
        assert listed(client, source=str(source.public_id)) == set()
        root = with_token(user("root", is_staff=True, is_superuser=True))
        assert root.get(f"{IMAGES}{image.public_id}/").data["source"] == str(source.public_id)
        assert listed(root, source=str(source.public_id)) == ids(image)

    def test_a_wrong_token_is_refused_rather_than_ignored(self, client):
        client.credentials(HTTP_AUTHORIZATION="Token wrong")
        assert client.get(IMAGES).status_code == 401

    def test_nothing_can_be_written(self):
        root = with_token(user("root", is_staff=True, is_superuser=True))
        image = factories.clean_image()
        for method in (root.post, root.put, root.patch, root.delete):
            assert method(f"{IMAGES}{image.public_id}/", {}).status_code == 405
        assert root.post(IMAGES, {}).status_code == 405


class TestContent:
    def test_an_image_in_full(self, client):
        attack, model = factories.attack(), factories.target_model()
        source = factories.clean_image()
        image = factories.modified_image(
            source, attack=attack, target_model=model, licence="CC0-1.0", attribution="Somebody"
        )
        Prediction.objects.create(
            image=image, target_model=model, predicted_class=factories.image_class(282), confidence=0.0
        )
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
            "width": 64,
            "height": 48,
            "original_sha256": image.original_sha256,
            "original_format": "PNG",
            "original_bytes": image.original_bytes,
            "licence": "CC0-1.0",
            "attribution": "Somebody",
            "is_demo": False,
            "file": address + "file/",
            "thumbnail": address + "thumbnail/",
        }

    def test_a_clean_image_has_neither_source_nor_attack(self, client):
        data = client.get(f"{IMAGES}{factories.clean_image().public_id}/").json()
        assert (data["source"], data["attack"], data["target_model"], data["verified"]) == (None, None, None, False)

    def test_attacks_models_and_classes(self, client):
        attack = factories.attack(year=2024, paper_url="https://example.org/paper")
        model = factories.target_model(architecture="ResNet-50")
        assert client.get("/api/v1/attacks/").json()["results"][0]["slug"] == attack.slug
        assert client.get(f"/api/v1/attacks/{attack.slug}/").json()["year"] == 2024
        assert client.get(f"/api/v1/target-models/{model.slug}/").json()["architecture"] == "ResNet-50"
        assert client.get("/api/v1/classes/0/").json()["synset"] == "n01440764"
        assert client.get("/api/v1/classes/281/").json()["name"] == "tabby"
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
            Prediction.objects.create(image=image, target_model=model, predicted_class=factories.image_class(5))
            Prediction.objects.create(image=image.source, target_model=model, predicted_class=factories.image_class())

    @pytest.mark.parametrize("account", [None, "member", "viewer"])
    @pytest.mark.parametrize("parameters", [{}, {"kind": "modified", "verified": "true", "min_confidence": 0}])
    def test_a_list_takes_as_many_for_many_rows_as_for_few(self, account, parameters):
        client = APIClient()
        if account:
            client = with_token(user(account, is_staff=account == "viewer", is_superuser=account == "viewer"))
        counts = []
        for more in (2, 10):
            self.fill(more)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert client.get(IMAGES, parameters).status_code == 200
            counts.append(len(queries))
        assert counts[0] == counts[1] <= 4

    def test_a_detail_and_a_file(self, client, django_assert_num_queries):
        self.fill(1)
        image = Image.objects.get(kind="modified")
        with django_assert_num_queries(2):
            client.get(f"{IMAGES}{image.public_id}/")
        with django_assert_num_queries(1):
            body(client.get(file_address(image)))
