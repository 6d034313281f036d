"""The authors' later field version: five buttons, high values for "real", the opposite of the paper's."""

from studies.presets import PRESETS
from studies.protocols.base import Protocol
from studies.protocols.registry import register


@register
class Field(Protocol):
    preset = PRESETS["field"]
