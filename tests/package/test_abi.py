"""Python's side of the engine's C interface and plugin/engine.h declare the same functions."""

from __future__ import annotations

import ctypes
import re

import pytest
from torch_dml import abi, engine

from tests.support.environment import ROOT

HEADER = (ROOT / "plugin" / "engine.h").read_text(encoding="utf-8")
TYPES = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "void": None,
    "char*": ctypes.c_char_p,
    "char**": ctypes.POINTER(ctypes.c_char_p),
    "void*": ctypes.c_void_p,
    "void**": ctypes.POINTER(ctypes.c_void_p),
    "int32_t*": ctypes.POINTER(ctypes.c_int32),
    "uint32_t*": ctypes.POINTER(ctypes.c_uint32),
    "uint64_t*": ctypes.POINTER(ctypes.c_uint64),
    "double*": ctypes.POINTER(ctypes.c_double),
    "DmlPoolStats*": ctypes.POINTER(abi.DmlPoolStats),
    "DmlMemoryStats*": ctypes.POINTER(abi.DmlMemoryStats),
    "DmlLaunch*": ctypes.POINTER(abi.DmlLaunch),
    # Types that are opaque for Python.
    "DmlValue*": ctypes.c_void_p,
    "DmlHost*": ctypes.c_void_p,
}


def of_c(declaration: str) -> object:
    """The ctypes type of `const int32_t* name`, and of `const char* const* name`."""
    if "(*" in declaration:
        return ctypes.c_void_p
    found = re.fullmatch(r"(\w+\**) ?\w*", re.sub(r" ?const ?", "", declaration).strip())
    assert found, declaration
    return TYPES[found[1]]


def declared(name: str) -> tuple[object, list[object]]:
    """The result and the arguments of a function in the header, as ctypes types."""
    found = re.search(rf"^([\w ]+\**) ?{name}\((.*?)\);", HEADER, re.MULTILINE | re.DOTALL)
    assert found, f"{name} is not in engine.h"
    # Commas in a function pointer's arguments are not separators.
    arguments = [] if found[2] == "void" else re.split(r",\s*(?![^()]*\))", found[2].strip())
    return of_c(found[1]), [of_c(argument) for argument in arguments]


@pytest.mark.parametrize("name", abi.FUNCTIONS)
def test_prototype(name: str) -> None:
    function = getattr(engine.library(), name)
    assert (function.restype, list(function.argtypes)) == declared(name)


def test_every_function_is_declared() -> None:
    assert set(re.findall(r"^\w.*?\b(dml_\w+)\(", HEADER, re.MULTILINE)) == set(abi.FUNCTIONS)


def test_constants() -> None:
    statuses = dict(re.findall(r"^  DML_(\w+) = (\d+),", HEADER, re.MULTILINE))
    assert all(int(statuses[status.name]) == status for status in abi.DmlStatus)
    assert re.search(rf"^#define DML_ABI_VERSION {abi.ABI_VERSION}u$", HEADER, re.MULTILINE)
