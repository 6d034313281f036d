"""What a published snapshot comes to, computed once: places, pages and pictures, kept in the cache.

A snapshot never changes, so the key is the snapshot and what was asked of it; a new publication is another snapshot.
Who may see an entry is no part of a snapshot: it is asked on every request, before, and what is kept is kept under
the very entries that are visible.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.core.cache import cache

from leaderboard.models import Snapshot

if TYPE_CHECKING:  # selectors keep things here, too
    from leaderboard.selectors.rows import Row

logger = logging.getLogger(__name__)
Kept = TypeVar("Kept")

KEPT_SECONDS = 24 * 3600


def kept(
    snapshot: Snapshot, entries: "Iterable[Row]", *asked: object, is_common: bool = True, compute: Callable[[], Kept]
) -> Kept:
    """The value of ``compute``, or what it gave before for the same snapshot, visible entries and ``asked``.

    What is not common is computed and not kept: else anybody could fill the cache, which tasks wait in too.
    """
    if not is_common:
        return compute()
    visible = ",".join(str(entry.pk) for entry in entries)
    parts = "\n".join(map(str, (_program(), snapshot.pk, snapshot.status, visible, *asked)))
    key = f"leaderboard-{hashlib.sha256(parts.encode()).hexdigest()}"
    try:
        found: Kept | None = cache.get(key)
        if found is not None:
            return found
    except Exception:  # a cache that is away makes pages slower, and breaks none
        logger.exception("The cache does not answer: computing")
        return compute()
    value = compute()
    try:
        cache.set(key, value, KEPT_SECONDS)
    except Exception:
        logger.exception("The cache does not answer: nothing kept")
    return value


@once
def _program() -> str:
    """Digest of what makes places and pages from entries, so that a new version of it starts with nothing kept."""
    folders = [Path(__file__).parent, Path(settings.BASE_DIR) / "templates" / "leaderboard"]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".html"})
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
