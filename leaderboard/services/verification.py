"""Computing a published snapshot again from its inputs: equal, or where not."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.inputs import Inputs, UnreadableInputs, read_inputs
from leaderboard.models import Entry, Flag, Snapshot
from leaderboard.results import Rules, code_version, compute, stated_success_rate
from leaderboard.selectors.entries import placed
from leaderboard.services.publication import snapshot_digest

# Other processors and versions of numpy round otherwise; the search for the smallest criterion passes that on.
RELATIVE, ABSOLUTE = 1e-5, 1e-7
# What ratings and rules do not determine: it is taken from the catalogue, the studies and the board.
FACTS = ("studies", "selection")


@dataclass(frozen=True)
class Difference:
    """Something that is not what the inputs say; ``where`` names the pair and the value."""

    where: str
    stored: Any
    computed: Any

    def __str__(self) -> str:
        return f"{self.where}: stored {_short(self.stored)}, computed {_short(self.computed)}"


@dataclass(frozen=True)
class Verification:
    """What was found. ``remarks``: what may explain a difference, and what could not be looked at."""

    entries: int
    differences: list[Difference]
    remarks: list[str]


def verify(snapshot: Snapshot, inputs: Iterable[Inputs] | None = None) -> Verification:
    """Compute every entry of a published snapshot again, and where it stands among the others.

    From the stored files or, instead, from ``inputs``, as anybody can download them; entries that these lack, because
    nobody may see them any more, are not looked at. Raises UnreadableInputs.
    """
    entries = list(snapshot.entries.select_related("attack", "target_model", "external_result").order_by("id"))
    given = None if inputs is None else {pair.digest: pair for pair in inputs}
    differences: list[Difference] = []
    remarks = []
    if snapshot.code_version != code_version():
        remarks.append(f"Computed with {snapshot.code_version}; this is {code_version()}.")
    looked_at = 0
    for entry in entries:
        if given is None:
            pair = _stored(entry, differences)
        else:
            found = given.pop(entry.input_digest, None)
            if found is None:
                remarks.append(f"{entry}: not in the file.")
                continue
            pair = found
        looked_at += 1
        result = compute(pair, Rules.of(snapshot.rules), seed=snapshot.seed)
        values = dict(result.values)
        if entry.external_result is not None:
            values["flags"] = [*values["flags"], Flag.EXTERNAL.value]
            values["attack_success_rate"] = entry.external_result.attack_success_rate
        # The attempts stand in the entry: what the catalogue states today is not asked.
        values |= stated_success_rate(entry.images_attacked, entry.images_fooling)
        stored = {name: getattr(entry, name) for name in values}
        differences += _differences(str(entry), stored, values)
        details = {name: value for name, value in entry.details.items() if name not in FACTS}
        differences += _differences(f"{entry}, details", details, result.details)
    for stray in (given or {}).values():
        differences.append(
            Difference(f"{stray.attack} on {stray.target_model}", "no such ratings", f"digest {stray.digest}")
        )
    differences += _placing(snapshot, entries)
    return Verification(looked_at, differences, remarks)


def _stored(entry: Entry, differences: list[Difference]) -> Inputs:
    with entry.inputs.open("rb") as file:
        content = file.read()
    digest = hashlib.sha256(content).hexdigest()
    if digest != entry.inputs_sha256:
        differences.append(Difference(f"{entry}, digest of the file", entry.inputs_sha256, digest))
    pairs = read_inputs(content, f"inputs of {entry}")
    if len(pairs) != 1:
        raise UnreadableInputs(f"inputs of {entry}: has ratings of {len(pairs)} pairs")
    if pairs[0].digest != entry.input_digest:
        differences.append(Difference(f"{entry}, digest of the ratings", entry.input_digest, pairs[0].digest))
    return pairs[0]


def _placing(snapshot: Snapshot, entries: list[Entry]) -> Iterator[Difference]:
    if len(entries) != snapshot.entry_count:
        yield Difference("number of entries", snapshot.entry_count, len(entries))
    digest = snapshot_digest(snapshot.rules, snapshot.seed, entries)
    if digest != snapshot.input_digest:
        yield Difference("digest of the snapshot", snapshot.input_digest, digest)
    places = placed(
        entries,
        ranks_few_raters=snapshot.rules["ranks_few_raters"],
        minimum_participants=snapshot.rules["minimum_participants"],
        seed=snapshot.seed,
    )
    for entry, place in zip(entries, places, strict=True):
        low, high = place.rank_interval or (None, None)
        computed = {
            "rank": place.rank,
            "rank_low": low,
            "rank_high": high,
            "holm_p_value": place.holm_p_value,
            "rank_probabilities": list(place.probabilities),
        }
        yield from _differences(str(entry), {name: getattr(entry, name) for name in computed}, computed)


def _differences(where: str, stored: Any, computed: Any) -> Iterator[Difference]:
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        for name in sorted(stored.keys() | computed.keys()):
            yield from _differences(f"{where}, {name}", stored.get(name), computed.get(name))
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for number, (one, other) in enumerate(zip(stored, computed, strict=True)):
            yield from _differences(f"{where} [{number}]", one, other)
    elif not _is_equal(stored, computed):
        yield Difference(where, stored, computed)


def _is_equal(stored: Any, computed: Any) -> bool:
    numbers = [value for value in (stored, computed) if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == 2:
        return math.isclose(stored, computed, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(stored == computed)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
