"""Secrets of other services, encrypted before they are stored: a copy of the database alone opens nothing.

The key is derived from SECRET_KEY, so that there is one secret to keep; keys in SECRET_KEY_FALLBACKS still open what
they closed. Fernet (of ``cryptography``) encrypts and authenticates; Django's signing would leave the text readable.
"""

import base64
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class CannotDecrypt(Exception):
    """The stored text was encrypted with another SECRET_KEY, or is damaged. Enter the secret again."""


def encrypt(text: str) -> str:
    """The text, encrypted with the present key."""
    return _fernet(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).encrypt(text.encode()).decode()


def decrypt(encrypted: str) -> str:
    """The text that ``encrypt`` was given. Raises CannotDecrypt."""
    try:
        return _fernet(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).decrypt(encrypted.encode()).decode()
    except InvalidToken:
        raise CannotDecrypt from None


@cache
def _fernet(*secrets: str) -> MultiFernet:
    return MultiFernet([Fernet(_key(secret)) for secret in secrets])


def _key(secret: str) -> bytes:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"scooter stored secrets").derive(secret.encode())
    return base64.urlsafe_b64encode(derived)
