"""The manifest of a frozen version of a collection: one line of JSON per image, the same bytes whoever writes it.

Canonical form, so that anybody can recompute the digest from the images and what is known of them: lines in the order
of the images' ids, keys in alphabetical order, no spaces, UTF-8 with nothing escaped that JSON lets be, a line feed at
the end of every line. Fractions are written as Python writes them: the shortest decimal that reads back as the same
double. docs/collections.md says what the keys mean. Pure: no Django.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

KEYS = (
    "id",
    "sha256",
    "bytes",
    "kind",
    "class_index",
    "synset",
    "source",
    "attack",
    "target_model",
    "predicted_class_index",
    "confidence",
    "filename",
    "licence",
    "attribution",
)


def manifest_line(facts: dict[str, Any]) -> bytes:
    """One image, with exactly the KEYS. Raises ValueError for others, or for a number that JSON has not."""
    if facts.keys() != set(KEYS):
        raise ValueError(f"a line of a manifest has the keys {', '.join(KEYS)}")
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def differing_lines(stored: Iterable[bytes], recomputed: Iterable[bytes]) -> Iterator[str]:
    """Say in words what differs between two manifests, image by image. Both are in the order of ids."""
    before, after = _Lines(stored), _Lines(recomputed)
    while before.line is not None or after.line is not None:
        if after.line is None or (before.line is not None and before.id < after.id):
            yield f"{before.id}: in the stored manifest, but not in the database's version"
            before.advance()
        elif before.line is None or after.id < before.id:
            yield f"{after.id}: in the database's version, but not in the stored manifest"
            after.advance()
        else:
            if before.line != after.line:
                yield f"{before.id}: {_changed(before.facts, after.facts) or 'the same facts in another form'}"
            before.advance()
            after.advance()


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str:
    pairs = {key: (before.get(key), after.get(key)) for key in {**before, **after}}
    return "; ".join(f"{key} is {new!r}, was {old!r}" for key, (old, new) in pairs.items() if old != new)


class _Lines:
    """Walks through a manifest."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self.advance()

    def advance(self) -> None:
        self.line = next(self._lines, None)
        self.facts: dict[str, Any] = {}
        self.id = ""
        if self.line is not None:
            try:
                self.facts = json.loads(self.line)
                self.id = str(self.facts["id"])
            except (ValueError, KeyError, TypeError):
                self.facts, self.id = {}, f"not a line of a manifest: {self.line[:80]!r}"
