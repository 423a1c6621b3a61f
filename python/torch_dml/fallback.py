"""Operators that ran on the CPU because the device has no kernel for them."""

from __future__ import annotations

import json

from torch_dml import loader


def fallback_count() -> int:
    """Return how many operators fell back to the CPU since the process started or the last
    reset.
    """
    return int(loader.plugin().dml_plugin_fallback_count())


def fallbacks() -> dict[str, int]:
    """Return how often each operator fell back to the CPU, by name: {"aten::linalg_qr": 2}."""
    return {name: sum(reasons.values()) for name, reasons in fallback_reasons().items()}


def fallback_reasons() -> dict[str, dict[str, int]]:
    """Return why operators fell back to the CPU, and how often, by name: {"aten::linalg_qr":
    {"kernel qr needs 64-bit floating point (float64), which Adreno 690 does not have": 2}}.
    """
    text = loader.plugin().dml_plugin_fallbacks_json()
    found: dict[str, dict[str, int]] = json.loads(text) if text else {}
    return found


def reset_fallbacks() -> None:
    """Set the counts back to 0."""
    loader.plugin().dml_plugin_reset_fallbacks()
