"""The tests themselves: each asserts something, and each file is in a folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# Names are unique, so that pytest can import files of all folders.
FILES = sorted(TESTS.glob("*/test_*.py"), key=lambda file: file.name)
# Functions that raise by themselves if something is wrong.
CHECKS = {"raises", "warns", "gradcheck", "gradgradcheck", "opcheck"}


def called(node: ast.AST) -> set[str]:
    """The last names of everything that is called or passed as an argument inside a function: `f`
    for f(), a.f() and map(f, x).
    """
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            for value in (part.func, *part.args):
                if isinstance(value, (ast.Name, ast.Attribute)):
                    names.add(value.id if isinstance(value, ast.Name) else value.attr)
    return names


def asserting(functions: dict[str, ast.AST]) -> set[str]:
    """The names of those functions that assert, directly or through others of them."""
    found = {
        name
        for name, node in functions.items()
        if any(isinstance(part, ast.Assert) for part in ast.walk(node))
        or any(call in CHECKS or call.startswith("assert_") for call in called(node))
    }
    while more := {name for name, node in functions.items() if name not in found and called(node) & found}:
        found |= more
    return found


def functions_of(text: str) -> dict[str, ast.AST]:
    return {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_test_asserts(file: Path) -> None:
    functions = functions_of(file.read_text(encoding="utf-8"))
    silent = {name for name in functions if name.startswith("test_")} - asserting(functions)
    assert not silent, f"tests of {file.name} that assert nothing: {sorted(silent)}"


def test_every_file_of_tests_is_in_a_family() -> None:
    assert sorted(TESTS.rglob("test_*.py"), key=lambda file: file.name) == FILES
    assert len({file.name for file in FILES}) == len(FILES)


def test_a_test_without_an_assertion_is_found() -> None:
    functions = functions_of(
        "def helper(x): assert x\n"
        "def through(x): helper(x)\n"
        "def test_direct(): assert 1\n"
        "def test_through(): through(1)\n"
        "def test_silent(): print(1)\n"
    )
    assert functions.keys() - asserting(functions) == {"test_silent"}
