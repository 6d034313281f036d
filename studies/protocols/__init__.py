"""The protocols a study can follow, by name. docs/protocols.md shows how one is added."""

from studies.protocols import field, paper
from studies.protocols.base import Button, Material, Protocol, Setup, ShownTrial
from studies.protocols.registry import protocol, protocols

__all__ = ["Button", "Material", "Protocol", "Setup", "ShownTrial", "field", "paper", "protocol", "protocols"]
