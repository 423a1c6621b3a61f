"""The Python side of the engine's C interface says what plugin/engine.h declares."""

from __future__ import annotations

import ctypes
import re

import pytest
from torch_dml import engine

from tests.support.environment import ROOT

HEADER = (ROOT / "plugin" / "engine.h").read_text()
TYPES = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "const char*": ctypes.c_char_p,
    "void": None,
    "void*": ctypes.c_void_p,
    "const void*": ctypes.c_void_p,
    "int32_t*": ctypes.POINTER(ctypes.c_int32),
    "uint32_t*": ctypes.POINTER(ctypes.c_uint32),
    "uint64_t*": ctypes.POINTER(ctypes.c_uint64),
    "double*": ctypes.POINTER(ctypes.c_double),
    # Of 64-bit figures only, which Python reads as an array.
    "DmlPoolStats*": ctypes.POINTER(ctypes.c_int64),
}


def declared(name: str) -> tuple[object, list[object]]:
    """The result and the arguments of a function in the header, as ctypes has them."""
    found = re.search(rf"^([\w ]+\*?) ?{name}\(([^)]*)\);", HEADER, re.MULTILINE)
    assert found, f"{name} is not in engine.h"
    arguments = [re.sub(r" ?\w+$", "", argument.strip()) for argument in found[2].split(",") if argument != "void"]
    return TYPES[found[1].strip()], [TYPES[argument] for argument in arguments]


@pytest.mark.parametrize("name", [*engine._CHECKED, *engine._PLAIN])
def test_prototype(name: str) -> None:
    function = getattr(engine.library(), name)
    assert (function.restype, list(function.argtypes)) == declared(name)


def test_constants() -> None:
    statuses = dict(re.findall(r"^  DML_(\w+) = (\d+),", HEADER, re.MULTILINE))
    raised = ("INDEX_ERROR", "TYPE_ERROR", "VALUE_ERROR", "NOT_IMPLEMENTED", "OUT_OF_MEMORY", "DEVICE_LOST")
    for name in (*raised, "INTERRUPTED"):
        assert getattr(engine, f"_{name}") == int(statuses[name])
    assert re.search(rf"^#define DML_ABI_VERSION {engine.ABI_VERSION}u$", HEADER, re.MULTILINE)


def test_pool_statistics_are_figures_of_64_bits() -> None:
    """`host_memory_stats` reads a DmlPoolStats as 22 of them."""
    body = re.search(r"typedef struct DmlPoolStats \{(.*?)\} DmlPoolStats;", HEADER, re.DOTALL)
    assert body
    fields = re.findall(r"(\w+) ([\w, ]+);", re.sub(r"//[^\n]*", "", body[1]))
    figures = {"DmlStat": 4, "int64_t": 1}
    assert sum(figures[kind] * len(names.split(",")) for kind, names in fields) == 22
