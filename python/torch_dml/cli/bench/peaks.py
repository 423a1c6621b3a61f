"""Peak performance of GPUs, from their vendors' data sheets, since Vulkan does not report it.

Dense figures, with accumulation in float32 if the vendor lists both kinds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """The peaks of one GPU."""

    float32: float  # TFLOP/s without matrix units
    half: float  # TFLOP/s of float16 and bfloat16, on matrix units where there are any
    memory: float  # GB/s

    def of(self, bound: str) -> float | None:
        """Return the peak that limits a row: "float32", "half" or "memory"; None for any other."""
        found: float | None = getattr(self, bound, None) if bound else None
        return found


# Parts of the names that drivers report; the first that matches counts.
_PEAKS = {
    "H200": Peak(66.9, 989.4, 4_800),
    "H100 80GB HBM3": Peak(66.9, 989.4, 3_350),
    "A100-SXM4-80GB": Peak(19.5, 312, 2_039),
    "RTX 4090": Peak(82.6, 165.2, 1_008),
    "RX 7900 XTX": Peak(61.4, 122.8, 960),
    "RX 6800 XT": Peak(20.7, 41.5, 512),
    "Arc(TM) A770": Peak(17.2, 137.6, 560),
}


def peak(name: str) -> Peak | None:
    """Return the peaks of the GPU with this name, if they are in the table."""
    return next((found for part, found in _PEAKS.items() if part in name), None)
