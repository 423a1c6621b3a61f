#!/usr/bin/env python3
"""Find import cycles, of files and of folders, in every crate of the workspace and in the plugin.

Reads `use` and paths that begin with `crate::`, `super::` or `self::`. Tests inside files, `mod`
lines and the crate's root are ignored. An item that a module re-exports counts as an import of that
module's file. In the plugin it reads `#include "..."`; a header and its source file are one module.

The folders of a crate are layers: each imports only from layers below it. The order is not written
down; it follows from the imports as long as they have no cycle. So an import that closes a cycle
between two folders, or between a folder and a file next to it, is an error: it points upward. Known
upward imports are listed in upward_imports.txt. That list can only shrink: an entry whose import
has gone, or points upward no longer, is an error too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

Module = tuple[str, ...]
# The importing file, and the imported one.
Import = tuple[Module, Module]

_USE = re.compile(r"\buse\s+((?:crate|super|self)::[^;]+);")
_PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
_INCLUDE = re.compile(r'#include "([^"]+)"')
_TESTS = re.compile(r"#\[cfg\((?:test|all\(test, [^\n]*\))\)\]\s*(?:pub )?mod \w+ \{.*", re.DOTALL)
_ENTRY = re.compile(r"(\S+): (\S+) -> (\S+)")


def modules_of(source: Path) -> dict[Module, Path]:
    """Return the files of a crate by module path; the root's path is empty."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if parts[-1] in {"mod", "lib", "main"}:
            parts.pop()
        found[tuple(parts)] = file
    return found


def expanded(tree: str) -> list[str]:
    """Return the paths of a `use` tree: `a::{b, c::d}` gives a::b and a::c::d."""
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


def graph_of_crate(source: Path) -> dict[Module, set[Module]]:
    """Return the import graph of a crate's files."""
    modules = modules_of(source)
    return {module: set(imports(module, file.read_text(), modules)) for module, file in modules.items()}


def graph_of_plugin(source: Path) -> dict[Module, set[Module]]:
    """Return the include graph of the plugin's files, without suffixes."""
    graph: dict[Module, set[Module]] = {}
    for file in sorted([*source.rglob("*.h"), *source.rglob("*.cpp")]):
        module = file.relative_to(source).with_suffix("").parts
        included = {Path(name).with_suffix("").parts for name in _INCLUDE.findall(file.read_text())}
        graph.setdefault(module, set()).update(included - {module})
    return graph


def circles(graph: dict[Module, set[Module]]) -> list[list[Module]]:
    """Return the strongly connected components of more than one module (Tarjan, 1972), largest
    first.
    """
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


def beside(one: Import) -> Import | None:
    """Return an import as one between siblings in a folder: the import itself, or the folders of
    the two files below their common folder.

    None if one of the two files belongs to the other's folder: `a` and `a/b`.
    """
    for at, (left, right) in enumerate(zip(*one, strict=False)):
        if left != right:
            return one[0][: at + 1], one[1][: at + 1]
    return None


def neighbours(found: Iterable[Import]) -> dict[Module, set[Module]]:
    """Return the import graph of siblings: folders, and files next to folders."""
    graph: dict[Module, set[Module]] = {}
    for one in found:
        if pair := beside(one):
            graph.setdefault(pair[0], set()).add(pair[1])
            graph.setdefault(pair[1], set())
    return graph


def folder_circles(found: Iterable[Import], folders: set[Module]) -> list[list[Module]]:
    """Return the cycles of siblings that contain at least one folder."""
    return [circle for circle in circles(neighbours(found)) if folders.intersection(circle)]


def upward(found: set[Import], folders: set[Module]) -> list[Import]:
    """Return a small set of imports without which there is no cycle: those that point upward in the
    best order found by a local search.

    The search moves one sibling at a time to where the fewest imports point upward, until no move
    helps.
    """
    against: list[Import] = []
    for circle in folder_circles(found, folders):
        inside = [(one, pair) for one in sorted(found) if (pair := beside(one)) and {*pair} <= {*circle}]
        counts: dict[Import, int] = {}
        for _, pair in inside:
            counts[pair] = counts.get(pair, 0) + 1

        def cost(order: list[Module], counts: dict[Import, int] = counts) -> int:
            place = {neighbour: at for at, neighbour in enumerate(order)}
            return sum(count for (importer, target), count in counts.items() if place[target] > place[importer])

        order = sorted(
            circle, key=lambda one: (sum(n for (_, to), n in counts.items() if to == one), one), reverse=True
        )
        while True:
            moves = [
                [*rest[:at], neighbour, *rest[at:]]
                for neighbour in order
                for rest in [[other for other in order if other != neighbour]]
                for at in range(len(order))
            ]
            best = min(moves, key=cost)
            if cost(best) >= cost(order):
                break
            order = best
        place = {neighbour: at for at, neighbour in enumerate(order)}
        against += [one for one, (importer, target) in inside if place[target] > place[importer]]
    return against


def order_of(found: Iterable[Import], folders: set[Module]) -> list[str]:
    """Return the folders of a crate from the top layer to the bottom one; those of the same layer
    are joined into one text.
    """
    graph = neighbours(found)
    heights: dict[Module, int] = {}

    def height(one: Module) -> int:
        if one not in heights:
            heights[one] = 0  # Cycles of files among themselves are allowed.
            heights[one] = 1 + max(map(height, sorted(graph[one])), default=0)
        return heights[one]

    by_height: dict[int, list[str]] = {}
    for one in sorted(graph):
        if len(one) == 1 and one in folders:
            by_height.setdefault(height(one), []).append(one[0])
    return [" ".join(names) for _, names in sorted(by_height.items(), reverse=True)]


def known_upward(file: Path) -> list[tuple[str, Import]]:
    """Return the entries of a list of known upward imports: crate, file, imported file."""
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            entry = _ENTRY.fullmatch(line)
            if entry is None:
                raise SystemExit(f"{file}: {line!r} is not `crate: from -> to`")
            entries.append((entry[1], (tuple(entry[2].split("/")), tuple(entry[3].split("/")))))
    return entries


def closes_circle(one: Import, found: set[Import], folders: set[Module]) -> bool:
    """Return whether an import is part of a cycle with others."""
    pair = {*(beside(one) or ())}
    return bool(pair) and any(pair <= {*circle} for circle in folder_circles(found | {one}, folders))


def without_known(found: set[Import], known: list[Import], folders: set[Module]) -> tuple[set[Import], list[Import]]:
    """Return the imports that are not in the list of known upward imports, and the entries of the
    list that no longer point upward.
    """
    left = found - {*known}
    stale = [one for one in known if one not in found]
    for one in known:
        if one in found and not closes_circle(one, left, folders):
            stale.append(one)
            left.add(one)
    return left, stale


def text_of(crate: str, one: Import) -> str:
    """Return an import in the form of an entry of the list."""
    return f"{crate}: {'/'.join(one[0])} -> {'/'.join(one[1])}"


def main() -> int:
    """Print every crate's cycles; return 1 if one is too large or a folder imports from a layer
    above it.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crates", type=Path, default=Path("crates"), help="folder of the crates (%(default)s)")
    parser.add_argument("--plugin", type=Path, default=Path("plugin"), help="folder of the plugin (%(default)s)")
    parser.add_argument("--max", type=int, default=3, help="files that a circle may have (%(default)s)")
    parser.add_argument(
        "--upward",
        type=Path,
        default=Path(__file__).with_name("upward_imports.txt"),
        help="imports that are known to point upward, one a line: `crate: from -> to` (%(default)s)",
    )
    options = parser.parse_args()
    known = known_upward(options.upward)
    graphs = {source.parent.name: graph_of_crate(source) for source in sorted(options.crates.glob("*/src"))}
    graphs["plugin"] = graph_of_plugin(options.plugin)
    faults = [f"no longer there: {text_of(crate, one)}" for crate, one in known if crate not in graphs]
    for crate, graph in graphs.items():
        found = circles(graph)
        sizes = ", ".join(str(len(circle)) for circle in found) or "none"
        print(f"{crate}: {len(graph)} files, {sum(map(len, graph.values()))} imports, circles: {sizes}")
        for circle in found:
            names = ", ".join("/".join(module) for module in circle)
            print("   ", names)
            if len(circle) > options.max:
                faults.append(f"{crate}: a circle of {len(circle)} files: {names}")
        folders = {module[:depth] for module in graph for depth in range(1, len(module))}
        edges = {(module, target) for module, targets in graph.items() if module for target in targets}
        left, stale = without_known(edges, [one for name, one in known if name == crate], folders)
        against = upward(left, folders)
        if folders:
            print("    from the top:", " | ".join(order_of(left - {*against}, folders)))
        faults += [f"points upward: {text_of(crate, one)}" for one in against]
        faults += [f"points upward no longer, take it off the list: {text_of(crate, one)}" for one in stale]
    print(f"{len(known)} imports are known to point upward ({options.upward.name})")
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
