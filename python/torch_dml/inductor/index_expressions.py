"""Index expressions, which are sympy's, as instructions on integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from torch_dml.inductor.errors import MissingKernelError

# Writes an instruction, and returns its value's text.
Define = Callable[[str], str]


class IndexWriter:
    """Writes index expressions into a kernel's text. All values are of one signed type."""

    def __init__(
        self,
        dtype: torch.dtype,
        symbol: Callable[[sympy.Symbol], str],
        ranges: Callable[[], dict[sympy.Symbol, ValueRanges[Any]]],
        define: Callable[[str, str], str],
    ) -> None:
        """`symbol` returns a symbol's value, `ranges` the bounds of symbols, and `define` the value
        of an instruction with a type.
        """
        self._kind = "i64" if dtype == torch.int64 else "i32"
        self._unsigned = "u64" if dtype == torch.int64 else "u32"
        self._symbol = symbol
        self._ranges = ranges
        self._define = define

    def _is_natural(self, expr: sympy.Expr) -> bool:
        """Return whether an expression is never negative, as far as bounds tell."""
        ranges = self._ranges()
        unknown = ValueRanges(-int_oo, int_oo)
        return bool(bound_sympy(expr, {s: ranges.get(s, unknown) for s in expr.free_symbols}).lower >= 0)

    def _of(self, instruction: str) -> str:
        return self._define(instruction, self._kind)

    def number(self, value: int) -> str:
        """Return a literal of the index type."""
        return f"{value}:{self._kind}"

    def write(self, expr: sympy.Expr) -> str:
        """Return the value of an expression."""
        expr = sympy.sympify(expr)
        if expr.is_Integer:
            return self.number(int(expr))
        if isinstance(expr, sympy.Float) and float(expr).is_integer():
            return self.number(int(expr))
        if isinstance(expr, sympy.Symbol):
            return self._symbol(expr)
        handler = getattr(self, f"_write_{type(expr).__name__}", None)
        if handler is None:
            raise MissingKernelError(f"an index of {type(expr).__name__}: {expr}")
        return str(handler(expr))

    def _chain(self, word: str, terms: list[sympy.Expr]) -> str:
        return reduce(
            lambda left, term: self._of(f"{word} {left}, {self.write(term)}"), terms[1:], self.write(terms[0])
        )

    def _write_Add(self, expr: sympy.Expr) -> str:
        # Constants last: an address often has one.
        terms = sorted(expr.args, key=lambda term: (term.is_number, str(term)))
        return self._chain("add", terms)

    def _write_Mul(self, expr: sympy.Expr) -> str:
        numerator, denominator = expr.as_numer_denom()
        if denominator != 1:
            return self._divided(numerator, denominator)
        return self._chain("mul", sorted(expr.args, key=lambda term: (term.is_number, str(term))))

    def _write_Pow(self, expr: sympy.Expr) -> str:
        base, exponent = expr.args
        if not exponent.is_Integer or int(exponent) < 1:
            raise MissingKernelError(f"an index with a power: {expr}")
        return self._chain("mul", [base] * int(exponent))

    _write_PowByNatural = _write_Pow

    def _write_Identity(self, expr: sympy.Expr) -> str:
        return self.write(expr.args[0])

    def _divided(self, numerator: sympy.Expr, denominator: sympy.Expr) -> str:
        """Return the quotient, rounded down."""
        if self._is_natural(numerator) and self._is_natural(denominator):
            return self._unsigned_of("div", numerator, denominator)
        a, b = self.write(numerator), self.write(denominator)
        quotient, rest = self._of(f"div {a}, {b}"), self._of(f"rem {a}, {b}")
        crosses = self._define(f"ne {rest}, {self.number(0)}", "bool")
        signs = self._of(f"xor {rest}, {b}")
        differ = self._define(f"lt {signs}, {self.number(0)}", "bool")
        both = self._define(f"and {crosses}, {differ}", "bool")
        below = self._of(f"sub {quotient}, {self.number(1)}")
        return self._of(f"select {both}, {below}, {quotient}")

    def _unsigned_of(self, word: str, left: sympy.Expr, right: sympy.Expr) -> str:
        """Unsigned division is the cheaper one."""
        sides = []
        for side in (left, right):
            if side.is_Integer:
                sides.append(f"{int(side)}:{self._unsigned}")
            else:
                sides.append(self._define(f"bitcast {self.write(side)}", self._unsigned))
        return self._of(f"bitcast {self._define(f'{word} {sides[0]}, {sides[1]}', self._unsigned)}")

    def _write_FloorDiv(self, expr: sympy.Expr) -> str:
        return self._divided(*expr.args)

    _write_CleanDiv = _write_FloorDiv

    def _write_CeilDiv(self, expr: sympy.Expr) -> str:
        numerator, denominator = expr.args
        return self._divided(numerator + denominator - 1, denominator)

    def _remainder(self, value: sympy.Expr, modulus: sympy.Expr) -> str:
        """Return the remainder, from 0 to a positive modulus."""
        if self._is_natural(value):
            return self._unsigned_of("rem", value, modulus)
        b = self.write(modulus)
        rest = self._of(f"rem {self.write(value)}, {b}")
        negative = self._define(f"lt {rest}, {self.number(0)}", "bool")
        return self._of(f"select {negative}, {self._of(f'add {rest}, {b}')}, {rest}")

    def _write_ModularIndexing(self, expr: sympy.Expr) -> str:
        value, divisor, modulus = expr.args
        return self._remainder(value if divisor == 1 else functions.FloorDiv(value, divisor), modulus)

    def _write_PythonMod(self, expr: sympy.Expr) -> str:
        return self._remainder(*expr.args)

    _write_Mod = _write_PythonMod

    def _write_Min(self, expr: sympy.Expr) -> str:
        return self._chain("min", list(expr.args))

    def _write_Max(self, expr: sympy.Expr) -> str:
        return self._chain("max", list(expr.args))

    def _write_Abs(self, expr: sympy.Expr) -> str:
        return self._of(f"abs {self.write(expr.args[0])}")

    def _write_Where(self, expr: sympy.Expr) -> str:
        condition, left, right = expr.args
        return self._of(f"select {self.condition(condition)}, {self.write(left)}, {self.write(right)}")

    def condition(self, expr: Any) -> str:
        """Return the value of a relation, or of several."""
        words = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
        if isinstance(expr, sympy.Rel):
            left, right = self.write(expr.lhs), self.write(expr.rhs)
            return self._define(f"{words[expr.rel_op]} {left}, {right}", "bool")
        if isinstance(expr, sympy.And | sympy.Or):
            word = "and" if isinstance(expr, sympy.And) else "or"
            terms = [self.condition(term) for term in expr.args]
            return reduce(lambda left, right: self._define(f"{word} {left}, {right}", "bool"), terms)
        if isinstance(expr, sympy.Not):
            return self._define(f"not {self.condition(expr.args[0])}", "bool")
        if expr in (sympy.true, sympy.false):
            return "true" if expr == sympy.true else "false"
        raise MissingKernelError(f"an index with the condition {expr}")
