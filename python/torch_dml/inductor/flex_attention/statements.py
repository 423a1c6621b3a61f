"""Statements of a kernel's text: values with new names, and control flow."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from torch._inductor.utils import IndentedBuffer


class Statements:
    """Writes statements. Every value is defined anew: compilers find what is computed twice."""

    def __init__(
        self,
        body: IndentedBuffer,
        declarations: IndentedBuffer,
        scope: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Write to these buffers; `scope` surrounds each block, whose values end with it."""
        self._body = body
        self._declarations = declarations
        self._scope = scope
        self._numbers = itertools.count()

    def line(self, text: str) -> None:
        """Write a statement."""
        self._body.writeline(text)

    def value(self, kind: str, instruction: str) -> str:
        """Write an instruction that gives a value of a type, and return the value."""
        name = f"%v{next(self._numbers)}"
        self.line(f"{name}: {kind} = {instruction}")
        return name

    def chain(self, kind: str, word: str, values: Sequence[str]) -> str:
        """Return several values, combined by an instruction on two."""
        result = values[0]
        for value in values[1:]:
            result = self.value(kind, f"{word} {result}, {value}")
        return result

    def shared(self, kind: str, count: int) -> str:
        """Declare an array of the workgroup, and return its name."""
        name = f"@s{next(self._numbers)}"
        self._declarations.writeline(f"shared {name}: {kind}[{count}]")
        return name

    def variable(self, kind: str, initial: str) -> str:
        """Declare a variable, set it here, and return its name."""
        name = f"@a{next(self._numbers)}"
        self._declarations.writeline(f"var {name}: {kind}")
        self.line(f"store {name}, {initial}")
        return name

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Write what runs under a condition."""
        self.line(f"if {condition} {{")
        with self._body.indent(), self._scope():
            yield
        self.line("}")

    @contextlib.contextmanager
    def loop(self, kind: str, first: str, end: str, step: str, unroll: bool = False) -> Iterator[str]:
        """Write a loop over integers from `first` on, as long as they are less than `end`."""
        at = self.variable(kind, first)
        self.line("loop unroll {" if unroll else "loop {")
        with self._body.indent(), self._scope():
            index = self.value(kind, f"load {at}")
            self.line(f"while {self.value('bool', f'lt {index}, {end}')}")
            yield index
            self.line(f"store {at}, {self.value(kind, f'add {index}, {step}')}")
        self.line("}")
