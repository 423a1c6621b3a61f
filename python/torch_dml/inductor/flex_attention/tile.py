"""A workgroup's tile of scores: products of matrices that are staged in shared memory, and the sum
of its weights times rows of another matrix.

A workgroup owns some rows, and meets 32 columns at a time. An invocation has a patch of 4 rows by 4
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy

from torch_dml.inductor.flex_attention.statements import Statements

# Side of a patch, and of a vector in shared memory.
PATCH = 4
# Invocations along a row.
ACROSS = 8
COLUMNS = ACROSS * PATCH

# Of each row of a patch, a value for each column.
Patch = list[list[str]]
# Returns the element of a row and a column of a matrix.
Load = Callable[[str, str], str]


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory, and its numbers of rows and columns; the latter is known."""

    load: Load
    rows: str
    columns: int


@dataclass(frozen=True)
class Shape:
    """The sizes of a tile, which fit 16 KiB of shared memory."""

    # The type of what is computed with: f32 or f64.
    kind: str
    rows: int
    # Columns of the sums that a workgroup computes.
    width: int
    # Elements of the inner products that one stage holds in shared memory.
    depth: int

    @property
    def threads(self) -> int:
        """The number of invocations."""
        return self.rows // PATCH * ACROSS

    @property
    def pitch(self) -> int:
        """The vectors of the tile's rows for one column, and one more, so that neighbours are in
        different banks.
        """
        return self.rows // PATCH + 1

    @property
    def staged_rows(self) -> int:
        """The rows of the other matrix that one stage holds."""
        return max(8, self.threads * PATCH // self.width)

    def turns(self, depths: Sequence[int]) -> int:
        """Return the turns of loops for one tile of columns: for products of matrices with so many
        columns, and for the sums. Loops over a stage are unrolled.
        """
        return sum(1 - -depth // self.depth for depth in depths) + 1 + COLUMNS // self.staged_rows

    @property
    def vectors(self) -> int:
        """The vectors of shared memory that stages take, and the exchange of numbers of rows."""
        products = self.depth * (self.pitch + ACROSS + 1)
        return max(products, self.staged_rows * self.width // PATCH, self.rows * ACROSS // PATCH)


def shape(kind: str, rows: sympy.Expr, block: int, width: int, depth: int) -> Shape:
    """Return the sizes for rows in blocks, and for so many columns of the sums and elements of the
    inner products.
    """
    limit = 32 if kind == "f64" else 64
    if isinstance(rows, int | sympy.Integer):
        block = min(block, max(16, 1 << (int(rows) - 1).bit_length()))
    of_tile = next((n for n in (64, 32) if n <= limit and block % n == 0), 16)
    width = min(max(COLUMNS, 1 << (width - 1).bit_length()), 2 * limit)
    return Shape(kind, of_tile, width, 8 if kind == "f64" or depth <= 8 else 16)


class Tile:
    """Writes the work of one workgroup on its tile."""

    def __init__(self, statements: Statements, shape: Shape, index: str, row0: str, x0: str) -> None:
        """Declare what it needs; `index` is the type of positions, `row0` the tile's first row and
        `x0` the first column of its sums.
        """
        s = self.statements = statements
        self.shape = shape
        self.index = index
        self.row0, self.x0 = row0, x0
        self.patch_row = s.value("u32", f"div local.x, {ACROSS}")
        self.patch_column = s.value("u32", f"rem local.x, {ACROSS}")
        self.rows = [self._position(row0, self.patch_row, i) for i in range(PATCH)]
        self._stage = s.shared(f"{shape.kind}x4", shape.vectors)
        self._weights = s.shared(f"{shape.kind}x4", COLUMNS * shape.pitch)
        self._sums = [[self._zero() for _ in range(shape.width // ACROSS)] for _ in range(PATCH)]

    def _zero(self) -> str:
        return self.statements.variable(self.shape.kind, f"0.0:{self.shape.kind}")

    def as_index(self, position: str) -> str:
        """Return a position in the tile, a u32, in the type of positions."""
        word = "bitcast" if self.index == "i32" else "convert"
        return self.statements.value(self.index, f"{word} {position}")

    def _position(self, first: str, patch: str, i: int) -> str:
        s = self.statements
        within = s.value("u32", f"mul {patch}, {PATCH}")
        within = s.value("u32", f"add {within}, {i}")
        return s.value(self.index, f"add {first}, {self.as_index(within)}")

    def columns(self, column0: str) -> list[str]:
        """Return the columns of the patch, in the tile's columns from `column0` on."""
        return [self._position(column0, self.patch_column, j) for j in range(PATCH)]

    # ---- inner products

    def product(self, left: Matrix, right: Matrix, column0: str) -> Patch:
        """Return the inner products of the tile's rows of `left` with rows of `right`, from
        `column0` on.
        """
        s, shape = self.statements, self.shape
        sums = [[self._zero() for _ in range(PATCH)] for _ in range(PATCH)]
        offset = shape.depth * shape.pitch
        with s.loop(self.index, f"0:{self.index}", f"{left.columns}:{self.index}", f"{shape.depth}:{self.index}") as at:
            self._put(left, self.row0, at, shape.rows, 0)
            self._put(right, column0, at, COLUMNS, offset)
            s.line("barrier")
            with s.loop("u32", "0:u32", f"{shape.depth}:u32", "1:u32", unroll=True) as k:
                rows = self._vector(k, shape.pitch, self.patch_row, 0)
                columns = self._vector(k, ACROSS + 1, self.patch_column, offset)
                for i, row in enumerate(rows):
                    for j, column in enumerate(columns):
                        self._add(sums[i][j], row, column)
            s.line("barrier")
        return [[s.value(shape.kind, f"load {x}") for x in row] for row in sums]

    def _add(self, total: str, x: str, y: str) -> None:
        s, kind = self.statements, self.shape.kind
        before = s.value(kind, f"load {total}")
        s.line(f"store {total}, {s.value(kind, f'fma {x}, {y}, {before}')}")

    def _vector(self, k: str, pitch: int, at: str, offset: int, memory: str | None = None) -> list[str]:
        s, kind = self.statements, self.shape.kind
        at = s.value("u32", f"add {s.value('u32', f'mul {k}, {pitch}')}, {at}")
        if offset:
            at = s.value("u32", f"add {at}, {offset}")
        vector = s.value(f"{kind}x4", f"load {memory or self._stage}[{at}]")
        return [s.value(kind, f"lane {vector}, {lane}") for lane in range(PATCH)]

    def _lanes(self, count: int) -> list[str]:
        """Return this invocation's part of so many elements, as it is shared among all."""
        s, threads = self.statements, self.shape.threads
        return [s.value("u32", f"add local.x, {first}") for first in range(0, count, threads)]

    def _put(self, matrix: Matrix, row0: str, depth0: str, count: int, offset: int) -> None:
        """Store a stage of so many rows of a matrix. Elements past its last column are zeros; past
        the last row it is read again.
        """
        s, depth, pitch = self.statements, self.shape.depth, count // PATCH + 1
        last = s.value(self.index, f"sub {matrix.rows}, 1:{self.index}")
        loaded = []
        for lane in self._lanes(count * depth):
            # Neighbouring invocations read neighbouring elements.
            k, row = s.value("u32", f"rem {lane}, {depth}"), s.value("u32", f"div {lane}, {depth}")
            position = s.value(self.index, f"add {row0}, {self.as_index(row)}")
            position = s.value(self.index, f"min {position}, {last}")
            column = s.value(self.index, f"add {depth0}, {self.as_index(k)}")
            loaded.append((k, row, self._element(matrix, position, column)))
        for k, row, element in loaded:
            at = s.value("u32", f"add {s.value('u32', f'mul {k}, {pitch}')}, {s.value('u32', f'div {row}, {PATCH}')}")
            at = s.value("u32", f"add {at}, {offset}")
            s.line(f"store {self._stage}[{at}].{s.value('u32', f'rem {row}, {PATCH}')}, {element}")

    def _element(self, matrix: Matrix, row: str, column: str) -> str:
        """Return an element; 0 past the last column."""
        s, kind = self.statements, self.shape.kind
        inside = s.value("bool", f"lt {column}, {matrix.columns}:{self.index}")
        held = s.value(self.index, f"min {column}, {matrix.columns - 1}:{self.index}")
        return s.value(kind, f"select {inside}, {matrix.load(row, held)}, 0.0:{kind}")

    # ---- numbers of rows

    def reduced(self, own: Sequence[str], word: str) -> list[str]:
        """Return a number for each row of the patch, combined over the row's invocations."""
        s, kind = self.statements, self.shape.kind
        per_row = ACROSS // PATCH
        for i, number in enumerate(own):
            row = self._row_of_tile(i)
            at = s.value("u32", f"add {s.value('u32', f'mul {row}, {ACROSS}')}, {self.patch_column}")
            lane = s.value("u32", f"rem {at}, {PATCH}")
            s.line(f"store {self._stage}[{s.value('u32', f'div {at}, {PATCH}')}].{lane}, {number}")
        s.line("barrier")
        results = []
        for i in range(len(own)):
            row = self._row_of_tile(i)
            numbers = [x for half in range(per_row) for x in self._vector(row, per_row, f"{half}:u32", 0)]
            results.append(s.chain(kind, word, numbers))
        s.line("barrier")
        return results

    def _row_of_tile(self, i: int) -> str:
        s = self.statements
        return s.value("u32", f"add {s.value('u32', f'mul {self.patch_row}, {PATCH}')}, {i}")

    # ---- sums

    def shrink(self, i: int, factor: str) -> None:
        """Multiply the sums of a row of the patch."""
        s, kind = self.statements, self.shape.kind
        for total in self._sums[i]:
            before = s.value(kind, f"load {total}")
            s.line(f"store {total}, {s.value(kind, f'mul {before}, {factor}')}")

    def accumulate(self, weights: Patch, x: Matrix, column0: str, column_end: str) -> None:
        """Add the weights times rows of `x`, from `column0` on. Rows from `column_end` on are
        zeros: a weight of 0 times NaN is NaN.
        """
        s, shape, kind = self.statements, self.shape, self.shape.kind
        for j in range(PATCH):
            column = s.value("u32", f"add {s.value('u32', f'mul {self.patch_column}, {PATCH}')}, {j}")
            at = s.value("u32", f"add {s.value('u32', f'mul {column}, {shape.pitch}')}, {self.patch_row}")
            vector = s.value(f"{kind}x4", f"vector {', '.join(row[j] for row in weights)}")
            s.line(f"store {self._weights}[{at}], {vector}")
        with s.loop("u32", "0:u32", f"{COLUMNS}:u32", f"{shape.staged_rows}:u32") as first:
            self._put_rows(x, s.value(self.index, f"add {column0}, {self.as_index(first)}"), column_end)
            s.line("barrier")
            with s.loop("u32", "0:u32", f"{shape.staged_rows}:u32", "1:u32", unroll=True) as of_stage:
                of_tile = s.value("u32", f"add {first}, {of_stage}")
                own = self._vector(of_tile, shape.pitch, self.patch_row, 0, self._weights)
                for part in range(shape.width // COLUMNS):
                    elements = self._vector(of_stage, shape.width // PATCH, self.patch_column, part * ACROSS)
                    for weight, sums in zip(own, self._sums, strict=True):
                        for total, element in zip(sums[part * PATCH :], elements, strict=False):
                            self._add(total, weight, element)
            s.line("barrier")

    def _put_rows(self, x: Matrix, row0: str, end: str) -> None:
        s, width, kind = self.statements, self.shape.width, self.shape.kind
        last = s.value(self.index, f"sub {end}, 1:{self.index}")
        loaded = []
        for lane in self._lanes(self.shape.staged_rows * width):
            row = s.value(self.index, f"add {row0}, {self.as_index(s.value('u32', f'div {lane}, {width}'))}")
            column = s.value(self.index, f"add {self.x0}, {self.as_index(s.value('u32', f'rem {lane}, {width}'))}")
            element = self._element(x, s.value(self.index, f"min {row}, {last}"), column)
            inside = s.value("bool", f"lt {row}, {end}")
            loaded.append((lane, s.value(kind, f"select {inside}, {element}, 0.0:{kind}")))
        for lane, element in loaded:
            at, of_vector = s.value("u32", f"div {lane}, {PATCH}"), s.value("u32", f"rem {lane}, {PATCH}")
            s.line(f"store {self._stage}[{at}].{of_vector}, {element}")

    def store(self, end: str, columns: int, store: Callable[[str, str, str], None], finish: Sequence[str]) -> None:
        """Store the sums of rows before `end`, each row's divided by a number if there are some; a
        row without weights, whose number is 0, is zero.
        """
        s, kind = self.statements, self.shape.kind
        for i, sums in enumerate(self._sums):
            with s.when(s.value("bool", f"lt {self.rows[i]}, {end}")):
                for n, total in enumerate(sums):
                    first = s.value(self.index, f"add {self.x0}, {n // PATCH * COLUMNS}:{self.index}")
                    column = self._position(first, self.patch_column, n % PATCH)
                    with s.when(s.value("bool", f"lt {column}, {columns}:{self.index}")):
                        value = s.value(kind, f"load {total}")
                        if finish:
                            none = s.value("bool", f"eq {finish[i]}, 0.0:{kind}")
                            value = s.value(kind, f"div {value}, {finish[i]}")
                            value = s.value(kind, f"select {none}, 0.0:{kind}, {value}")
                        store(self.rows[i], column, value)
