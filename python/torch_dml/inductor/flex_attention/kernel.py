"""The kernels: which rows a workgroup has, which columns it meets, and what becomes of a score.

The result is `softmax(scores) @ values`, with a softmax that is updated as columns arrive (Milakov
and Gimelshein, "Online normalizer calculation for softmax", 2018). Gradients compute the weights
again, from the sums of exponentials that were saved (Dao et al., "FlashAttention: fast and
memory-efficient exact attention with IO-awareness", 2022). A workgroup adds to its own rows alone,
so that results are the same in each run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.ir import IRNode, TensorBox
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import V, ops
from torch.utils._sympy.functions import CeilDiv, FloorDiv
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from torch_dml.inductor.flex_attention.functions import (
    BATCH,
    GRADIENT,
    HEAD,
    KEY,
    QUERY,
    SCORE,
    Contribution,
    Result,
)
from torch_dml.inductor.flex_attention.statements import Statements
from torch_dml.inductor.flex_attention.tile import COLUMNS, PATCH, Matrix, Patch, Shape, Tile, shape
from torch_dml.inductor.kernel import DmlKernel
from torch_dml.inductor.overrides import converted
from torch_dml.inductor.types import computed, is_narrow, stored
from torch_dml.inductor.values import Place, TextVariable


class Role(enum.Enum):
    """What is computed. Rows are queries in the first two, and keys in the others."""

    OUTPUT = enum.auto()
    QUERY_GRADIENT = enum.auto()
    KEY_GRADIENT = enum.auto()
    VALUE_GRADIENT = enum.auto()

    @property
    def rows_are_keys(self) -> bool:
        """Whether columns are queries."""
        return self in (Role.KEY_GRADIENT, Role.VALUE_GRADIENT)

    @property
    def needs_score_gradients(self) -> bool:
        """Whether the weights are those of gradients of scores."""
        return self in (Role.QUERY_GRADIENT, Role.KEY_GRADIENT)


@dataclasses.dataclass(frozen=True)
class Blocks:
    """For each block of rows the blocks of columns that it meets."""

    rows: int
    columns: int
    # Numbers of blocks, and their indices, of those to which the mask function applies, and of
    # those without masked scores, if they are listed.
    partial: tuple[IRNode, IRNode]
    full: tuple[IRNode, IRNode] | None


@dataclasses.dataclass(frozen=True)
class Problem:
    """What the kernels of one call have in common. Tensors are buffers, or views of them."""

    query: IRNode
    key: IRNode
    value: IRNode
    scale: float
    # By the names of what they are given.
    score: Result
    mask: Result
    # By rows of queries and of keys.
    blocks: tuple[Blocks, Blocks | None]
    # Of the backward pass: the gradient of the output, the saved base-2 logarithms of sums of
    # exponentials, and for each query what is subtracted from its weights' gradients.
    gradient: IRNode | None = None
    saved: IRNode | None = None
    deltas: IRNode | None = None
    score_gradient: Result = None


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Buffers that a kernel writes."""

    out: IRNode
    # Of the forward pass: for each query the base-2 logarithm of the sum of exponentials, and the
    # largest score times the same factor.
    saved: IRNode | None = None
    largest: IRNode | None = None
    # For each contribution to the gradient of a captured tensor its values, and their positions.
    contributions: Sequence[tuple[Contribution, IRNode, IRNode]] = ()

    def nodes(self) -> list[IRNode]:
        """Return the buffers."""
        nodes = [self.out, *(x for x in (self.saved, self.largest) if x is not None)]
        return [*nodes, *(x for _, *both in self.contributions for x in both)]


def inputs(problem: Problem, role: Role) -> list[IRNode]:
    """Return the tensors that a kernel reads, but for captured ones."""
    blocks = problem.blocks[role.rows_are_keys]
    assert blocks is not None
    nodes = [problem.query, problem.key, problem.value, *blocks.partial, *(blocks.full or ())]
    return [*nodes, *(x for x in (problem.gradient, problem.saved, problem.deltas) if x is not None)]


class FlexKernel(DmlKernel):
    """A kernel of attention with functions of scores and masks."""

    def __init__(self, problem: Problem, role: Role, outputs: Outputs, captured: Sequence[IRNode]) -> None:
        """Begin a kernel that reads and writes these tensors."""
        numel = sympy.S.One
        buffers = [*inputs(problem, role), *outputs.nodes(), *captured]
        self._wide = not SIMDScheduling.can_use_32bit_indexing(numel, buffers)
        super().__init__({"x": numel}, features=SIMDKernelFeatures([], numel))
        self.problem, self.role, self.outputs = problem, role, outputs
        blocks = problem.blocks[role.rows_are_keys]
        assert blocks is not None
        self.blocks = blocks
        # What the functions are given, by name.
        self.given: dict[str, TextVariable] = {}
        kind = computed(problem.query.get_dtype())
        width, depth = int(outputs.out.get_size()[-1]), int(problem.query.get_size()[-1])
        self.shape: Shape = shape(kind, self.blocks.rows, width, depth)
        self.workgroup = self.shape.threads
        self.statements = Statements(self.compute, self.declarations, self._scope)

    def _write_positions(self) -> None:
        """Positions are the tile's."""

    def get_index_dtype_as_torch_dtype(self) -> torch.dtype:
        return torch.int64 if self._wide else torch.int32

    def place_of(self, buffer: IndentedBuffer) -> Place:
        return Place.BODY

    @contextlib.contextmanager
    def _scope(self) -> Iterator[None]:
        """Forget the values of a block behind it."""
        known = dict(self.cse._cache)
        yield
        self.cse._cache = known

    def load(self, name: str, index: sympy.Expr) -> TextVariable:
        return self.given[name] if name in self.given else super().load(name, index)

    # ---- sizes

    @functools.cached_property
    def _sizes(self) -> dict[str, sympy.Expr]:
        query, key = self.problem.query.get_size(), self.problem.key.get_size()
        return {
            "batches": query[0],
            "key_batches": key[0],
            "heads": query[1],
            "key_heads": key[1],
            "shared_by": FloorDiv(query[1], key[1]),
            "queries": query[2],
            "keys": key[2],
        }

    @property
    def _rows(self) -> sympy.Expr:
        return self._sizes["keys" if self.role.rows_are_keys else "queries"]

    @property
    def _tiles_of_block(self) -> sympy.Expr:
        return CeilDiv(sympy.Min(self._rows, self.blocks.rows), self.shape.rows)

    @property
    def _tiles(self) -> sympy.Expr:
        return CeilDiv(self._rows, self.blocks.rows) * self._tiles_of_block

    @property
    def _slices(self) -> int:
        return -(-int(self.outputs.out.get_size()[-1]) // self.shape.width)

    def groups(self) -> sympy.Expr:
        """Return the number of workgroups."""
        sizes = self._sizes
        planes = "key_batches key_heads" if self.role.rows_are_keys else "batches heads"
        return functools.reduce(lambda x, name: x * sizes[name], planes.split(), self._tiles * self._slices)

    # ---- memory

    def _size(self, expr: Any) -> str:
        return self._write_index(sympy.sympify(expr), self.compute)

    def _int(self, number: int) -> str:
        return f"{number}:{self._index}"

    def _at(self, node: IRNode, position: Sequence[str]) -> str:
        """Return the index of an element, for `load` and `store`."""
        s, layout = self.statements, node.get_layout()
        terms = [self._size(layout.offset)] if layout.offset != 0 else []
        for at, stride in zip(position, layout.stride, strict=True):
            terms.append(at if stride == 1 else s.value(self._index, f"mul {at}, {self._size(stride)}"))
        index = s.chain(self._index, "add", terms or [self._int(0)])
        return index if self._wide else s.value("u32", f"bitcast {index}")

    def _load(self, node: IRNode, position: Sequence[str]) -> str:
        """Return an element, in the type that it is computed with."""
        dtype = node.get_dtype()
        memory = self.args.input(node.get_name())
        load = f"load @{memory}[{self._at(node, position)}]"
        if not is_narrow(dtype):
            return self.statements.value(computed(dtype), load)
        word = self.statements.value("u32", load)
        return self.statements.value(computed(dtype), f"decode_{stored(dtype)} {word}")

    def _store(self, node: IRNode, position: Sequence[str], value: str) -> None:
        """Store an element of the type that it is computed with."""
        dtype = node.get_dtype()
        if is_narrow(dtype):
            value = self.statements.value("u32", f"encode_{stored(dtype)} {value}")
        elif computed(dtype) != self.shape.kind and dtype.is_floating_point:
            value = self.statements.value(computed(dtype), f"convert {value}")
        self.statements.line(f"store @{self.args.output(node.get_name())}[{self._at(node, position)}], {value}")

    def _plane(self, node: IRNode, batch: str, head: str) -> Matrix:
        """Return the matrix of one head."""

        def load(row: str, column: str) -> str:
            return self._load(node, [batch, head, row, column])

        return Matrix(load, self._size(node.get_size()[2]), int(node.get_size()[3]))

    # ---- the text

    def write(self) -> None:
        """Write the kernel."""
        with self:
            self._write()

    def _write(self) -> None:
        s, index, size = self.statements, self._index, self._size
        group = s.value("u32", f"add {s.value('u32', 'mul group.y, groups.x')}, group.x")
        group = s.value(index, f"{'convert' if self._wide else 'bitcast'} {group}")
        self._leave_if(f"ge {group}, {size(self.groups())}")
        unit, part = self._split(group, self._int(self._slices))
        plane, tile = self._split(unit, size(self._tiles))
        rows_are_keys = self.role.rows_are_keys
        batch, head = self._split(plane, size(self._sizes["key_heads" if rows_are_keys else "heads"]))
        block, of_block = self._split(tile, size(self._tiles_of_block))
        first = s.value(index, f"mul {block}, {self._int(self.blocks.rows)}")
        end = s.value(index, f"add {first}, {self._int(self.blocks.rows)}")
        end = s.value(index, f"min {end}, {size(self._rows)}")
        row0 = s.value(index, f"add {first}, {s.value(index, f'mul {of_block}, {self._int(self.shape.rows)}')}")
        self._leave_if(f"ge {row0}, {end}")
        x0 = s.value(index, f"mul {part}, {self._int(self.shape.width)}")
        is_first = s.value("bool", f"eq {part}, {self._int(0)}")
        worker = _Worker(self, Tile(s, self.shape, index, row0, x0), end, block, is_first)
        if self.role == Role.OUTPUT:
            worker.write_output(batch, head)
        elif self.role == Role.QUERY_GRADIENT:
            worker.add_gradients(batch, head, self._key_batch(batch), self._key_head(head))
        else:
            self._for_each_query_head(worker, batch, head)
        if self.role != Role.OUTPUT:
            worker.store(batch, head, [])

    def _leave_if(self, condition: str) -> None:
        self.statements.line(f"if {self.statements.value('bool', condition)} {{ return }}")

    def _split(self, number: str, by: str) -> tuple[str, str]:
        """Return quotient and remainder of a number that is not negative."""
        s = self.statements
        quotient = s.value(self._index, f"div {number}, {by}")
        return quotient, s.value(self._index, f"sub {number}, {s.value(self._index, f'mul {quotient}, {by}')}")

    @property
    def _shares_keys(self) -> bool:
        """Whether all batches have the same keys."""
        sizes = self._sizes
        return not V.graph.sizevars.evaluate_expr(sympy.Eq(sizes["batches"], sizes["key_batches"]))

    def _key_batch(self, batch: str) -> str:
        return self._int(0) if self._shares_keys else batch

    def _key_head(self, head: str) -> str:
        return self.statements.value(self._index, f"div {head}, {self._size(self._sizes['shared_by'])}")

    def _for_each_query_head(self, worker: _Worker, key_batch: str, key_head: str) -> None:
        """Add the gradients of all heads of queries that attend to a head of keys."""
        s, sizes = self.statements, self._sizes
        shared_by = self._size(sizes["shared_by"])
        count = self._size(sizes["shared_by"] * sizes["batches"]) if self._shares_keys else shared_by
        first = s.value(self._index, f"mul {key_head}, {shared_by}")
        with s.loop(self._index, self._int(0), count, self._int(1)) as number:
            further, of_head = self._split(number, shared_by)
            batch = further if self._shares_keys else key_batch
            worker.add_gradients(batch, s.value(self._index, f"add {first}, {of_head}"), key_batch, key_head)

    # ---- the functions

    def evaluated(self, result: Result) -> TextVariable:
        """Write a function's result of what is given."""
        assert isinstance(result, TensorBox)
        value = result.make_loader()(())
        return getattr(value, "value", value)  # type: ignore[no-any-return]

    def give(self, name: str, text: str, dtype: torch.dtype, size: sympy.Expr | None = None) -> None:
        """Give the functions a value; an index is less than `size`."""
        bounds = ValueRanges.unknown()
        if size is not None:
            size = V.graph.sizevars.simplify(size)
            bounds = ValueRanges(0, int(size) - 1) if size.is_Integer and size > 0 else ValueRanges(0, int_oo)
            if self._wide:
                text = self.statements.value("i32", f"convert {text}")
        variable = self.cse.newvar(bounds, dtype, ())
        variable.text = text
        self.given[name] = variable

    def position_in(self, contribution: Contribution) -> str:
        """Write which element of a gradient a contribution is added to."""
        position: sympy.Expr = sympy.S.Zero
        for index, size in zip(contribution.indices, contribution.size, strict=True):
            value = index.make_loader()(())
            position = position * size + ops.indirect_indexing(value, size)
        return converted(self.index_value(position), torch.int64).text


class _Worker:
    """Writes what a workgroup does with its rows."""

    def __init__(self, kernel: FlexKernel, tile: Tile, end: str, block: str, is_first: str) -> None:
        """The rows end before `end`, and are of a block of the mask; `is_first` is whether the
        workgroup's columns of the result are the first.
        """
        self.kernel, self.tile, self.end, self.block, self.is_first = kernel, tile, end, block, is_first
        self.problem, self.statements = kernel.problem, kernel.statements
        self.index, self.kind = kernel._index, kernel.shape.kind
        self.narrow = is_narrow(self.problem.query.get_dtype())

    # ---- columns

    @contextlib.contextmanager
    def _columns(self, batch: str, head: str) -> Iterator[tuple[str, str, str | None]]:
        """Write a loop over the tiles of columns that the rows meet: the first column, the end of
        its block, and whether the mask function applies, if it does not always.
        """
        s, kernel, blocks, index = self.statements, self.kernel, self.kernel.blocks, self.index
        columns = kernel._size(kernel._sizes["queries" if kernel.role.rows_are_keys else "keys"])

        def place(node: IRNode, *more: str) -> list[str]:
            """A mask that is the same for batches or heads has one."""
            sizes = [kernel._size(size) for size in node.get_size()[:2]]
            return [s.value(index, f"rem {at}, {size}") for at, size in zip((batch, head), sizes, strict=True)] + [
                self.block,
                *more,
            ]

        def count(numbers: IRNode) -> str:
            number = kernel._load(numbers, place(numbers))
            return s.value(index, f"convert {number}") if index == "i64" else number

        partial = count(blocks.partial[0])
        total = partial
        if blocks.full is not None:
            total = s.value(index, f"add {partial}, {count(blocks.full[0])}")
        with s.loop(index, kernel._int(0), total, kernel._int(1)) as number:
            is_partial = None
            if blocks.full is None:
                block = kernel._load(blocks.partial[1], place(blocks.partial[1], number))
            else:
                is_partial = s.value("bool", f"lt {number}, {partial}")
                listed = s.variable("i32", "0:i32")
                with s.when(is_partial):
                    s.line(f"store {listed}, {kernel._load(blocks.partial[1], place(blocks.partial[1], number))}")
                with s.when(s.value("bool", f"not {is_partial}")):
                    of_full = s.value(index, f"sub {number}, {partial}")
                    s.line(f"store {listed}, {kernel._load(blocks.full[1], place(blocks.full[1], of_full))}")
                block = s.value("i32", f"load {listed}")
            if index == "i64":
                block = s.value(index, f"convert {block}")
            first = s.value(index, f"mul {block}, {kernel._int(blocks.columns)}")
            end = s.value(index, f"add {first}, {kernel._int(blocks.columns)}")
            end = s.value(index, f"min {end}, {columns}")
            with s.loop(index, first, end, kernel._int(COLUMNS)) as column0:
                yield column0, end, is_partial

    def _give_position(self, batch: str, head: str, row: str, column: str) -> None:
        """Give the functions a score's position; outside of the matrix the nearest in it."""
        sizes = self.kernel._sizes
        query, key = (column, row) if self.kernel.role.rows_are_keys else (row, column)
        for name, at, size in (
            (BATCH, batch, "batches"),
            (HEAD, head, "heads"),
            (QUERY, query, "queries"),
            (KEY, key, "keys"),
        ):
            self.kernel.give(name, at, torch.int32, sizes[size])

    def _held(self, positions: Sequence[str], end: str) -> list[str]:
        last = self.statements.value(self.index, f"sub {end}, {self.kernel._int(1)}")
        return [self.statements.value(self.index, f"min {at}, {last}") for at in positions]

    def _visible(
        self, batch: str, head: str, rows: Sequence[str], columns: Sequence[str], ends: tuple[str, str], only: str | None
    ) -> Patch:
        """Return which scores of the patch are not masked; `only` is whether the function applies.
        Masked are those outside of the matrix, too.
        """
        s = self.statements
        inside = [[s.value("bool", f"lt {at}, {end}") for at in of] for of, end in zip((rows, columns), ends, strict=True)]
        within = [[s.value("bool", f"and {row}, {column}") for column in inside[1]] for row in inside[0]]
        held_rows, held_columns = self._held(rows, ends[0]), self._held(columns, ends[1])

        def masks() -> Patch:
            found = []
            for row in held_rows:
                found.append([])
                for column in held_columns:
                    self._give_position(batch, head, row, column)
                    found[-1].append(converted(self.kernel.evaluated(self.problem.mask), torch.bool).text)
            return found

        if only is None:
            return [
                [s.value("bool", f"and {x}, {y}") for x, y in zip(*both, strict=True)]
                for both in zip(within, masks(), strict=True)
            ]
        bits = s.variable("u32", "4294967295:u32")
        with s.when(only):
            words = []
            for n, mask in enumerate(mask for row in masks() for mask in row):
                words.append(s.value("u32", f"select {mask}, {1 << n}:u32, 0:u32"))
            s.line(f"store {bits}, {s.chain('u32', 'or', words)}")
        word = s.value("u32", f"load {bits}")
        for n in range(PATCH * PATCH):
            bit = s.value("u32", f"and {word}, {1 << n}:u32")
            seen = s.value("bool", f"ne {bit}, 0:u32")
            row = within[n // PATCH]
            row[n % PATCH] = s.value("bool", f"and {row[n % PATCH]}, {seen}")
        return within

    # ---- scores

    def _dtype(self) -> torch.dtype:
        return torch.float64 if self.kind == "f64" else torch.float32

    def _scaled(self, products: Patch) -> Patch:
        scale = f"{self.problem.scale!r}:{self.kind}"
        return [[self.statements.value(self.kind, f"mul {x}, {scale}") for x in row] for row in products]

    def _score(self, score: str) -> str:
        """Return what the score function makes of a score."""
        self.kernel.give(SCORE, score, self._dtype())
        return converted(self.kernel.evaluated(self.problem.score), self._dtype()).text

    def _exp(self, x: str) -> str:
        """Return an exponential. Where matrices have 16 bits it is the adapter's own power of two,
        as the operator's is.
        """
        s = self.statements
        if not self.narrow:
            return s.value(self.kind, f"exp {x}")
        return s.value(self.kind, f"fast_exp2 {s.value(self.kind, f'mul {x}, {math.log2(math.e)!r}:f32')}")

    def write_output(self, batch: str, head: str) -> None:
        """Write the forward pass."""
        s, kernel, problem, tile, kind = self.statements, self.kernel, self.problem, self.tile, self.kind
        key_batch, key_head = kernel._key_batch(batch), kernel._key_head(head)
        query = kernel._plane(problem.query, batch, head)
        key = kernel._plane(problem.key, key_batch, key_head)
        value = kernel._plane(problem.value, key_batch, key_head)
        # For each row the largest score, and this invocation's part of the sum of exponentials.
        largest = [s.variable(kind, f"-inf:{kind}") for _ in range(PATCH)]
        shares = [s.variable(kind, f"0.0:{kind}") for _ in range(PATCH)]
        with self._columns(batch, head) as (column0, end, only):
            scores = self._scaled(tile.product(query, key, column0))
            columns = tile.columns(column0)
            visible = self._visible(batch, head, tile.rows, columns, (self.end, end), only)
            rows, held = self._held(tile.rows, self.end), self._held(columns, end)
            for i, row in enumerate(scores):
                for j, score in enumerate(row):
                    self._give_position(batch, head, rows[i], held[j])
                    row[j] = s.value(kind, f"select {visible[i][j]}, {self._score(score)}, -inf:{kind}")
            now = tile.reduced([s.chain(kind, "maximum", row) for row in scores], "maximum")
            weights: Patch = []
            for i, row in enumerate(scores):
                before = s.value(kind, f"load {largest[i]}")
                top = s.value(kind, f"maximum {before}, {now[i]}")
                # As long as all columns are masked the largest is -inf, and no usable base.
                none = s.value("bool", f"eq {top}, -inf:{kind}")
                base = s.value(kind, f"select {none}, 0.0:{kind}, {top}")
                shrink = self._exp(s.value(kind, f"sub {before}, {base}"))
                weights.append([self._exp(s.value(kind, f"sub {score}, {base}")) for score in row])
                share = s.value(kind, f"mul {s.value(kind, f'load {shares[i]}')}, {shrink}")
                s.line(f"store {shares[i]}, {s.chain(kind, 'add', [share, *weights[-1]])}")
                s.line(f"store {largest[i]}, {top}")
                tile.shrink(i, shrink)
            tile.accumulate(weights, value, column0, end)
        totals = tile.reduced([s.value(kind, f"load {share}") for share in shares], "add")
        self._save(batch, head, totals, largest)
        self.store(batch, head, totals)

    def _save(self, batch: str, head: str, totals: Sequence[str], largest: Sequence[str]) -> None:
        """Store the logarithms of the rows' sums, and the rows' largest scores."""
        s, kind, outputs = self.statements, self.kind, self.kernel.outputs
        assert outputs.saved is not None and outputs.largest is not None
        saves = s.value("bool", f"eq {self.tile.patch_column}, 0")
        saves = s.value("bool", f"and {saves}, {self.is_first}")
        for row, total, memory in zip(self.tile.rows, totals, largest, strict=True):
            inside = s.value("bool", f"lt {row}, {self.end}")
            with s.when(s.value("bool", f"and {saves}, {inside}")):
                top = s.value(kind, f"load {memory}")
                log = s.value(kind, f"add {s.value(kind, f'log {total}')}, {top}")
                none = s.value("bool", f"eq {total}, 0.0:{kind}")
                log = s.value(kind, f"select {none}, -inf:{kind}, {log}")
                for node, number in ((outputs.saved, log), (outputs.largest, top)):
                    number = s.value(kind, f"mul {number}, {math.log2(math.e)!r}:{kind}")
                    self.kernel._store(node, [batch, head, row], number)

    # ---- gradients

    def add_gradients(self, batch: str, head: str, key_batch: str, key_head: str) -> None:
        """Add what one head of queries contributes to the gradient of the rows."""
        s, kernel, problem, tile, kind = self.statements, self.kernel, self.problem, self.tile, self.kind
        assert problem.gradient is not None
        gradient = kernel._plane(problem.gradient, batch, head)
        query = kernel._plane(problem.query, batch, head)
        key = kernel._plane(problem.key, key_batch, key_head)
        value = kernel._plane(problem.value, key_batch, key_head)
        rows_are_keys = kernel.role.rows_are_keys
        left, right = (key, query) if rows_are_keys else (query, key)
        x = {Role.QUERY_GRADIENT: key, Role.KEY_GRADIENT: query, Role.VALUE_GRADIENT: gradient}[kernel.role]
        with self._columns(batch, head) as (column0, end, only):
            scores = self._scaled(tile.product(left, right, column0))
            slopes = None
            if kernel.role.needs_score_gradients:
                sides = (value, gradient) if rows_are_keys else (gradient, value)
                slopes = tile.product(*sides, column0)
            columns = tile.columns(column0)
            visible = self._visible(batch, head, tile.rows, columns, (self.end, end), only)
            rows, held = self._held(tile.rows, self.end), self._held(columns, end)
            queries = held if rows_are_keys else rows
            logs, deltas = self._of_queries(batch, head, queries)
            weights: Patch = []
            for i, row in enumerate(scores):
                weights.append([])
                for j, score in enumerate(row):
                    self._give_position(batch, head, rows[i], held[j])
                    of_query = j if rows_are_keys else i
                    log = logs[of_query]
                    weight = self._exp(s.value(kind, f"sub {self._score(score)}, {log}"))
                    # A query that attends to no key has no gradients.
                    seen = s.value("bool", f"gt {log}, -inf:{kind}")
                    seen = s.value("bool", f"and {seen}, {visible[i][j]}")
                    if slopes is not None:
                        slope = s.value(kind, f"sub {slopes[i][j]}, {deltas[of_query]}")
                        slope = s.value(kind, f"mul {weight}, {slope}")
                        slope = s.value(kind, f"select {seen}, {slope}, 0.0:{kind}")
                        weight = self._through_score(slope)
                        self._contribute([batch, head, rows[i], held[j]], seen)
                    weights[-1].append(s.value(kind, f"select {seen}, {weight}, 0.0:{kind}"))
            tile.accumulate(weights, x, column0, end)

    def _of_queries(self, batch: str, head: str, queries: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the logarithms and the deltas of queries."""
        s, problem, kind = self.statements, self.problem, self.kind
        assert problem.saved is not None and problem.deltas is not None
        found: list[list[str]] = []
        for node in (problem.saved, problem.deltas):
            numbers = [self.kernel._load(node, [batch, head, query]) for query in queries]
            if computed(node.get_dtype()) != kind:
                numbers = [s.value(kind, f"convert {number}") for number in numbers]
            found.append(numbers)
        logs = [s.value(kind, f"mul {number}, {math.log(2)!r}:{kind}") for number in found[0]]
        return logs, found[1]

    def _through_score(self, slope: str) -> str:
        """Return the gradient of a product of query and key, from that of its score."""
        if self.problem.score_gradient is None:
            return f"0.0:{self.kind}"
        self.kernel.give(GRADIENT, slope, self._dtype())
        result = converted(self.kernel.evaluated(self.problem.score_gradient), self._dtype()).text
        return self.statements.value(self.kind, f"mul {result}, {self.problem.scale!r}:{self.kind}")

    def _contribute(self, position: Sequence[str], seen: str) -> None:
        """Store what a score adds to gradients of captured tensors, and where."""
        s = self.statements
        for contribution, values, places in self.kernel.outputs.contributions:
            value = converted(self.kernel.evaluated(contribution.value), self._dtype()).text
            place = self.kernel.position_in(contribution)
            with s.when(s.value("bool", f"and {seen}, {self.is_first}")):
                self.kernel._store(values, position, value)
                self.kernel._store(places, position, place)

    def store(self, batch: str, head: str, totals: Sequence[str]) -> None:
        """Store the rows of the result."""
        out = self.kernel.outputs.out

        def store(row: str, column: str, value: str) -> None:
            self.kernel._store(out, [batch, head, row, column], value)

        self.tile.store(self.end, int(out.get_size()[3]), store, totals)
