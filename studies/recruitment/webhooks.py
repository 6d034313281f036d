"""Whether a webhook is Prolific's: its signature over the bytes as they came, and its age."""

import base64
import hashlib
import hmac
from datetime import datetime

OLDEST_SECONDS = 300


def signature_is_good(secret: str, *, timestamp: str, body: bytes, signature: str, now: datetime) -> bool:
    """base64(HMAC-SHA256(secret, timestamp + body)), compared in constant time, and not older than five minutes.

    ``timestamp`` is the header X-Prolific-Request-Timestamp, in seconds since 1970. ``body`` must be the raw bytes:
    JSON written anew may differ.
    """
    if not secret or not timestamp.isascii() or not timestamp.isdigit() or not signature.isascii():
        return False
    digest = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    if not hmac.compare_digest(base64.b64encode(digest).decode(), signature):
        return False
    return abs(now.timestamp() - int(timestamp)) <= OLDEST_SECONDS
