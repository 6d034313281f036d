"""From how often an attack was tried to the values of an entry that count attempts. Pure."""

from collections.abc import Mapping
from typing import Any


def values_of_attempts(
    values: Mapping[str, Any], images_attacked: int | None, images_fooling: int | None
) -> dict[str, Any]:
    """What replaces some of ``values``, those of ``results.compute``; nothing where no attempts are stated.

    The rated images are a sample of the successes, as the catalogue takes no others. So the share of attempts that fool
    and are not noticed is the rate of success times the share of unnoticed images among those known to fool.
    """
    if not images_attacked or images_fooling is None:
        return {}
    rate = images_fooling / images_attacked
    unnoticed, known = values["fools_unnoticed"], values["images_modified"] - values["images_unverified"]
    if images_fooling == 0:
        unnoticed_attempts: float | None = 0.0
    elif unnoticed is None or not known:
        unnoticed_attempts = None
    else:
        unnoticed_attempts = rate * (unnoticed * values["images_modified"] / known)
    return {"attack_success_rate": rate, "fools_unnoticed": unnoticed_attempts}
