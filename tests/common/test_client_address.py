import pytest

from scooter_site.common.client_address import client_address


@pytest.mark.parametrize(
    ("behind_proxy", "forwarded", "expected"),
    [
        (False, "203.0.113.9", "192.0.2.1"),
        (True, None, "192.0.2.1"),
        (True, "203.0.113.9", "203.0.113.9"),
        (True, "198.51.100.7, 203.0.113.9", "203.0.113.9"),  # the first entry is the client's own invention
    ],
)
def test_only_our_own_proxy_is_believed(rf, settings, behind_proxy, forwarded, expected):
    settings.BEHIND_TLS_PROXY = behind_proxy
    headers = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    assert client_address(rf.get("/", REMOTE_ADDR="192.0.2.1", **headers)) == expected
