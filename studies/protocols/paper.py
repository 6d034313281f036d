"""The framework paper's protocol: a slider from -100 to 100, high values for "modified"."""

from studies.presets import PRESETS
from studies.protocols.base import Protocol
from studies.protocols.registry import register


@register
class Paper(Protocol):
    preset = PRESETS["paper"]
