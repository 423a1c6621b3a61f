"""A kernel: its sizes, its memory, and what its functions are given."""

from __future__ import annotations

import contextlib
import functools
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

from torch_dml.inductor.flex_attention.functions import BATCH, HEAD, KEY, QUERY, Contribution, Result
from torch_dml.inductor.flex_attention.problem import Outputs, Problem, Role
from torch_dml.inductor.flex_attention.statements import Statements
from torch_dml.inductor.flex_attention.tile import COLUMNS, Matrix, shape
from torch_dml.inductor.kernel import DmlKernel
from torch_dml.inductor.overrides import converted
from torch_dml.inductor.types import computed, is_narrow, stored
from torch_dml.inductor.values import Place, TextVariable


class FlexKernel(DmlKernel):
    """A kernel of attention with functions of scores and masks."""

    def __init__(self, problem: Problem, role: Role, outputs: Outputs, captured: Sequence[IRNode]) -> None:
        """Begin a kernel that reads and writes these tensors."""
        buffers = [*problem.inputs(role), *outputs.nodes(), *captured]
        self.wide = not SIMDScheduling.can_use_32bit_indexing(sympy.S.One, buffers)
        super().__init__({"x": sympy.S.One}, features=SIMDKernelFeatures([], sympy.S.One))
        self.problem, self.role, self.outputs = problem, role, outputs
        self.blocks = problem.blocks(role)
        # The type that is computed with, and its dtype.
        self.dtype = torch.promote_types(problem.query.get_dtype(), torch.float32)
        self.kind = computed(self.dtype)
        # The type of positions.
        self.index = self._index
        query, key = problem.query.get_size(), problem.key.get_size()
        self.sizes = {BATCH: query[0], HEAD: query[1], QUERY: query[2], KEY: key[2]}
        # Heads of queries for each of keys.
        self.shared_by = FloorDiv(query[1], key[1])
        # Batches and heads of the rows.
        self.planes = (key if role.rows_are_keys else query)[:2]
        self.row_count = self.sizes[KEY if role.rows_are_keys else QUERY]
        self._width = int(outputs.out.get_size()[3])
        self.shape = shape(self.kind, self.row_count, self.blocks.rows, self._width, int(query[3]))
        self.workgroup = self.shape.threads
        self.statements = Statements(self.compute, self.declarations, self._scope)
        self._given: dict[str, TextVariable] = {}

    def _write_positions(self) -> None:
        """They are those of the tile."""

    def get_index_dtype_as_torch_dtype(self) -> torch.dtype:
        return torch.int64 if self.wide else torch.int32

    def place_of(self, buffer: IndentedBuffer) -> Place:
        return Place.BODY

    @contextlib.contextmanager
    def _scope(self) -> Iterator[None]:
        """Forget the values of a block behind it."""
        known = dict(self.cse._cache)
        yield
        self.cse._cache = known

    # ---- workgroups

    @property
    def tiles_of_block(self) -> sympy.Expr:
        """The number of tiles of a block of rows."""
        return CeilDiv(sympy.Min(self.row_count, self.blocks.rows), self.shape.rows)

    @property
    def tiles(self) -> sympy.Expr:
        """The number of tiles of a head."""
        return CeilDiv(self.row_count, self.blocks.rows) * self.tiles_of_block

    @property
    def slices(self) -> int:
        """The number of slices of the result's columns."""
        return -(-self._width // self.shape.width)

    def groups(self) -> sympy.Expr:
        """Return the number of workgroups."""
        return sympy.Mul(*self.planes) * self.tiles * self.slices

    def _turns(self) -> sympy.Expr:
        """Return the turns of loops that an invocation takes if its rows meet all columns."""
        columns = self.sizes[QUERY if self.role.rows_are_keys else KEY]
        depths = [int(self.problem.query.get_size()[3])]
        if self.role.needs_score_gradients:
            depths.append(int(self.problem.value.get_size()[3]))
        tiles = CeilDiv(sympy.Min(columns, self.blocks.columns), COLUMNS)
        of_head = CeilDiv(columns, self.blocks.columns) * (2 + tiles * (1 + self.shape.turns(depths)))
        if not self.role.rows_are_keys:
            return of_head
        return of_head * self.shared_by * (self.sizes[BATCH] if self.problem.shares_keys else 1)

    def launch(self) -> dict[str, sympy.Expr]:
        return {"groups": self.groups(), "turns": self._turns()}

    # ---- memory

    def size(self, expr: Any) -> str:
        """Return a number, or an expression of sizes, in the type of positions."""
        return self._write_index(sympy.sympify(expr), self.compute)

    def _at(self, node: IRNode, position: Sequence[str]) -> str:
        """Return the index of an element, for `load` and `store`."""
        s, layout = self.statements, node.get_layout()
        terms = [self.size(layout.offset)] if layout.offset != 0 else []
        for at, stride in zip(position, layout.stride, strict=True):
            terms.append(at if stride == 1 else s.value(self.index, f"mul {at}, {self.size(stride)}"))
        index = s.chain(self.index, "add", terms)
        return index if self.wide else s.value("u32", f"bitcast {index}")

    def element(self, node: IRNode, position: Sequence[str]) -> str:
        """Return an element of a tensor, in the type that its dtype is computed with."""
        dtype, s = node.get_dtype(), self.statements
        load = f"load @{self.args.input(node.get_name())}[{self._at(node, position)}]"
        if not is_narrow(dtype):
            return s.value(computed(dtype), load)
        return s.value(computed(dtype), f"decode_{stored(dtype)} {s.value('u32', load)}")

    def put(self, node: IRNode, position: Sequence[str], value: str) -> None:
        """Store an element of a tensor: a float, or what its dtype is computed with."""
        dtype, s = node.get_dtype(), self.statements
        if is_narrow(dtype):
            value = s.value("u32", f"encode_{stored(dtype)} {value}")
        elif dtype.is_floating_point and dtype != self.dtype:
            value = s.value(computed(dtype), f"convert {value}")
        s.line(f"store @{self.args.output(node.get_name())}[{self._at(node, position)}], {value}")

    def plane(self, node: IRNode, batch: str, head: str) -> Matrix:
        """Return the matrix of one head."""
        load = functools.partial(self._element_of_plane, node, batch, head)
        return Matrix(load, self.size(node.get_size()[2]), int(node.get_size()[3]))

    def _element_of_plane(self, node: IRNode, batch: str, head: str, row: str, column: str) -> str:
        return self.element(node, [batch, head, row, column])

    # ---- the functions

    def load(self, name: str, index: sympy.Expr) -> TextVariable:
        return self._given[name] if name in self._given else super().load(name, index)

    def give(self, name: str, text: str) -> None:
        """Give the functions a value: a position, or a float."""
        dtype, bounds = self.dtype, ValueRanges.unknown()
        if name in self.sizes:
            size = V.graph.sizevars.simplify(self.sizes[name])
            bounds = ValueRanges(0, int(size) - 1) if size.is_Integer and size > 0 else ValueRanges(0, int_oo)
            dtype = torch.int32
            if self.wide:
                text = self.statements.value("i32", f"convert {text}")
        self._given[name] = self.cse.newvar(bounds, dtype, ())
        self._given[name].text = text

    def result(self, result: Result, dtype: torch.dtype) -> str:
        """Write what a function returns of what it was given, and return the value."""
        assert isinstance(result, TensorBox)
        value: Any = result.make_loader()(())
        return converted(getattr(value, "value", value), dtype).text

    def position_in(self, contribution: Contribution) -> str:
        """Write which element of a gradient a contribution is added to, and return its number."""
        position: sympy.Expr = sympy.S.Zero
        for index, size in zip(contribution.indices, contribution.size, strict=True):
            position = position * size + ops.indirect_indexing(index.make_loader()(()), size)
        return converted(self.index_value(position, torch.int64), torch.int64).text
