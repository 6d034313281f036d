"""Protocols by name."""

from studies.protocols.base import Protocol

_registered: dict[str, Protocol] = {}


def register(new: type[Protocol]) -> type[Protocol]:
    """Make a protocol known by its preset's name, which studies refer to for good. A decorator."""
    _registered[new.preset.name] = new()
    return new


def protocol(name: str) -> Protocol:
    """The protocol of this name. Raises KeyError."""
    return _registered[name]


def protocols() -> list[Protocol]:
    """All of them, the default first."""
    return sorted(_registered.values(), key=lambda known: known.preset.name != "paper")
