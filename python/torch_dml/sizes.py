"""Human-readable numbers of bytes."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Return a number of bytes with a unit: "1.5 GiB"."""
    power = 0
    while abs(count) >= 1024 and power < len(_UNITS) - 1:
        count /= 1024
        power += 1
    return f"{count:.{1 if power else 0}f} {_UNITS[power]}"
