"""The engine's schemas are those of the running torch: an operator with a different schema would
run on the CPU.
"""

import re

import pytest
import torch
from torch_dml import engine, operators

pytestmark = pytest.mark.smoke


def schemas() -> dict[str, set[str]]:
    """The running torch's schemas by overload name."""
    found: dict[str, set[str]] = {}
    for schema in map(str, torch._C._jit_get_all_schemas()):
        found.setdefault(schema.partition("(")[0], set()).add(schema)
    return found


def test_no_schema_differs_from_torch():
    assert operators.report().changed == ()


def test_every_operator_is_an_overload_of_torch():
    report = operators.report()
    assert set(report.unknown) <= NOT_IN_EVERY_TORCH
    assert report.registered > 700


# Overloads that were added after the oldest supported torch, or removed before the newest.
NOT_IN_EVERY_TORCH = {"aten::cholesky", "aten::cholesky.out"}


def test_schemas_are_whole():
    for schema in engine.schemas():
        assert re.fullmatch(r"(aten|torch_dml|torchvision)::\w+(\.\w+)?\(.*\) -> .+", schema), schema


def test_schemas_are_compared_as_python_prints_them():
    there = schemas()
    same = [schema for schema in engine.schemas() if schema in there.get(schema.partition("(")[0], set())]
    assert len(same) == operators.report().registered + len(operators.report().composite)
