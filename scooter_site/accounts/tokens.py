"""Keys of the API: made, looked up, and revoked."""

import hashlib
import secrets
import string
from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils import timezone

from scooter_site.accounts.models import ApiToken

# A fixed beginning, so that programs that look for leaked secrets know one when they see it.
KEY_BEGINNING = "scooter_"
KEY_ALPHABET = string.ascii_letters + string.digits
RANDOM_CHARACTERS = 40
SHOWN_CHARACTERS = 12
TOKENS_PER_ACCOUNT = 20
# "Last used" is for people who wonder what a key is for; to the minute will do, and spares most requests a write.
LAST_USED_PRECISION = timedelta(minutes=1)


def digest_of(key: str) -> str:
    """SHA-256 of a key, in hex. A key is 238 random bits, so that a fast digest without salt is safe."""
    return hashlib.sha256(key.encode()).hexdigest()


def create_token(user: AbstractBaseUser, name: str) -> tuple[ApiToken, str]:
    """Make a token; gives it and its key, which is stored nowhere.

    Raises ValidationError if the account has TOKENS_PER_ACCOUNT already, or for a name that is empty or too long.
    """
    if ApiToken.objects.filter(user_id=user.pk).count() >= TOKENS_PER_ACCOUNT:
        raise ValidationError(f"An account has at most {TOKENS_PER_ACCOUNT} tokens. Revoke one that you do not use.")
    key = KEY_BEGINNING + "".join(secrets.choice(KEY_ALPHABET) for _ in range(RANDOM_CHARACTERS))
    token = ApiToken(user_id=user.pk, name=name.strip(), prefix=key[:SHOWN_CHARACTERS], digest=digest_of(key))
    token.full_clean(exclude=["user", "last_used_at"])
    token.save()
    return token, key


def token_of_key(key: str) -> ApiToken | None:
    """The token with this key, and its account."""
    return ApiToken.objects.select_related("user").filter(digest=digest_of(key)).first()


def note_use(token: ApiToken) -> None:
    """Remember that the token was used now; written at most once in LAST_USED_PRECISION."""
    now = timezone.now()
    if token.last_used_at is not None and token.last_used_at > now - LAST_USED_PRECISION:
        return
    # The condition once more, in the database: of many requests at once, one writes.
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - LAST_USED_PRECISION)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def revoke_token(user: AbstractBaseUser, pk: int) -> str | None:
    """Delete one of the account's own tokens, so that its key works no more; gives its name, None if there is none."""
    token = ApiToken.objects.filter(user_id=user.pk, pk=pk).first()
    if token is None:
        return None
    token.delete()
    return token.name
