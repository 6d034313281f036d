"""Compare the files that rows have with those that are stored, and mend what can be mended.

Both sides come in the order of names and are gone through together, so that a million files take no more memory than
a thousand. The site may run meanwhile: whatever looks wrong is looked at once more, since rows and files come and go,
and a file that no row has is let be for an hour, since an import writes files before rows.
"""

import io
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from django.core.files.storage import storages
from django.utils import timezone
from PIL import Image as PillowImage

from imagedb.services.storage_repair import CannotRepair, mend
from scooter_site.common.file_lists import batched, digest_of, side_by_side
from scooter_site.common.storage import LEVELS, LocalStorage, StoredFile, content_type
from scooter_site.common.stored_files import KnownFile, Owner, known_files, names_in_use

BATCH = 500
# For a bucket each answer takes some milliseconds of waiting, which can be done side by side.
THREADS = 8
EXTRA_AFTER = timedelta(hours=1)
# More extra files than this share, and this many, look like the wrong database rather than like leftovers.
MANY_EXTRA_SHARE, MANY_EXTRA = 0.1, 100


class CannotCheck(Exception):
    """The comparison is not possible; the message says why and what to do."""


class Problem(StrEnum):
    MISSING = "missing"
    EXTRA = "extra"
    SIZE = "wrong size"
    DIGEST = "wrong digest"
    UNREADABLE = "unreadable"
    CONTENT_TYPE = "wrong content type"


@dataclass
class Finding:
    """One thing that is wrong with one file. ``outcome`` is what repairing did, or why it could do nothing."""

    problem: Problem
    level: str
    name: str
    owners: tuple[Owner, ...] = ()
    detail: str = ""
    is_repaired: bool = False
    outcome: str = ""


@dataclass
class Totals:
    """What was gone through, and what was found: how many of each problem, and how many of them are left."""

    known: int = 0
    stored: int = 0
    too_new: int = 0
    found: Counter[Problem] = field(default_factory=Counter)
    left: Counter[Problem] = field(default_factory=Counter)


def check(
    totals: Totals, *, digests: bool = False, repair: bool = False, delete_many: bool = False
) -> Iterator[Finding]:
    """Go through all three levels and give what is wrong, after trying to mend it with ``repair``.

    ``digests`` reads every file. ``delete_many`` deletes extra files even if they are suspiciously many. ``totals`` is
    counted up on the way. Raises CannotCheck or NotInOrder; errors of storage and database come through.
    """
    with tempfile.TemporaryFile("w+") as extras, ThreadPoolExecutor(THREADS) as pool:
        for level in LEVELS:
            for finding in _check_level(level, totals, pool, digests=digests):
                totals.found[finding.problem] += 1
                if finding.problem == Problem.EXTRA:
                    # Whether they are suspiciously many is known at the end.
                    extras.write(json.dumps([level, finding.name, finding.detail]) + "\n")
                    continue
                if repair:
                    _mend(finding)
                totals.left[finding.problem] += not finding.is_repaired
                yield finding
        extras.seek(0)
        found = (Finding(Problem.EXTRA, level, name, detail=detail) for level, name, detail in map(json.loads, extras))
        too_many = totals.found[Problem.EXTRA] > max(MANY_EXTRA, MANY_EXTRA_SHARE * totals.stored)
        for batch in batched(found, BATCH):
            if repair and too_many and not delete_many:
                for finding in batch:
                    finding.outcome = "not deleted: too many files are extra"
            elif repair:
                _delete(batch)
            for finding in batch:
                totals.left[Problem.EXTRA] += not finding.is_repaired
                yield finding


def _check_level(level: str, totals: Totals, pool: ThreadPoolExecutor, *, digests: bool) -> Iterator[Finding]:
    storage: Any = storages[level]
    if isinstance(storage, LocalStorage) and not Path(storage.location).is_dir() and next(known_files(level), None):
        raise CannotCheck(f"{storage.location} does not exist, but rows have files in it. Is the disk mounted?")
    suspects: list[Finding] = []
    look = partial(_look_at, storage, level, digests)
    # Where nothing is waited for, threads cost more than they save.
    looked: Callable[..., Iterable[list[Finding]]] = (
        map if isinstance(storage, LocalStorage) and not digests else pool.map
    )
    for batch in batched(side_by_side(known_files(level), storage.listing()), BATCH):
        totals.known += sum(known is not None for known, _ in batch)
        totals.stored += sum(stored is not None for _, stored in batch)
        for found in looked(look, batch):
            suspects += found
        if len(suspects) >= BATCH:
            yield from _confirmed(storage, level, suspects, totals)
            suspects = []
    yield from _confirmed(storage, level, suspects, totals)


def _look_at(
    storage: Any, level: str, digests: bool, pair: tuple[KnownFile | None, StoredFile | None]
) -> list[Finding]:
    """What seems to be wrong with one name. Runs in a thread: asks the storage, not the database."""
    known, stored = pair
    if known is None:
        assert stored is not None  # noqa: S101 - one of the two is there
        detail = f"{stored.size:,} bytes of {stored.modified_at:%Y-%m-%d %H:%M} UTC"
        return [Finding(Problem.EXTRA, level, stored.name, detail=detail)]
    owners = tuple(owner for owner in known.owners if owner.is_whole)
    if not owners:
        return []
    found = partial(Finding, level=level, name=known.name, owners=known.owners)
    if stored is None:
        return [found(Problem.MISSING)]
    findings = []
    if damage := _damage(storage, stored, owners, digests):
        findings.append(found(damage[0], detail=damage[1]))
    if not isinstance(storage, LocalStorage):
        try:
            said = storage.describe(known.name).content_type
        except FileNotFoundError:  # deleted meanwhile; the second look tells whether the row went too
            return [found(Problem.MISSING)]
        if said != content_type(known.name):
            findings.append(found(Problem.CONTENT_TYPE, detail=f"{said} instead of {content_type(known.name)}"))
    return findings


def _damage(storage: Any, stored: StoredFile, owners: Iterable[Owner], digests: bool) -> tuple[Problem, str] | None:
    sizes = {owner.size for owner in owners if owner.size is not None}
    if sizes - {stored.size}:
        return Problem.SIZE, f"{stored.size:,} bytes instead of {' or '.join(f'{size:,}' for size in sorted(sizes))}"
    if not stored.size:
        return Problem.SIZE, "it is empty"
    if not digests:
        return None
    expected = {owner.sha256 for owner in owners if owner.sha256}
    try:
        if expected:
            digest = digest_of(storage, stored.name, "sha256")
            return (Problem.DIGEST, f"SHA-256 {digest}") if expected - {digest} else None
        if content_type(stored.name).startswith("image/") and (reason := _why_no_picture(storage, stored.name)):
            return Problem.UNREADABLE, reason
    except FileNotFoundError:
        return Problem.MISSING, ""
    return None


def _why_no_picture(storage: Any, name: str) -> str:
    """Why a picture of ours, of which no digest is known, cannot be decoded; empty if it can."""
    with storage.open(name) as file:
        content = file.read()
    try:
        with PillowImage.open(io.BytesIO(content)) as picture:
            picture.load()
    except Exception as error:  # decoders raise nearly anything on damaged data
        return f"it cannot be decoded ({error})"
    return ""


def _confirmed(storage: Any, level: str, suspects: list[Finding], totals: Totals) -> Iterator[Finding]:
    """Those of the suspects that are still wrong on a second look at rows and files."""
    if not suspects:
        return
    in_use = names_in_use(level, {finding.name for finding in suspects})
    for finding in suspects:
        if (finding.problem == Problem.EXTRA) == (finding.name in in_use):
            continue
        if finding.problem == Problem.EXTRA and not _is_old(storage, finding.name):
            totals.too_new += 1
        elif finding.problem != Problem.MISSING or not storage.exists(finding.name):
            yield finding


def _is_old(storage: Any, name: str) -> bool:
    try:
        return storage.describe(name).modified_at < timezone.now() - EXTRA_AFTER
    except FileNotFoundError:
        return False


def _delete(extras: list[Finding]) -> None:
    """Delete extra files, unless a row has got one, or one was written again, since it was found."""
    for level in LEVELS:
        storage: Any = storages[level]
        of_level = [finding for finding in extras if finding.level == level]
        in_use = names_in_use(level, [finding.name for finding in of_level])
        for finding in of_level:
            finding.is_repaired, finding.outcome = True, "a row has it now"
            if finding.name not in in_use and _is_old(storage, finding.name):
                storage.delete(finding.name)
                finding.outcome = "deleted"


def _mend(finding: Finding) -> None:
    repair: Callable[[], str]
    if finding.problem == Problem.CONTENT_TYPE:
        repair = partial(_set_content_type, finding)
    else:
        repair = partial(mend, storages[finding.level], finding.name, finding.owners)
    try:
        finding.outcome = repair()
        finding.is_repaired = True
    except CannotRepair as reason:
        finding.outcome = str(reason)


def _set_content_type(finding: Finding) -> str:
    storage: Any = storages[finding.level]
    storage.set_content_type(finding.name)
    return f"set to {content_type(finding.name)}"
