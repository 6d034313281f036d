"""Who asks the API: ``Authorization: Token KEY``."""

from typing import Any

from drf_spectacular.authentication import TokenScheme
from rest_framework.authentication import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from scooter_site.accounts import tokens
from scooter_site.accounts.models import ApiToken


class ApiTokenAuthentication(TokenAuthentication):
    """By the digest of the key, and only while the account is active."""

    model = ApiToken

    def authenticate_credentials(self, key: str) -> tuple[Any, ApiToken]:
        token = tokens.token_of_key(key)
        if token is None:
            raise AuthenticationFailed("Invalid token.")
        if not token.user.is_active:
            raise AuthenticationFailed("The account of this token is not active.")
        tokens.note_use(token)
        return token.user, token


class ApiTokenScheme(TokenScheme):
    """How the schema describes it."""

    target_class = "scooter_site.accounts.authentication.ApiTokenAuthentication"
    priority = 1

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            **super().get_security_definition(auto_schema),
            "description": "`Token` and a key that you make on your account page: `Authorization: Token scooter_...`",
        }
