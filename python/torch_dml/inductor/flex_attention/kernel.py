"""A kernel's text: which rows a workgroup has, its memory, and what the functions are given."""

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
from torch_dml.inductor.flex_attention.rows import Rows
from torch_dml.inductor.flex_attention.statements import Statements
from torch_dml.inductor.flex_attention.tile import Matrix, Tile, shape
from torch_dml.inductor.kernel import DmlKernel
from torch_dml.inductor.overrides import converted
from torch_dml.inductor.types import computed, is_narrow, stored
from torch_dml.inductor.values import Place, TextVariable


class FlexKernel(DmlKernel):
    """A kernel of attention with functions of scores and masks. A workgroup has a tile of rows of
    one head, in one block of the mask, and a slice of the result's columns.
    """

    def __init__(self, problem: Problem, role: Role, outputs: Outputs, captured: Sequence[IRNode]) -> None:
        """Begin a kernel that reads and writes these tensors."""
        buffers = [*problem.inputs(role), *outputs.nodes(), *captured]
        self._wide = not SIMDScheduling.can_use_32bit_indexing(sympy.S.One, buffers)
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
        self._shared_by = FloorDiv(query[1], key[1])
        self._planes = (key if role.rows_are_keys else query)[:2]
        self._rows = self.sizes[KEY if role.rows_are_keys else QUERY]
        self._width = int(outputs.out.get_size()[3])
        self.shape = shape(self.kind, self._rows, self.blocks.rows, self._width, int(query[3]))
        self.workgroup = self.shape.threads
        self.statements = Statements(self.compute, self.declarations, self._scope)
        self._given: dict[str, TextVariable] = {}

    def _write_positions(self) -> None:
        """They are those of the tile."""

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

    # ---- workgroups

    @property
    def _tiles_of_block(self) -> sympy.Expr:
        return CeilDiv(sympy.Min(self._rows, self.blocks.rows), self.shape.rows)

    @property
    def _tiles(self) -> sympy.Expr:
        return CeilDiv(self._rows, self.blocks.rows) * self._tiles_of_block

    @property
    def _slices(self) -> int:
        return -(-self._width // self.shape.width)

    def groups(self) -> sympy.Expr:
        """Return the number of workgroups."""
        return sympy.Mul(*self._planes) * self._tiles * self._slices

    def write(self) -> None:
        """Write the kernel."""
        s, index, size = self.statements, self.index, self.size
        group = s.value("u32", f"add {s.value('u32', 'mul group.y, groups.x')}, group.x")
        group = s.value(index, f"{'convert' if self._wide else 'bitcast'} {group}")
        self._leave_if(f"ge {group}, {size(self.groups())}")
        unit, part = self._split(group, size(self._slices))
        plane, tile = self._split(unit, size(self._tiles))
        batch, head = self._split(plane, size(self._planes[1]))
        block, of_block = self._split(tile, size(self._tiles_of_block))
        first = s.value(index, f"mul {block}, {size(self.blocks.rows)}")
        end = s.value(index, f"min {s.value(index, f'add {first}, {size(self.blocks.rows)}')}, {size(self._rows)}")
        row0 = s.value(index, f"add {first}, {s.value(index, f'mul {of_block}, {size(self.shape.rows)}')}")
        self._leave_if(f"ge {row0}, {end}")
        x0 = s.value(index, f"mul {part}, {size(self.shape.width)}")
        is_first = s.value("bool", f"eq {part}, {size(0)}")
        rows = Rows(self, Tile(s, self.shape, index, row0, x0), end, block, is_first)
        if self.role == Role.OUTPUT:
            rows.write_output(batch, head, *self._keys_of(batch, head))
        elif self.role == Role.QUERY_GRADIENT:
            rows.add_gradients(batch, head, *self._keys_of(batch, head))
            rows.store(batch, head, [])
        else:
            with self._queries_of(batch, head) as (query_batch, query_head):
                rows.add_gradients(query_batch, query_head, batch, head)
            rows.store(batch, head, [])

    def _leave_if(self, condition: str) -> None:
        self.statements.line(f"if {self.statements.value('bool', condition)} {{ return }}")

    def _split(self, number: str, by: str) -> tuple[str, str]:
        """Return quotient and remainder of a number that is not negative."""
        s = self.statements
        quotient = s.value(self.index, f"div {number}, {by}")
        return quotient, s.value(self.index, f"sub {number}, {s.value(self.index, f'mul {quotient}, {by}')}")

    def _keys_of(self, batch: str, head: str) -> tuple[str, str]:
        """Return batch and head of the keys that a head of queries attends to."""
        key_batch = self.size(0) if self.problem.shares_keys else batch
        return key_batch, self.statements.value(self.index, f"div {head}, {self.size(self._shared_by)}")

    @contextlib.contextmanager
    def _queries_of(self, key_batch: str, key_head: str) -> Iterator[tuple[str, str]]:
        """Write a loop over batches and heads of the queries that attend to a head of keys."""
        s, shares_keys = self.statements, self.problem.shares_keys
        shared_by = self.size(self._shared_by)
        count = self.size(self._shared_by * self.sizes[BATCH]) if shares_keys else shared_by
        first = s.value(self.index, f"mul {key_head}, {shared_by}")
        with s.loop(self.index, self.size(0), count, self.size(1)) as number:
            batch, of_head = self._split(number, shared_by)
            yield batch if shares_keys else key_batch, s.value(self.index, f"add {first}, {of_head}")

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
        return index if self._wide else s.value("u32", f"bitcast {index}")

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
            if self._wide:
                text = self.statements.value("i32", f"convert {text}")
        self._given[name] = self.cse.newvar(bounds, dtype, ())
        self._given[name].text = text

    def result(self, result: Result, dtype: torch.dtype) -> str:
        """Write what a function returns of what it was given, and return the value."""
        assert isinstance(result, TensorBox)
        value = result.make_loader()(())
        return converted(getattr(value, "value", value), dtype).text

    def position_in(self, contribution: Contribution) -> str:
        """Write which element of a gradient a contribution is added to, and return its number."""
        position: sympy.Expr = sympy.S.Zero
        for index, size in zip(contribution.indices, contribution.size, strict=True):
            position = position * size + ops.indirect_indexing(index.make_loader()(()), size)
        return converted(self.index_value(position), torch.int64).text
