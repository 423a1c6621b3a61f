"""A file of tests, imported and instantiated for one kind of device alone."""

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

# By this name PyTorch's machinery knows the devices of every backend that is not its own.
BACKEND = "privateuse1"


def instantiated_as(device: str) -> str:
    """The kind of device that PyTorch's machinery instantiates tests for: "privateuse1" for
    "dml".
    """
    kind = torch.device(device).type
    return BACKEND if kind == torch._C._get_privateuse1_backend_name() else kind


@cache
def cases(file: Path, device: str) -> dict[str, type[unittest.TestCase]]:
    """The classes of a file's device-generic tests for a kind of device, by name. What the file
    prints is printed.
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
    """A class's and a test's name, as they are for another kind of device."""
    kind, to = torch.device(device).type, torch.device(other).type
    before, _, after = name.rpartition(f"_{kind}")
    return case.removesuffix(kind.upper()) + to.upper(), f"{before}_{to}{after}"


def _base(device: str) -> Any:
    """PyTorch's class that the tests of a device inherit from."""
    from torch.testing._internal import common_device_type as machinery

    if instantiated_as(device) == BACKEND:
        # The base gets the backend's name when the first test of a process is instantiated, and
        # tests have it in theirs from then on. Given now, a test has the same name whatever was
        # instantiated before it.
        machinery.PrivateUse1TestBase.setUpClass()
    kind = torch.device(device).type
    return next(base for base in machinery.device_type_test_bases if base.device_type == kind)


def _imported(file: Path) -> ModuleType:
    """Import a file under its own name, as `python FILE` would, with the files beside it at
    hand.
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
