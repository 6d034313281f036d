"""What the tests of the catalogue's API ask, and read of the answers."""

from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from imagedb.models import Image

IMAGES = "/api/v1/images/"


def user(name: str, **fields) -> User:
    return User.objects.create_user(name, password="a-long-password", **fields)


def with_token(account: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(user=account).key}")
    return client


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
