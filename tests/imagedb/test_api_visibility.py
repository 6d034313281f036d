"""Who sees which image through the API and the pages."""

import uuid

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission
from rest_framework.test import APIClient

from imagedb.models import TermsAcceptance
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
        """Images of each visibility, and accounts with what they may see of them."""
        lab, other_lab = Group.objects.create(name="lab"), Group.objects.create(name="other lab")
        viewer = user("viewer", is_staff=True)
        permitted_but_no_staff = user("permitted")
        for account in (viewer, permitted_but_no_staff):
            account.user_permissions.add(Permission.objects.get(codename="view_image"))
        owner, colleague, stranger = user("owner", accepted_terms=True), user("colleague"), user("stranger")
        colleague.groups.add(lab)
        stranger.groups.add(other_lab)
        member_of_old_terms = user("member of old terms")
        TermsAcceptance.objects.create(user=member_of_old_terms, version="2001-01")
        images = {
            "public": factories.clean_image(visibility="public"),
            "registered": factories.clean_image(visibility="registered"),
            "private": factories.clean_image(visibility="private", uploaded_by=owner),
            "of the lab": factories.clean_image(visibility="private", group=lab),
        }
        seen_by = [
            (None, {"public"}),
            (user("account"), {"public"}),
            (user("member", accepted_terms=True), {"public", "registered"}),
            (member_of_old_terms, {"public"}),
            (owner, {"public", "registered", "private"}),
            (colleague, {"public", "of the lab"}),
            (stranger, {"public"}),
            (user("other staff", is_staff=True), {"public"}),
            (permitted_but_no_staff, {"public"}),
            (viewer, {"public", "registered"}),
            (user("root", is_staff=True, is_superuser=True), set(images)),
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
        (row,) = client.get(IMAGES).json()["results"]
        assert (row["id"], row["source"]) == (str(image.public_id), None)
        for name in ("csv", "jsonl"):
            answer = client.get(IMAGES, {"format": name}).content.decode()
            assert str(image.public_id) in answer
            assert str(source.public_id) not in answer
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
