"""Clients of the API for tests, and what they get."""

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from imagedb import terms
from imagedb.models import Collection, CollectionImage, CollectionVersion, Image, TermsAcceptance
from scooter_site.accounts.tokens import create_token

IMAGES = "/api/v1/images/"


def user(name: str, *, accepted_terms: bool = False, **fields) -> User:
    account = User.objects.create_user(name, password="a-long-password", **fields)
    if accepted_terms:
        TermsAcceptance.objects.create(user=account, version=terms.CURRENT_VERSION)
    return account


def with_token(account: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {create_token(account, 'test')[1]}")
    return client


def collection_with(slug: str, *images: Image, versions: tuple[str, ...] = ("1.0",), **fields) -> Collection:
    """A collection whose versions are frozen and all have these images."""
    collection = Collection.objects.create(name=f"Collection {slug}", slug=slug, **fields)
    for name in versions:
        version = CollectionVersion.objects.create(collection=collection, version=name)
        CollectionImage.objects.bulk_create(CollectionImage(version=version, image=image) for image in images)
        CollectionVersion.objects.filter(pk=version.pk).update(
            frozen_at=timezone.now(), image_count=len(images), manifest="manifest/x.jsonl", manifest_sha256="0" * 64
        )
    return collection


def file_address(image: Image) -> str:
    return f"{IMAGES}{image.public_id}/file/"


def body(response) -> bytes:
    """The content, read to its end: that is when the test client closes a streamed file."""
    return b"".join(response.streaming_content) if response.streaming else response.content


def listed(client: APIClient, **parameters) -> set[str]:
    response = client.get(IMAGES, parameters)
    assert response.status_code == 200, response.data
    return {row["id"] for row in response.data["results"]}


def ids(*images: Image) -> set[str]:
    return {str(image.public_id) for image in images}
