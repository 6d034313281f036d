"""The Range header of HTTP, for one range of bytes (RFC 9110, section 14)."""

import re
from typing import NamedTuple

# More digits than any file has; Python itself refuses to read very long ones.
_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


class ByteRange(NamedTuple):
    """Bytes from ``start`` to before ``stop``."""

    start: int
    stop: int


class UnsatisfiableRange(ValueError):
    """The range begins where there is nothing any more."""


def requested_range(header: str, length: int) -> ByteRange | None:
    """What a Range header asks for of ``length`` bytes; None: all of it.

    Other units than bytes, several ranges, and what is no range at all are to be ignored, as the standard allows.
    Raises UnsatisfiableRange.
    """
    match = _RANGE.fullmatch(header)
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:  # the last so many bytes
        start, stop = max(0, length - int(match[2])), length
    else:
        start = int(match[1])
        stop = length if not match[2] else min(int(match[2]) + 1, length)
        if match[2] and int(match[2]) < start:
            return None
    if start >= length or start >= stop:
        raise UnsatisfiableRange(f"there are {length} bytes")
    return ByteRange(start, stop)
