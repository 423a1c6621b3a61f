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

from torch_dml.inductor.types import computed, is_narrow

# Elements of an invocation.
LANES = 4
LANES_OF_HALVES = 8
# Bytes of a vector, at most.
VECTOR = 16
# Kernels of fewer elements have too few invocations left.
FEWEST_ELEMENTS = 1 << 16
# Functions of an element: beyond these the computation takes longer than the memory does, and
# registers become scarce.
MOST_CALLS = 32
MOST_CALLS_OF_HALVES = 8

_NAME = re.compile(r"%\w+")
_DEFINITION = re.compile(r"(%\w+): (\w+) = (.*)")
_LOAD = re.compile(r"load @(\w+)\[(.+)\]")
_STORE = re.compile(r"store @(\w+)\[(.+)\], (.+)")


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


def lanes_of(body: str, accesses: Accesses, numel: sympy.Expr) -> int:
    """Return how many elements an invocation should have."""
    if not numel.is_Integer or int(numel) < FEWEST_ELEMENTS or not accesses.runs:
        return 1
    if "{" in body or "atomic" in body:
        return 1
    calls = body.count("call ")
    if accesses.widest <= 2 and calls <= MOST_CALLS_OF_HALVES and int(numel) % LANES_OF_HALVES == 0:
        return LANES_OF_HALVES
    return LANES if calls <= MOST_CALLS and int(numel) % LANES == 0 else 1


class Repeated:
    """A kernel's lines, with those that depend on the element repeated for each lane."""

    def __init__(self, lines: Sequence[str], accesses: Accesses, lanes: int, index: str) -> None:
        """Repeat lines for so many lanes. `index` is the type of indices; `%xindex` is that of the
        first lane's element.
        """
        self.accesses, self.lanes, self.index = accesses, lanes, index
        self.lines: list[str] = []
        self.numbers = 0
        # Values that each lane has, and whose name for the first is the name itself.
        self.own = {"%xindex"}
        for lane in range(1, lanes):
            self.lines.append(f"{self._in('%xindex', lane)}: {index} = add %xindex, {lane}:{index}")
        for line in lines:
            self._repeat(line.strip())

    def text(self) -> list[str]:
        """Return the lines that a store needs."""
        kept: list[str] = []
        needed: set[str] = set()
        for line in reversed(self.lines):
            definition = _DEFINITION.fullmatch(line)
            if definition is None or definition[1] in needed:
                kept.append(line)
                needed |= set(_NAME.findall(definition[3] if definition is not None else line))
        return kept[::-1]

    def _in(self, text: str, lane: int) -> str:
        """Return a text with the values of a lane."""
        if lane == 0:
            return text
        return _NAME.sub(lambda name: f"{name[0]}_{lane}" if name[0] in self.own else name[0], text)

    def _repeat(self, line: str) -> None:
        definition = _DEFINITION.fullmatch(line)
        if definition is None:
            self._store(line)
            return
        name, kind, instruction = definition.groups()
        load = _LOAD.fullmatch(instruction)
        if load is not None and name in self.accesses.runs:
            self._load(name, kind, *load.groups())
        elif name in self.accesses.same or not any(value in self.own for value in _NAME.findall(instruction)):
            self.lines.append(line)
        else:
            self.own.add(name)
            self.lines += [self._in(line, lane) for lane in range(self.lanes)]

    def _define(self, kind: str, instruction: str) -> str:
        self.numbers += 1
        name = f"%lane{self.numbers}"
        self.lines.append(f"{name}: {kind} = {instruction}")
        return name

    def _vectors(self, at: str, dtype: torch.dtype) -> tuple[int, list[str]]:
        """Write the indices of vectors, and return how many elements each has."""
        elements = min(self.lanes, VECTOR // dtype.itemsize)
        kind = "i64" if self.index == "i64" else "u32"
        first = self._define(kind, f"div {at}, {elements}:{kind}")
        others = range(1, self.lanes // elements)
        return elements, [first, *(self._define(kind, f"add {first}, {i}:{kind}") for i in others)]

    def _load(self, name: str, kind: str, memory: str, at: str) -> None:
        dtype = self.accesses.runs[name]
        self.own.add(name)
        if not _is_vector(dtype, self.lanes):
            self.lines += [self._in(f"{name}: {kind} = load @{memory}[{at}]", lane) for lane in range(self.lanes)]
            return
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

    def _store(self, line: str) -> None:
        store = _STORE.fullmatch(line)
        assert store is not None, line
        memory, at, value = store.groups()
        dtype = self.accesses.runs.get(f"{memory} {at}")
        if dtype is None or not _is_vector(dtype, self.lanes):
            self.lines += [self._in(line, lane) for lane in range(self.lanes)]
            return
        values = [self._in(value, lane) for lane in range(self.lanes)]
        of = "u32" if is_narrow(dtype) else computed(dtype)
        words = list(self._words(values, dtype)) if is_narrow(dtype) else values
        elements, indices = self._vectors(at, dtype)
        size = elements * dtype.itemsize // 4
        for number, index in enumerate(indices):
            vector = self._define(f"{of}x{size}", f"vector {', '.join(words[number * size : (number + 1) * size])}")
            self.lines.append(f"store @{memory}[{index}], {vector}")

    def _words(self, values: Sequence[str], dtype: torch.dtype) -> Iterator[str]:
        """Write words of elements that have 8 or 16 bits."""
        per, bits = 4 // dtype.itemsize, 8 * dtype.itemsize
        for first in range(0, len(values), per):
            word = self._define("u32", f"and {values[first]}, {(1 << bits) - 1}")
            for i in range(1, per):
                element = self._define("u32", f"and {values[first + i]}, {(1 << bits) - 1}")
                word = self._define("u32", f"or {word}, {self._define('u32', f'shl {element}, {i * bits}')}")
            yield word


def _is_vector(dtype: torch.dtype, lanes: int) -> bool:
    """Return whether lanes' elements are words of a vector of 2 or 4."""
    return dtype.itemsize <= 4 and min(lanes * dtype.itemsize, VECTOR) in (8, 16)
