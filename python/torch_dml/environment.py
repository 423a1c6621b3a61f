"""The environment variables, and the values that they understand. A value that makes no sense is named and ignored.

The engine and the plugin read some of them by themselves and ignore the same values; what is wrong is said here, once.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda value: value in words


def _whole_number(low: int, high: int) -> Callable[[str], bool]:
    return lambda value: re.fullmatch(r"\d{1,9}", value.strip()) is not None and low <= int(value) <= high


def _seconds(value: str) -> bool:
    try:
        return 0 < float(value) < 1e9
    except ValueError:
        return False


def _folder(value: str) -> bool:
    # One that does not exist is made.
    return Path(value).is_dir() or not os.path.lexists(value)


def _log_filter(value: str) -> bool:
    level, target = "(trace|debug|info|warn|error|off)", r"[a-z_][\w:]*(\[[^\]]*\])?"
    return all(re.fullmatch(f"{level}|{target}(={level})?", part.strip(), re.I | re.A) for part in value.split(","))


# The libraries that torch_dml.integrations has a file for.
INTEGRATIONS = (
    "accelerate",
    "lightning",
    "safetensors",
    "stable_baselines3",
    "torch_geometric",
    "transformers",
    "ultralytics",
)


def _integrations(value: str) -> bool:
    if value == "none":
        return True
    names = value.split(",")
    without = {name.startswith("-") for name in names}
    return len(without) == 1 and {name.removeprefix("-") for name in names} <= set(INTEGRATIONS)


# Name, whether a value is understood, and what is said of one that is not.
VARIABLES: dict[str, tuple[Callable[[str], bool], str]] = {
    "TORCH_DML_AUTOLOAD": (
        lambda value: value.strip().lower() in {"0", "false", "no", "off", "1", "true", "yes", "on"},
        "0 or 1",
    ),
    "TORCH_DML_AS_CUDA": (_one_of("0", "1", "force"), "0, 1 or force"),
    "TORCH_DML_INTEGRATIONS": (
        _integrations,
        f"none, or some of {', '.join(INTEGRATIONS)} with commas between, all with or all without - before",
    ),
    "TORCH_DML_SOFTWARE": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_DEVICES_PER_ADAPTER": (_whole_number(1, 8), "a number from 1 to 8"),
    "TORCH_DML_FUSION": (_one_of("0", "1", "wait"), "0, 1 or wait"),
    "TORCH_DML_MATRIX_UNITS": (_one_of("0", "1", "emulate"), "0, 1 or emulate"),
    "TORCH_DML_AUTOTUNE": (_one_of("0", "1", "all"), "0, 1 or all"),
    "TORCH_DML_SUBMIT_THREAD": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_SUBMIT_WORK": (_whole_number(1, 999_999_999), "a number from 1 to 999999999"),
    "TORCH_DML_AUTOGRAD_THREADS": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_FOREACH": (_one_of("single"), "single"),
    "TORCH_DML_RECURRENCE": (_one_of("loop", "steps"), "loop or steps"),
    "TORCH_DML_WINOGRAD": (_one_of("0", "1", "always"), "0, 1 or always"),
    "TORCH_DML_FALLBACK": (_one_of("error"), "error"),
    "TORCH_DML_CACHE_DIR": (_folder, "a folder"),
    "TORCH_DML_COMPILE_THREADS": (_whole_number(1, 1024), "a number from 1 to 1024"),
    "TORCH_DML_TIMEOUT_S": (_seconds, "a number of seconds"),
    "TORCH_DML_VALIDATION": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_NO_MARKER": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_QUIRKS": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_CHECK_KERNELS": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_SPIRV_DIR": (_folder, "a folder"),
    "TORCH_DML_HLSL_DIR": (_folder, "a folder"),
    "TORCH_DML_RECORD": (_one_of("0", "1"), "0 or 1"),
    "TORCH_DML_LOG": (_log_filter, "a level, or TARGET=LEVEL,..."),
}
# These say what the whole program is to run with: it does not start with something else, but fails and names them.
REFUSED = {"TORCH_DML_LIB", "TORCH_DML_PROFILE"}


def get(name: str) -> str | None:
    """Return a variable's value; None if it is unset, empty, or makes no sense."""
    value = os.environ.get(name)
    understood, _ = VARIABLES[name]
    return value if value and understood(value) else None


def chosen_integrations() -> list[str]:
    """Return the libraries that TORCH_DML_INTEGRATIONS allows to integrate with; all when it is unset."""
    value = get("TORCH_DML_INTEGRATIONS") or ""
    names = [] if value == "none" else value.split(",")
    if value.startswith("-") or not value:
        return [name for name in INTEGRATIONS if f"-{name}" not in names]
    return names


def warn_of_nonsense() -> None:
    """Name every variable whose value makes no sense in a warning."""
    for name, (_, expected) in VARIABLES.items():
        if os.environ.get(name) and get(name) is None:
            text = f"{name}={os.environ[name]} is ignored: {expected} is understood"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
