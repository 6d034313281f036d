"""Addresses that nothing can have."""

import pytest


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    [
        "/api/v1/collections/c/versions/%00/",
        "/api/v1/collections/c/versions/%00/archive/",
        "/api/v1/collections/c/versions/%00/manifest/",
        "/catalogue/collections/c/%00/",
        "/s/%00/",
        "/%00",
    ],
)
def test_a_null_character_is_answered_with_not_found(client, address):
    response = client.get(address)
    assert response.status_code == 404
    assert "Content-Security-Policy" in response.headers
