"""A file of tests, imported and instantiated for one device type."""

from __future__ import annotations

import importlib.util
import os
import sys
import unittest
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch_dml  # noqa: F401 - before PyTorch's machinery, which looks for backends when it is imported

# The name in PyTorch's machinery for the devices of all out-of-tree backends.
BACKEND = "privateuse1"


def instantiated_as(device: str) -> str:
    """The device type for which PyTorch's machinery instantiates tests: "privateuse1" for "dml"."""
    kind = torch.device(device).type
    return BACKEND if kind == torch._C._get_privateuse1_backend_name() else kind


@cache
def cases(file: Path, device: str) -> dict[str, type[unittest.TestCase]]:
    """The classes of a file's device-generic tests for a device type, by name. The file's output is
    printed.
    """
    os.environ["PYTORCH_TESTING_DEVICE_ONLY_FOR"] = instantiated_as(device)
    base = _base(device)
    module = _imported(file)
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)]
    return {value.__name__: value for value in found if value is not base}


def names(case: type[unittest.TestCase]) -> list[str]:
    """The tests of a class."""
    return list(unittest.TestLoader().getTestCaseNames(case))


def renamed(case: str, name: str, device: str, other: str) -> tuple[str, str]:
    """A class's and a test's name for another device type."""
    kind, to = torch.device(device).type, torch.device(other).type
    before, _, after = name.rpartition(f"_{kind}")
    return case.removesuffix(kind.upper()) + to.upper(), f"{before}_{to}{after}"


def _base(device: str) -> Any:
    """PyTorch's base class of the tests for a device type."""
    from torch.testing._internal import common_device_type as machinery

    if instantiated_as(device) == BACKEND:
        # The base class gets the backend's name when the first test of a process is instantiated,
        # and later tests have it in their names. It is set now, so that a test has the same name
        # whatever was instantiated before.
        machinery.PrivateUse1TestBase.setUpClass()
    kind = torch.device(device).type
    return next(base for base in machinery.device_type_test_bases if base.device_type == kind)


def _imported(file: Path) -> ModuleType:
    """Import a file under its own name, as `python FILE` would, so that it can import the files of
    its folder.
    """
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[file.stem]
        raise
    return module
