"""Integration with libraries that choose a device by themselves: each is modified a little when it
is imported.

Nothing is modified in a process that has CUDA, or if the device is in place of CUDA: libraries find
that.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
import warnings
from types import ModuleType

from torch_dml_autoload import has_own_accelerator

from torch_dml import environment
from torch_dml.backend import AS_CUDA
from torch_dml.integrations.patching import Changes
from torch_dml.on_import import when_imported

# Each integration is a file of this folder, applied to the package with its name, or to these.
PACKAGES: dict[str, tuple[str, ...]] = {name: (name,) for name in environment.INTEGRATIONS}
PACKAGES["lightning"] = ("lightning", "lightning_fabric", "pytorch_lightning")

_active: dict[str, tuple[Changes, str]] = {}


def install() -> None:
    """Let the libraries that TORCH_DML_INTEGRATIONS allows be modified when they are imported."""
    if AS_CUDA:
        return
    for name in environment.chosen_integrations():
        for package in PACKAGES[name]:
            when_imported(package, functools.partial(_integrate, name))


def active() -> dict[str, str]:
    """Return the libraries that were modified, and their versions."""
    return {name: version for name, (changes, version) in _active.items() if not changes.failed}


def _integrate(name: str, module: ModuleType) -> None:
    if _torch_has_an_accelerator():
        return
    integration = importlib.import_module(f"torch_dml.integrations.{name}")
    version = str(getattr(module, "__version__", "unknown"))
    first, end = integration.TESTED
    if not _numbers(first) <= _numbers(version) < _numbers(end):
        warnings.warn(
            f"torch-dml leaves {name} {version} as it is: it was tried with {first} up to, not including, {end}. "
            f'Name the device ("dml") where {name} does not find it. TORCH_DML_INTEGRATIONS=-{name} silences this',
            RuntimeWarning,
            stacklevel=2,
        )
        return
    changes = Changes(name)
    changes.make(integration.apply, module)
    _active[name] = changes, version


@functools.cache
def _torch_has_an_accelerator() -> bool:
    return has_own_accelerator(sys.modules["torch"])


def _numbers(version: str) -> list[int]:
    """Return the release numbers of a version, [2, 6, 0] for 2.6.0rc1."""
    release = re.match(r"\d+(\.\d+)*", version)
    return [int(number) for number in release[0].split(".")] if release else []
