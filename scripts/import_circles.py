#!/usr/bin/env python3
"""Find circles of files that import each other, in every crate of the workspace.

Reads `use` and paths that begin with `crate::`, `super::` or `self::`. Tests inside files and `mod` lines do not count,
nor does a crate's root. What a module re-exports counts as an import of that module's file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]

_USE = re.compile(r"\buse\s+((?:crate|super|self)::[^;]+);")
_PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub )?mod \w+ \{.*", re.DOTALL)


def modules_of(source: Path) -> dict[Module, Path]:
    """Return the files of a crate by module path; the root is the empty one."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if parts[-1] in {"mod", "lib", "main"}:
            parts.pop()
        found[tuple(parts)] = file
    return found


def expanded(tree: str) -> list[str]:
    """Return the paths of a `use` tree: `a::{b, c::d}` is a::b and a::c::d."""
    paths: list[str] = []
    prefixes, word = [""], ""
    for c in tree:
        if c == "{":
            prefixes.append(prefixes[-1] + word)
            word = ""
        elif c in ",}":
            if word:
                paths.append(prefixes[-1] + word)
            word = ""
            if c == "}":
                prefixes.pop()
        elif not c.isspace():
            word += c
    if word:
        paths.append(prefixes[-1] + word)
    return [re.sub(r"as[A-Z_]\w*$", "", path) for path in paths]


def imports(module: Module, text: str, modules: dict[Module, Path]) -> Iterator[Module]:
    """Yield the modules whose files a file imports."""
    text = _TESTS.sub("", re.sub(r"//[^\n]*", "", text))
    paths = [path for tree in _USE.findall(text) for path in expanded(tree)]
    paths += _PATH.findall(re.sub(r"\buse\s[^;]+;", "", text))
    for path in paths:
        parts = [part for part in path.split("::") if part]
        at = list(module)
        while parts and parts[0] in {"crate", "super", "self"}:
            head = parts.pop(0)
            at = [] if head == "crate" else at[:-1] if head == "super" else at
        while parts and (*at, parts[0]) in modules:
            at.append(parts.pop(0))
        target = tuple(at)
        if target and target != module and target in modules:
            yield target


def circles(graph: dict[Module, set[Module]]) -> list[list[Module]]:
    """Return the strongly connected components of more than one module (Tarjan, 1972), largest first."""
    index: dict[Module, int] = {}
    low: dict[Module, int] = {}
    stack: list[Module] = []
    found: list[list[Module]] = []

    def visit(module: Module) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            at = stack.index(module)
            component, stack[at:] = stack[at:], []
            if len(component) > 1:
                found.append(sorted(component))

    for module in graph:
        if module not in index:
            visit(module)
    return sorted(found, key=len, reverse=True)


def main() -> int:
    """Print every crate's circles; return 1 if one is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crates", type=Path, default=Path("crates"), help="folder of the crates (%(default)s)")
    parser.add_argument("--max", type=int, default=3, help="files that a circle may have (%(default)s)")
    options = parser.parse_args()
    too_large = False
    for source in sorted(options.crates.glob("*/src")):
        modules = modules_of(source)
        graph = {module: set(imports(module, file.read_text(), modules)) for module, file in modules.items()}
        found = circles(graph)
        sizes = ", ".join(str(len(circle)) for circle in found) or "none"
        print(f"{source.parent.name}: {len(modules)} files, {sum(map(len, graph.values()))} imports, circles: {sizes}")
        for circle in found:
            too_large |= len(circle) > options.max
            print("   ", ", ".join("/".join(module) for module in circle))
    return int(too_large)


if __name__ == "__main__":
    sys.exit(main())
