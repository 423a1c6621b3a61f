"""Pointwise kernels whose invocations have several neighbouring elements, which they load and store
as vectors: one element alone keeps too few bytes on their way for the memory of a large GPU.

The text is that of the kernel with one element: what depends on the element is repeated for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sympy
import torch
from torch.utils._sympy.symbol import SymT, symbol_is_type

from torch_dml.inductor.costs import long_calls
from torch_dml.inductor.types import computed, is_narrow

# Elements of an invocation.
LANES = 4
LANES_OF_HALVES = 8
# Bytes of a vector, at most.
VECTOR = 16
# Kernels of fewer elements have too few invocations left.
FEWEST_ELEMENTS = 1 << 16
# Functions of an element that are not short: beyond these the computation takes longer than the
# memory does, and registers become scarce.
MOST_CALLS = 32
MOST_CALLS_OF_HALVES = 8

_NAME = re.compile(r"%\w+")
_DEFINITION = re.compile(r"(%\w+): (\w+) = (.*)")
_LOAD = re.compile(r"load @(\w+)\[(\S+)\]")
# Its condition, memory, index and value.
_STORE = re.compile(r"(?:if (%\w+) \{ )?store @(\w+)\[(\S+)\], (\S+)(?: \})?")
# Of a variable, and the load of one.
_VARIABLE = re.compile(r"store @\w+, .+")
_VARIABLE_READ = re.compile(r"%\w+: \w+ = load @\w+")


@dataclass
class Accesses:
    """The loads and stores of a kernel, by the values that they define, or their memory and
    index.
    """

    # Neighbouring elements are read at neighbouring places, and their first place is a multiple of
    # the number of elements.
    runs: dict[str, torch.dtype] = field(default_factory=dict)
    # Neighbouring elements read one place.
    same: set[str] = field(default_factory=set)
    widest: int = 1

    def add(self, key: str, distance: int | None, dtype: torch.dtype) -> None:
        """Add a load or a store; `distance` is that of neighbouring elements' places, if known."""
        self.widest = max(self.widest, dtype.itemsize)
        if distance == 1:
            self.runs[key] = dtype
        elif distance == 0:
            self.same.add(key)


def distance(index: sympy.Expr, entries: dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]) -> int | None:
    """Return how far apart in memory neighbouring elements are, if it is 0 or 1 for all that an
    invocation has, and if the first is at a multiple of their number.

    `entries` are the divisors and lengths of symbols that stand for parts of the element's number.
    """
    fast = []
    for symbol in index.free_symbols:
        if symbol_is_type(symbol, SymT.TMP):
            return None
        if symbol not in entries:
            continue
        divisor, length = entries[symbol]
        unit = length if divisor == 1 else divisor
        if not (unit.is_Integer and int(unit) % LANES_OF_HALVES == 0):
            return None
        if divisor == 1:
            fast.append(symbol)
    step = sympy.simplify(index.subs({symbol: symbol + 1 for symbol in fast}, simultaneous=True) - index)
    if step not in (0, 1):
        return None
    if step == 1:
        chunks = {symbol: LANES_OF_HALVES * sympy.Symbol(f"{symbol}_chunk", integer=True) for symbol in fast}
        for term in sympy.Add.make_args(sympy.expand(index.subs(chunks))):
            factor, _ = term.as_coeff_Mul()
            if not factor.is_Integer or int(factor) % LANES_OF_HALVES:
                return None
    return int(step)


def lanes_of(lines: Sequence[str], accesses: Accesses, numel: int | None) -> int:
    """Return how many of a kernel's elements an invocation should have; 1 if they are few, or if
    their number is not known.
    """
    if numel is None or numel < FEWEST_ELEMENTS or not accesses.runs:
        return 1
    if any("atomic" in line or ("{" in line and not _STORE.fullmatch(line)) for line in lines):
        return 1
    calls = long_calls(lines)
    if accesses.widest <= 2 and calls <= MOST_CALLS_OF_HALVES and numel % LANES_OF_HALVES == 0:
        return LANES_OF_HALVES
    return LANES if calls <= MOST_CALLS and numel % LANES == 0 else 1


class Repeated:
    """Lines of a kernel, with those that depend on the element repeated for each lane."""

    def __init__(self, accesses: Accesses, lanes: int, kind: str) -> None:
        """Begin with no lines. `kind` is the type of indices."""
        self.accesses, self.lanes, self.kind = accesses, lanes, kind
        self.lines: list[str] = []
        self.numbers = 0
        # Values that each lane has, and whose name for the first is the name itself.
        self.own: set[str] = set()

    def begin(self, first: str, step: int) -> None:
        """Write the lanes' indices, which are so far apart, from that of the first lane."""
        self.own.add(first)
        for lane in range(1, self.lanes):
            self.lines.append(f"{self._in(first, lane)}: {self.kind} = add {first}, {lane * step}:{self.kind}")

    def once(self, lines: Sequence[str]) -> None:
        """Write lines that are the same for all lanes."""
        self.lines += lines

    def repeat(self, lines: Sequence[str]) -> None:
        """Write lines for each lane. Those that need variables follow the others, lane after
        lane.
        """
        late: list[list[str]] = []
        found: set[str] = set()
        for unit in _units(lines):
            names = {name for line in unit for name in _NAME.findall(line)}
            uses = any(_VARIABLE.fullmatch(line) or _VARIABLE_READ.fullmatch(line) for line in unit)
            if uses or names & found:
                late.append(unit)
                found |= _defined(unit)
            else:
                for lane in range(self.lanes):
                    self._repeat(unit, lane)
        self.own |= found
        for lane in range(self.lanes):
            for unit in late:
                self._repeat(unit, lane)

    def text(self) -> list[str]:
        """Return the lines that a store needs."""
        kept: list[str] = []
        needed: set[str] = set()
        for line in reversed(self.lines):
            definition = _DEFINITION.fullmatch(line)
            if definition is None or definition[1] in needed or "atomic" in line or "exchange" in line:
                kept.append(line)
                needed |= set(_NAME.findall(definition[3] if definition is not None else line))
        return kept[::-1]

    def _in(self, text: str, lane: int) -> str:
        """Return a text with the values of a lane."""
        if lane == 0:
            return text
        return _NAME.sub(lambda name: f"{name[0]}_{lane}" if name[0] in self.own else name[0], text)

    def _repeat(self, unit: Sequence[str], lane: int) -> None:
        if not any(name in self.own for line in unit for name in _NAME.findall(line)):
            if lane == 0:
                self.lines += unit
            return
        if len(unit) > 1:
            self.own |= _defined(unit)
            self.lines += [self._in(line, lane) for line in unit]
            return
        (line,) = unit
        definition = _DEFINITION.fullmatch(line)
        if definition is None:
            self._store(line, lane)
            return
        name, kind, instruction = definition.groups()
        load = _LOAD.fullmatch(instruction)
        dtype = self.accesses.runs.get(name)
        if load is not None and dtype is not None and _is_vector(dtype, self.lanes):
            self.own.add(name)
            if lane == 0:
                self._load(name, kind, load[1], load[2], dtype)
            return
        if name in self.accesses.same:
            if lane == 0:
                self.lines.append(line)
            return
        self.own.add(name)
        self.lines.append(self._in(line, lane))

    def _define(self, kind: str, instruction: str) -> str:
        self.numbers += 1
        name = f"%lane{self.numbers}"
        self.lines.append(f"{name}: {kind} = {instruction}")
        return name

    def _vectors(self, at: str, dtype: torch.dtype) -> tuple[int, list[str]]:
        """Write the indices of vectors, and return how many elements each has."""
        elements = min(self.lanes, VECTOR // dtype.itemsize)
        kind = "i64" if self.kind == "i64" else "u32"
        first = self._define(kind, f"div {at}, {elements}:{kind}")
        others = range(1, self.lanes // elements)
        return elements, [first, *(self._define(kind, f"add {first}, {i}:{kind}") for i in others)]

    def _load(self, name: str, kind: str, memory: str, at: str, dtype: torch.dtype) -> None:
        elements, indices = self._vectors(at, dtype)
        words = elements * dtype.itemsize // 4
        of = "u32" if is_narrow(dtype) else computed(dtype)
        vectors = [self._define(f"{of}x{words}", f"load @{memory}[{index}]") for index in indices]
        for lane in range(self.lanes):
            vector, element = vectors[lane // elements], lane % elements
            if not is_narrow(dtype):
                self.lines.append(f"{self._in(name, lane)}: {kind} = lane {vector}, {element}")
                continue
            per = 4 // dtype.itemsize
            word = self._define("u32", f"lane {vector}, {element // per}")
            bits = 8 * dtype.itemsize
            if element % per:
                word = self._define("u32", f"shr {word}, {element % per * bits}")
            self.lines.append(f"{self._in(name, lane)}: u32 = and {word}, {(1 << bits) - 1}")

    def _store(self, line: str, lane: int) -> None:
        store = _STORE.fullmatch(line)
        dtype = self.accesses.runs.get(f"{store[2]} {store[3]}") if store is not None else None
        is_vector = dtype is not None and _is_vector(dtype, self.lanes)
        if store is None or dtype is None or not is_vector or store[1] in self.own:
            self.lines.append(self._in(line, lane))
            return
        if lane < self.lanes - 1:
            return
        condition, memory, at, value = store.groups()
        values = [self._in(value, lane) for lane in range(self.lanes)]
        of = "u32" if is_narrow(dtype) else computed(dtype)
        words = list(self._words(values, dtype)) if is_narrow(dtype) else values
        elements, indices = self._vectors(at, dtype)
        size = elements * dtype.itemsize // 4
        for number, index in enumerate(indices):
            vector = self._define(f"{of}x{size}", f"vector {', '.join(words[number * size : (number + 1) * size])}")
            stored = f"store @{memory}[{index}], {vector}"
            self.lines.append(f"if {condition} {{ {stored} }}" if condition else stored)

    def _words(self, values: Sequence[str], dtype: torch.dtype) -> Iterator[str]:
        """Write words of elements that have 8 or 16 bits."""
        per, bits = 4 // dtype.itemsize, 8 * dtype.itemsize
        for first in range(0, len(values), per):
            word = self._define("u32", f"and {values[first]}, {(1 << bits) - 1}")
            for i in range(1, per):
                element = self._define("u32", f"and {values[first + i]}, {(1 << bits) - 1}")
                word = self._define("u32", f"or {word}, {self._define('u32', f'shl {element}, {i * bits}')}")
            yield word


def renamed(lines: Sequence[str], suffix: str) -> list[str]:
    """Return lines with a suffix to the names that they define."""
    names = _defined(lines)
    return [_NAME.sub(lambda name: name[0] + suffix if name[0] in names else name[0], line) for line in lines]


def _units(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield lines, and blocks with all that is in their braces."""
    unit: list[str] = []
    depth = 0
    for line in lines:
        unit.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 0:
            yield unit
            unit = []


def _defined(unit: Sequence[str]) -> set[str]:
    return {found[1] for line in unit if (found := _DEFINITION.match(line)) is not None}


def _is_vector(dtype: torch.dtype, lanes: int) -> bool:
    """Return whether lanes' elements are words of a vector of 2 or 4."""
    return dtype.itemsize <= 4 and min(lanes * dtype.itemsize, VECTOR) in (8, 16)
