"""The GPUs that torch-dml is made for first: those that nothing else, or little, computes on."""

from __future__ import annotations

import re

_FAMILIES = (
    (r"RX (4[678]0|5[5-9]0)\b|POLARIS", "AMD Polaris"),
    (r"\bVega\b|VEGA|RAVEN|RENOIR|Radeon VII", "AMD Vega"),
    (r"RX 5[3-7]00|NAVI1[024]", "AMD RDNA1"),
    (r"Intel.*(HD Graphics|UHD|Iris)", "Intel before Arc"),
    (r"Adreno", "Qualcomm Adreno"),
    (r"GTX (9|10)\d\d", "an old GeForce"),
)


def family(name: str) -> str | None:
    """Return the family of a GPU by its driver's name for it, if it is one of these: "AMD
    Polaris".
    """
    return next((family for pattern, family in _FAMILIES if re.search(pattern, name)), None)
