"""A kernel's text, from the nodes that Inductor has fused into it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import DeferredLine, PythonPrinter
from torch._inductor.codegen.simd import IterationRangesEntry, SIMDKernel
from torch._inductor.ir import ReductionHint
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._sympy import functions
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.symbol import SymT, symbol_is_type
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from torch_dml.inductor import lanes, row_elements
from torch_dml.inductor.costs import SHORT
from torch_dml.inductor.errors import MissingKernelError
from torch_dml.inductor.index_expressions import IndexWriter
from torch_dml.inductor.lanes import Accesses, distance
from torch_dml.inductor.overrides import DmlOverrides, converted, rounded
from torch_dml.inductor.reductions import Reduction, reduction
from torch_dml.inductor.row_elements import APART, END_OF_ROW, ROW, TOGETHER
from torch_dml.inductor.types import computed, is_narrow, literal, stored
from torch_dml.inductor.values import Place, TextCSE, TextVariable, named

# Invocations of a workgroup.
WORKGROUP = 256
# What is no integer in an index expression.
FRACTIONS = (functions.FloatTrueDiv, functions.IntTrueDiv, functions.FloatPow, functions.ToFloat)
# Operations that are no functions, or short ones.
PLAIN = {
    *SHORT,
    *("load", "store", "store_reduction", "reduction", "constant", "index_expr", "get_index", "check_bounds"),
    *("masked", "to_dtype", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not"),
}
# Of reductions whose neighbouring elements are of different rows.
COLUMNS = (ReductionHint.OUTER, ReductionHint.OUTER_TINY)
# Along the innermost dimension of a pointwise kernel of two dimensions or more, whose workgroups
# are tiles.
TILE = 32


@dataclasses.dataclass(frozen=True)
class Rows:
    """How a workgroup's invocations share the rows of a reduction."""

    # Invocations for each row, a power of two.
    along: int
    # Neighbouring invocations have neighbouring rows, and not neighbouring elements of a row.
    across: bool
    # Elements of an invocation, if it keeps all that it has of a row.
    kept: int = 1

    @property
    def rows(self) -> int:
        """The number of rows of a workgroup."""
        return WORKGROUP // self.along

    @property
    def step(self) -> int:
        """The distance of a row's neighbouring invocations."""
        return self.rows if self.across else 1


class DmlKernel(SIMDKernel[TextVariable]):
    """A pointwise kernel has an invocation for each element. A reduction has a few for each row,
    which keep a short row's elements in registers, and otherwise accumulate in a loop.
    """

    overrides = DmlOverrides  # type: ignore[assignment]
    pexpr = PythonPrinter().doprint
    cse: TextCSE
    # Invocations of a workgroup.
    workgroup = WORKGROUP

    def __init__(self, tiling: dict[str, sympy.Expr], **options: Any) -> None:
        """Begin a kernel over these dimensions."""
        super().__init__(tiling, **options)
        self.cse = TextCSE()
        self.declarations = IndentedBuffer()
        # What follows the loop that is being written.
        self.behind = IndentedBuffer()
        # Whether computations are written behind it.
        self.outside_loops = False
        self.numbers = itertools.count()
        # Indices that were checked, by the names of their values, and whether errors are reported.
        self.held: dict[str, str] = {}
        # Conditions under which indices that are no such values are in range.
        self.inside: list[str] = []
        self.reports = False
        # Loads and stores of a pointwise kernel of one dimension.
        self.accesses = Accesses()
        # The text of the same kernel with several elements for an invocation, and how many.
        self.wide: tuple[str, int] | None = None
        # The values of the dimensions' indices.
        self.positions: dict[str, str] = {}
        self.rows = self._share_rows() if self.inside_reduction else None
        self.header = IndentedBuffer()
        self.parameters: list[str] = []
        # Parameters that are fractions of sizes, by expression and type.
        self.fractions: dict[tuple[sympy.Expr, str], str] = {}
        self._write_positions()

    # ---- what Inductor asks

    def create_cse_var(self, *args: Any, **kwargs: Any) -> TextVariable:
        return TextVariable(*args, **kwargs)

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return computed(dtype)

    def should_use_persistent_reduction(self) -> bool:
        """Return whether invocations keep their elements of a row."""
        if not self.inside_reduction or self.features.get_reduction_hint() in COLUMNS:
            return False
        numel = V.graph.sizevars.simplify(self.features.reduction_numel)
        return numel.is_Integer and _short_rows(int(numel)).kept <= self._most_kept()

    def _most_kept(self) -> int:
        """Return how many elements of a row have a place in an invocation's registers."""
        nodes = list(self.features.scheduler_nodes())
        read = {dep.name for node in nodes for dep in node.read_writes.reads}
        read -= {dep.name for node in nodes for dep in node.read_writes.writes}
        # Functions of 64 bits need many registers.
        words = sum(8 if V.graph.get_dtype(name).itemsize > 4 else 1 for name in read)
        # The best element and its index, of 64 bits, are chosen by many comparisons.
        words += 2 * sum(node.node.data.reduction_type.startswith("arg") for node in self.features.reduction_nodes())
        most = min(row_elements.MOST_KEPT, row_elements.MOST_WORDS // max(words, 1))
        # What several nodes compute of the same elements is computed once.
        counts = [node._body.op_counts for node in nodes]
        names = {name for count in counts for name in count if name not in PLAIN}
        long = sum(max(count[name] for count in counts) for name in names)
        return min(most, row_elements.MOST_CALLS // max(long, 1))

    def place_of(self, buffer: IndentedBuffer) -> Place:
        """Return where what is written to a buffer now is."""
        if buffer is self.indexing_code:
            return Place.INDICES
        if buffer is not self.compute:
            return Place.BODY
        if self.outside_loops:
            return Place.BEHIND
        return Place.LOOP if self._in_loop() else Place.BODY

    def _in_loop(self) -> bool:
        return bool(self.inside_reduction) and not self.persistent_reduction and not self.outside_loops

    def _share_rows(self) -> Rows:
        if self.persistent_reduction:
            return _short_rows(int(self.features.reduction_numel))
        if self.features.get_reduction_hint() in COLUMNS:
            return Rows(WORKGROUP // TILE, across=True)
        return Rows(WORKGROUP, across=False)

    # ---- positions

    @property
    def _index(self) -> str:
        return "i64" if self.get_index_dtype_as_torch_dtype() == torch.int64 else "i32"

    def _static(self, prefix: str) -> int | None:
        """Return a dimension's number of elements, if it is no parameter."""
        numel = V.graph.sizevars.simplify(self.numels[prefix])
        return int(numel) if numel.is_Integer else None

    def _numel(self, prefix: str) -> str:
        """Return a dimension's number of elements: a literal, or a parameter."""
        numel = self._static(prefix)
        if numel is not None:
            return f"{numel}:{self._index}"
        if prefix not in self.parameters:
            self.parameters.append(prefix)
        return f"%{prefix}numel"

    @property
    def _widths(self) -> dict[str, int]:
        """The elements, or rows, of a workgroup in each dimension: the innermost last."""
        loops = [tree.prefix for tree in self.range_trees if not tree.is_reduction]
        if self.rows is not None:
            widths = [1, 1, self.rows.rows]
        elif len(loops) == 1:
            widths = [WORKGROUP]
        else:
            widths = [1, WORKGROUP // TILE, TILE]
        return dict(zip(loops, widths[len(widths) - len(loops) :], strict=True))

    def groups(self) -> sympy.Expr:
        """Return the number of workgroups."""
        numels = {tree.prefix: tree.numel for tree in self.range_trees}
        return functools.reduce(
            lambda count, loop: count * _groups_of(numels[loop[0]], loop[1]), self._widths.items(), sympy.S.One
        )

    def launch(self) -> dict[str, sympy.Expr]:
        """Return what a launch is told beside the arguments."""
        return {"groups": self.groups()}

    def _write_positions(self) -> None:
        """Write the indices of the invocation's element, or row."""
        line, kind, widths = self.header.writeline, self._index, self._widths
        signed = "bitcast" if kind == "i32" else "convert"
        local = dict.fromkeys(widths, "0:u32")
        if self.rows is not None:
            if self.rows.across:
                line(f"%row: u32 = rem local.x, {self.rows.rows}")
                line(f"%rlocal: u32 = div local.x, {self.rows.rows}")
            else:
                line(f"%row: u32 = div local.x, {self.rows.along}")
                line(f"%rlocal: u32 = rem local.x, {self.rows.along}")
            # The row's first invocation.
            line(f"%rowfirst: u32 = mul %row, {1 if self.rows.across else self.rows.along}")
            local["x"] = "%row"
        elif len(widths) == 1:
            local = dict.fromkeys(widths, "local.x")
        else:
            line(f"%xwithin: u32 = rem local.x, {TILE}")
            line(f"%ywithin: u32 = div local.x, {TILE}")
            local |= {"x": "%xwithin", "y": "%ywithin"}

        for prefix, group in self._write_groups(widths):
            line(f"%{prefix}group: {kind} = {signed} {group}")
            line(f"%{prefix}first: {kind} = mul %{prefix}group, {widths[prefix]}:{kind}")
            line(f"%{prefix}local: {kind} = {signed} {local[prefix]}")
            line(f"%{prefix}index: {kind} = add %{prefix}first, %{prefix}local")
            self.positions[f"{prefix}index"] = f"%{prefix}index"
            if self.rows is not None and prefix == "x":
                # Invocations without a row of their own compute the last one again, and store
                # nothing.
                line(f"%xmask: bool = lt %xindex, {self._numel('x')}")
                line(f"%xlast: {kind} = sub {self._numel('x')}, 1:{kind}")
                line(f"%xheld: {kind} = min %xindex, %xlast")
                self.positions["xindex"] = "%xheld"
            else:
                # In a reduction the same for a workgroup, whose invocations meet at barriers.
                line(f"%{prefix}outside: bool = ge %{prefix}index, {self._numel(prefix)}")
                line(f"if %{prefix}outside {{ return }}")
        if self.rows is not None:
            line(f"%rfirst: {kind} = {signed} %rlocal")
            if self.persistent_reduction:
                line(f"%rlast: {kind} = sub {self._numel('r0_')}, 1:{kind}")
                self.positions["r0_index"] = "%rheld"

    def _position_in_kept_row(self) -> list[str]:
        """Return the lines that compute the position of an element. Beyond the row's end it is the
        last one again.
        """
        return [
            "%rmask: bool = le %rfirst, %rlast",
            f"%rheld: {self._index} = min %rfirst, %rlast",
        ]

    def _write_groups(self, widths: dict[str, int]) -> Iterator[tuple[str, str]]:
        """Write the workgroup's number in each dimension. They are launched in one: an adapter
        has room for 65,535 in the others.
        """
        line = self.header.writeline
        rest = "%group"
        if widths:
            # The engine lays too many out in two dimensions.
            line("%above: u32 = mul group.y, groups.x")
            line("%group: u32 = add %above, group.x")
        inner = list(reversed(widths.items()))
        for prefix, width in inner[:-1]:
            numel = self._numel(prefix)
            numel_u32, count = f"%{prefix}numelof", f"%{prefix}groups"
            line(f"{numel_u32}: u32 = {'bitcast' if self._index == 'i32' else 'convert'} {numel}")
            line(f"%{prefix}more: u32 = add {numel_u32}, {width - 1}")
            line(f"{count}: u32 = div %{prefix}more, {width}")
            line(f"%{prefix}at: u32 = rem {rest}, {count}")
            line(f"%{prefix}rest: u32 = div {rest}, {count}")
            yield prefix, f"%{prefix}at"
            rest = f"%{prefix}rest"
        for prefix, _ in inner[-1:]:
            yield prefix, rest

    # ---- indices

    def _ranges(self) -> dict[sympy.Symbol, ValueRanges[Any]]:
        def below(size: sympy.Expr) -> ValueRanges[Any]:
            return ValueRanges(0, int(size) - 1) if size.is_Integer and size > 0 else ValueRanges(0, int_oo)

        ranges: dict[sympy.Symbol, ValueRanges[Any]] = {}
        for symbol, entry in self.range_tree_nodes.items():
            ranges[symbol] = below(V.graph.sizevars.simplify(entry.length))
        for tree in self.range_trees:
            ranges[tree.index_sym()] = below(V.graph.sizevars.simplify(tree.numel))
        return ranges

    def _write_index(self, expr: sympy.Expr, buffer: IndentedBuffer, dtype: torch.dtype | None = None) -> str:
        """Write an index expression, and return its value; of another dtype than indices have, if
        one is given.
        """
        dtype = dtype or self.get_index_dtype_as_torch_dtype()
        wanted = computed(dtype)

        define = functools.partial(self._define, buffer)

        def symbol(of: sympy.Symbol) -> str:
            text, kind = f"%{of.name}", self._index
            if of.name in self.positions:
                text = self.positions[of.name]
            elif of.name in self.held:
                text = self.held[of.name]
            elif symbol_is_type(of, SymT.TMP):
                value = self.cse.varname_map[of.name]
                assert value.dtype is not None
                text, kind = value.text, computed(value.dtype)
            return text if kind == wanted else define(f"convert {text}", wanted)

        ranges = self._ranges()
        expr = self.rename_indexing(expr)
        sizes = {*self.args.sizevars.values()}
        for free in expr.free_symbols:
            if free.name in sizes:
                ranges[free] = ValueRanges(0, int_oo)
            elif symbol_is_type(free, SymT.TMP):
                ranges[free] = self.cse.varname_map[free.name].bounds
        return IndexWriter(dtype, symbol, lambda: ranges, define).write(expr)

    def index_value(self, expr: sympy.Expr, dtype: torch.dtype) -> TextVariable:
        """Return an index expression as a value: of 64 bits, if that is what its bounds need, or of
        a dtype of floats, if it is a fraction.
        """
        expr = self.prepare_indexing(expr)
        if dtype.is_floating_point and expr.has(*FRACTIONS):
            return self._fraction(expr, dtype)
        ranges = self._ranges()
        unknown = ValueRanges(-int_oo, int_oo)
        bounds = bound_sympy(expr, {symbol: ranges.get(symbol, unknown) for symbol in expr.free_symbols})
        limits = torch.iinfo(torch.int32)
        fits = bool(bounds.lower >= limits.min and bounds.upper <= limits.max)
        dtype = self.get_index_dtype_as_torch_dtype() if fits else torch.int64
        return named(self._write_index(expr, self.compute, dtype), dtype)

    def _fraction(self, expr: sympy.Expr, dtype: torch.dtype) -> TextVariable:
        """Return an expression of sizes, which the host computes."""
        if not all(symbol_is_type(symbol, (SymT.SIZE, SymT.PRECOMPUTED_SIZE)) for symbol in expr.free_symbols):
            raise MissingKernelError(f"a fraction of indices: {expr}")
        name = self.fractions.setdefault((expr, computed(dtype)), f"fraction{len(self.fractions)}")
        return named(f"%{name}", dtype)

    def _element(self, index: sympy.Expr, buffer: IndentedBuffer) -> str:
        """Return the index of an element, as `load` and `store` take it; outside of a mask, of the
        first one.
        """
        at = self._write_index(index, buffer)
        kind = self._index
        place = self.place_of(buffer)
        defined = {text: self.cse.varname_map[text.removeprefix("%")].place for text in self.inside}
        conditions = [text for text in self.inside if defined[text].is_visible_at(place)]
        for condition in [*conditions, *([self._load_mask.text] if self._load_mask is not None else [])]:
            at = self._define(buffer, f"select {condition}, {at}, 0:{kind}", kind)
        return at if kind == "i64" else self._define(buffer, f"bitcast {at}", "u32")

    def _define(self, buffer: IndentedBuffer, instruction: str, kind: str) -> str:
        """Write an instruction that gives a value of a type, and return the value."""
        return self.cse.generate(buffer, instruction, dtype=torch.int64, kind=kind).text

    def codegen_iteration_ranges_entry(self, entry: IterationRangesEntry) -> None:
        if entry.root.is_loop:
            buffer = self.indexing_code
        else:
            buffer = self.body if self._in_loop() or self.outside_loops else self.compute
        self.positions[entry.name] = self._write_index(entry.expr, buffer)

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        """Write the report of an index out of range; the access is then one of element 0."""
        if not (lower or upper):
            return
        self.reports = True
        checked, expr = str(expr), self.prepare_indexing(expr)
        define, kind = functools.partial(self._define, self.compute), self._index
        at, limit = self._write_index(expr, self.compute), self._write_index(size, self.compute)
        checks = [define(f"ge {at}, 0:{kind}", "bool")] if lower else []
        checks += [define(f"lt {at}, {limit}", "bool")] if upper else []
        inside = functools.reduce(lambda left, right: define(f"and {left}, {right}", "bool"), checks)
        if self._load_mask is not None:
            outside = define(f"and {self._load_mask.text}, {define(f'not {inside}', 'bool')}", "bool")
        else:
            outside = define(f"not {inside}", "bool")
        self.compute.splice(_report(next(self.numbers), outside, at, limit, kind))
        if isinstance(expr, sympy.Symbol) and symbol_is_type(expr, SymT.TMP):
            self.held[checked] = define(f"select {inside}, {at}, 0:{kind}", kind)
        else:
            self.inside.append(inside)

    # ---- loads and stores

    def _buffer_for(self, index: sympy.Expr) -> IndentedBuffer:
        """Return where a load belongs: outside the loop, if it does not depend on its position."""
        if not self._in_loop() or self._load_mask is not None or self.inside:
            return self.compute
        for symbol in index.free_symbols:
            if symbol_is_type(symbol, SymT.TMP):
                return self.compute
            entry = self.range_tree_nodes.get(symbol)
            if (entry is not None and entry.is_reduction) or symbol.name == "r0_index":
                return self.compute
        return self.body

    def load(self, name: str, index: sympy.Expr) -> TextVariable:
        dtype = V.graph.get_dtype(name)
        memory = self.args.input(name)
        if V.graph.is_unspec_arg(name):
            return TextVariable(memory, ValueRanges.unknown(), dtype, ())
        index = self.prepare_indexing(index)
        buffer = self._buffer_for(index)
        at = self._element(index, buffer)
        load = f"load @{memory}[{at}]"
        if not is_narrow(dtype):
            kind = stored(dtype) if dtype.is_complex else None
            value = self.cse.generate(buffer, load, dtype=dtype, kind=kind)
            self._note(value.text, index, dtype)
            return value
        word = self.cse.generate(buffer, load, dtype=torch.uint32)
        self._note(word.text, index, dtype)
        return self.cse.generate(buffer, f"decode_{stored(dtype)} {word.text}", dtype=dtype)

    def _note(self, key: str, index: sympy.Expr, dtype: torch.dtype) -> None:
        """Note a load or a store."""
        apart = None
        if self._has_lanes() and self._load_mask is None and not self.inside:
            entries = {symbol: (entry.divisor, entry.length) for symbol, entry in self.range_tree_nodes.items()}
            tree = next(tree for tree in self.range_trees if tree.prefix == "x")
            entries[tree.index_sym()] = (sympy.S.One, tree.numel)
            apart = distance(index, entries)
        self.accesses.add(key, apart, dtype)

    def _has_lanes(self) -> bool:
        """Return whether invocations may have several neighbouring elements."""
        return self.rows is None and list(self._widths) == ["x"]

    def _encoded(self, value: TextVariable, dtype: torch.dtype) -> str:
        """Return the element to store of a value."""
        if dtype.is_complex and value.dtype == dtype:
            return value.text
        if is_narrow(dtype):
            return self._define(self.compute, f"encode_{stored(dtype)} {value.text}", "u32")
        return converted(value, dtype).text

    def _guard(self) -> str | None:
        """Return the condition under which this invocation stores."""
        if self.rows is None:
            return None
        masks = ["%xmask"] if "xindex" in self.positions else []
        if self.inside_reduction:
            masks += ["%rmask"] if self.persistent_reduction else []
        elif self.rows.along > 1:
            masks.append(self._define(self.compute, "eq %rlocal, 0", "bool"))
        if len(masks) < 2:
            return masks[0] if masks else None
        return self._define(self.compute, f"and {masks[0]}, {masks[1]}", "bool")

    def store(self, name: str, index: sympy.Expr, value: TextVariable, mode: Any = None) -> None:
        memory = self.args.output(name)
        dtype = V.graph.get_dtype(name)
        index = self.prepare_indexing(index)
        at = self._element(index, self.compute)
        element = self._encoded(value, dtype)
        guard = self._guard()
        if mode == "atomic_add":
            if dtype.is_floating_point or is_narrow(dtype):
                raise MissingKernelError(f"atomic additions of {dtype}")
            line = f"%old{next(self.numbers)}: {computed(dtype)} = atomic_add @{memory}[{at}], {element}"
        elif mode is None:
            line = f"store @{memory}[{at}], {element}"
            self._note(f"{memory} {at}", index, dtype)
        else:
            raise MissingKernelError(f"stores by {mode}")
        self.compute.writeline(DeferredLine(name, f"if {guard} {{ {line} }}" if guard else line))

    # ---- reductions

    def reduction(
        self,
        dtype: torch.dtype,
        src_dtype: torch.dtype,
        reduction_type: Any,
        value: TextVariable | tuple[TextVariable, ...],
    ) -> Any:
        key = (src_dtype, reduction_type, value)
        if key not in self.cse.reduction_cache:
            self.cse.reduction_cache[key] = self._reduction(dtype, src_dtype, reduction_type, value)  # type: ignore[index]
        return self.cse.reduction_cache[key]  # type: ignore[index]

    def _reduction(
        self,
        dtype: torch.dtype,
        src_dtype: torch.dtype,
        name: str,
        value: TextVariable | tuple[TextVariable, ...],
    ) -> Any:
        values = list(value) if isinstance(value, tuple) else [value]
        accumulated = dtype if name in ("sum", "prod", "xor_sum", "any") else src_dtype
        elements = [converted(x, accumulated).text for x in values]
        if name == "welford_reduce" and self.persistent_reduction:
            return tuple(self._result(of, accumulated, dtype) for of in self._moments(elements[0], accumulated))
        of = reduction(name, accumulated)
        if name in ("argmax", "argmin"):
            elements.append(self._position_in_row())
        state = self._accumulate(of, elements)
        results = self._combine(of, state)
        if name in ("argmax", "argmin"):
            return self._result(results[1], torch.int64, dtype)
        if name.startswith("welford"):
            return tuple(self._result(result, accumulated, dtype) for result in results)
        return self._result(results[0], accumulated, dtype)

    def _moments(self, element: str, dtype: torch.dtype) -> tuple[str, str, str]:
        """Write the mean of a row that is kept, the sum of squared differences from it, and the
        number of elements.
        """
        kind, of = computed(dtype), reduction("sum", dtype)
        write = functools.partial(self._define, self.compute, kind=kind)
        (total,) = self._combine(of, self._accumulate(of, [element]))
        count = literal(float(self.features.reduction_numel), dtype)
        mean = write(f"div {total}, {count}")
        difference = write(f"sub {element}, {mean}")
        (squares,) = self._combine(of, self._accumulate(of, [write(f"mul {difference}, {difference}")]))
        return mean, squares, write(f"add {count}, {literal(0.0, dtype)}")

    def _position_in_row(self) -> str:
        index = self._write_index(next(t for t in self.range_trees if t.is_reduction).index_sym(), self.compute)
        return index if self._index == "i64" else self._define(self.compute, f"convert {index}", "i64")

    def _result(self, text: str, computed_as: torch.dtype, dtype: torch.dtype) -> TextVariable:
        """Return a result that the workgroup shares as a value of its dtype."""
        value = self.cse.varname_map[text.removeprefix("%")]
        value.dtype = computed_as
        with self._behind_the_loop():
            return rounded(value, dtype) if computed_as == dtype else converted(value, dtype)

    @contextlib.contextmanager
    def _behind_the_loop(self) -> Iterator[None]:
        """Let computations follow the loop that is being written, if there is one."""
        if not self._in_loop():
            yield
            return
        prior, self.compute, self.outside_loops = self.compute, self.behind, True
        try:
            yield
        finally:
            self.compute, self.outside_loops = prior, False

    def store_reduction(self, name: str, index: sympy.Expr, value: TextVariable) -> None:
        with self._behind_the_loop():
            super().store_reduction(name, index, value)

    def _accumulate(self, of: Reduction, elements: Sequence[str]) -> list[str]:
        """Write the accumulation of an invocation's elements, and return their state."""
        write = functools.partial(self._define, self.compute)
        if self.persistent_reduction:
            # Elements beyond the row's end are none.
            elements = [
                write(f"select %rmask, {text}, {none}", kind)
                for text, none, kind in zip(elements, of.initial, of.kinds, strict=True)
            ]
            if self._kept == 1:
                return elements
        names = [f"@state{next(self.numbers)}" for _ in of.kinds]
        before_all, after_all = (self.body, self.behind) if self._in_loop() else (self.compute, self.compute)
        with self._together(before_all):
            for name, kind, initial in zip(names, of.kinds, of.initial, strict=True):
                self.declarations.writeline(f"var {name}: {kind}")
                before_all.writeline(f"store {name}, {initial}")
        before = [f"%before{next(self.numbers)}" for _ in names]
        for text, name, kind in zip(before, names, of.kinds, strict=True):
            self.compute.writeline(f"{text}: {kind} = load {name}")
        for name, text in zip(names, of.add(write, before, elements), strict=True):
            self.compute.writeline(f"store {name}, {text}")
        state = [f"%own{next(self.numbers)}" for _ in names]
        with self._together(after_all):
            for text, name, kind in zip(state, names, of.kinds, strict=True):
                after_all.writeline(f"{text}: {kind} = load {name}")
        return state

    @property
    def _kept(self) -> int:
        return self.rows.kept if self.rows is not None and self.persistent_reduction else 1

    @contextlib.contextmanager
    def _together(self, buffer: IndentedBuffer) -> Iterator[None]:
        """Mark lines as those of a row, between lines of the elements that an invocation keeps."""
        if self._kept == 1:
            yield
            return
        buffer.writeline(TOGETHER)
        yield
        buffer.writeline(APART)

    def _combine(self, of: Reduction, state: Sequence[str]) -> list[str]:
        """Write the combination of a row's invocations, and return the result, which all have."""
        tail, place = (self.behind, Place.BEHIND) if self._in_loop() else (self.compute, Place.BODY)
        with self._together(tail):
            return self._combined(of, state, tail, place)

    def _combined(self, of: Reduction, state: Sequence[str], tail: IndentedBuffer, place: Place) -> list[str]:
        assert self.rows is not None
        line = tail.writeline

        def load(memory: str, at: str, kind: str) -> str:
            variable = self.cse.newvar(dtype=torch.int64)
            variable.place = place
            line(f"{variable.text}: {kind} = load {memory}[{at}]")
            return variable.text

        shared = [f"@shared{next(self.numbers)}" for _ in of.kinds]
        for name, kind, own in zip(shared, of.kinds, state, strict=True):
            # A bool has no place in a workgroup's memory.
            self.declarations.writeline(f"shared {name}: {'u32' if kind == 'bool' else kind}[{WORKGROUP}]")
            if kind == "bool":
                word = f"%word{next(self.numbers)}"
                line(f"{word}: u32 = select {own}, 1, 0")
                own = word
            line(f"store {name}[local.x], {own}")
        line("barrier")

        def read(at: str) -> list[str]:
            found = []
            for name, kind in zip(shared, of.kinds, strict=True):
                text = load(name, at, "u32" if kind == "bool" else kind)
                if kind == "bool":
                    flag = self.cse.newvar(dtype=torch.bool)
                    flag.place = place
                    line(f"{flag.text}: bool = ne {text}, 0")
                    text = flag.text
                found.append(text)
            return found

        if self.rows.along > 1:
            number = next(self.numbers)
            self.declarations.writeline(f"var @half{number}: u32")
            line(f"store @half{number}, {self.rows.along // 2}")
            line("loop {")
            with tail.indent():
                line(f"%half{number}: u32 = load @half{number}")
                line(f"%halves{number}: bool = gt %half{number}, 0")
                line(f"while %halves{number}")
                line(f"%lower{number}: bool = lt %rlocal, %half{number}")
                line(f"if %lower{number} {{")
                with tail.indent():
                    line(f"%step{number}: u32 = mul %half{number}, {self.rows.step}")
                    line(f"%other{number}: u32 = add local.x, %step{number}")
                    mine, others = read("local.x"), read(f"%other{number}")

                    def write(instruction: str, kind: str) -> str:
                        variable = self.cse.newvar(dtype=torch.int64)
                        line(f"{variable.text}: {kind} = {instruction}")
                        return variable.text

                    for name, kind, text in zip(shared, of.kinds, of.combine(write, mine, others), strict=True):
                        if kind == "bool":
                            text = write(f"select {text}, 1:u32, 0:u32", "u32")
                        line(f"store {name}[local.x], {text}")
                line("}")
                line("barrier")
                line(f"%quarter{number}: u32 = shr %half{number}, 1")
                line(f"store @half{number}, %quarter{number}")
            line("}")
        return read("%rowfirst")

    # ---- the text

    def codegen_body(self) -> None:
        """Append what has been written to the body: in a loop over the row, if it is inside one."""
        if self._in_loop() and (self.compute or self.indexing_code):
            number, kind = next(self.numbers), self._index
            self.declarations.writeline(f"var @r{number}: {kind}")
            line = self.body.writeline
            line(ROW)
            line(f"store @r{number}, %rfirst")
            line("loop {")
            with self.body.indent():
                line(f"%rat{number}: {kind} = load @r{number}")
                line(f"%rmore{number}: bool = lt %rat{number}, {self._numel('r0_')}")
                line(f"while %rmore{number}")
                line(f"%r0_index: {kind} = load @r{number}")
                self.body.splice(self.indexing_code)
                self.body.splice(self.compute)
                assert self.rows is not None
                line(f"%rnext{number}: {kind} = add %r0_index, {self.rows.along}:{kind}")
                line(f"store @r{number}, %rnext{number}")
            line("}")
            line(END_OF_ROW)
            self.cse.invalidate(_outside(self.cse))
            for tree in self.range_trees:
                if tree.is_loop:
                    tree.cache_clear()
                    for entry in tree.nodes.values():
                        self.positions.pop(entry.name, None)
        else:
            self.body.splice(self.indexing_code)
            self.body.splice(self.compute)
        self.body.splice(self.behind)
        for variable in self.cse.varname_map.values():
            if variable.place == Place.BEHIND:
                variable.place = Place.BODY
        self.inside.clear()
        for buffer in (self.indexing_code, self.compute, self.behind):
            buffer.clear()

    def _declared(self) -> list[str]:
        """Return the parameters, in the order of the call's arguments."""
        lines = []
        definitions, _, _, _ = self.args.python_argdefs()
        names = {inner: outer for outer, inner in self.args.input_buffers.items()}
        outputs = {str(inner): outer for outer, inner in self.args.output_buffers.items()}
        inplace = {
            buffer.inner_name: buffer.other_names[-1]
            for buffer in self.args.inplace_buffers.values()
            if hasattr(buffer, "inner_name")
        }
        for definition in definitions:
            name = definition.name
            if name in names:
                outer = names[name]
                dtype = V.graph.get_dtype(outer)
                if V.graph.is_unspec_arg(outer):
                    lines.append(f"param %{name}: {computed(dtype)}")
                else:
                    lines.append(f"input @{name}: {stored(dtype)}")
            elif name in outputs or name in inplace:
                lines.append(f"output @{name}: {stored(V.graph.get_dtype(outputs.get(name) or inplace[name]))}")
            else:
                lines.append(f"param %{name}: {self._index}")
        lines += [f"param %{prefix}numel: {self._index}" for prefix in self.parameters]
        lines += [f"param %{name}: {kind}" for (_, kind), name in self.fractions.items()]
        return [*lines, "output @fault: u32", "param %fault_number: u32"] if self.reports else lines

    def codegen_kernel(self, name: str | None = None) -> str:
        """Return the text, and keep that of `wide`."""
        name = name or "KERNEL_NAME"
        self.codegen_body()
        header, body = _lines(self.header), _lines(self.body)
        if self._has_lanes():
            count = lanes.lanes_of(body, self.accesses, self._static("x"))
            if count > 1:
                repeated = lanes.Repeated(self.accesses, count, self._index)
                repeated.begin("%xindex", 1)
                repeated.repeat(body)
                self.wide = self._text(f"{name}_by_{count}", self._header_of_lanes(count), repeated.text()), count
        elif self.rows is not None and self.persistent_reduction:
            body = row_elements.in_registers(
                body, self._position_in_kept_row(), self.rows.kept, self.rows.along, self._index
            )
        elif self.rows is not None:
            body = row_elements.unrolled(
                body, self._numel("r0_"), self._static("r0_"), self.rows.along, self.accesses.widest, self._index
            )
        return self._text(name, header, body)

    def _text(self, name: str, header: Sequence[str], body: Sequence[str]) -> str:
        code = IndentedBuffer()
        code.writeline(f"kernel {name} [{self.workgroup}, 1, 1] {{")
        with code.indent():
            code.writelines(self._declared())
            code.splice(self.declarations)
            code.writelines([*header, *body])
        code.writeline("}")
        return code.getvalue()

    def _header_of_lanes(self, count: int) -> list[str]:
        """Return the index of an invocation's first element, in a pointwise kernel of one
        dimension.
        """
        kind = self._index
        signed = "bitcast" if kind == "i32" else "convert"
        return [
            "%above: u32 = mul group.y, groups.x",
            "%group: u32 = add %above, group.x",
            f"%xgroup: {kind} = {signed} %group",
            f"%xfirst: {kind} = mul %xgroup, {WORKGROUP * count}:{kind}",
            f"%xlocal: {kind} = {signed} local.x",
            f"%xwithin: {kind} = mul %xlocal, {count}:{kind}",
            f"%xindex: {kind} = add %xfirst, %xwithin",
            f"%xoutside: bool = ge %xindex, {self._numel('x')}",
            "if %xoutside { return }",
        ]

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        """Write the call into the wrapper."""
        wrapper = V.graph.wrapper_code
        for size in self.args.sizevars:
            wrapper.ensure_size_computed(size)
        _, call_args, _, _ = self.args.python_argdefs()
        arguments = []
        for argument in call_args:
            if isinstance(argument, sympy.Expr):
                arguments.append(self.pexpr(argument))
            elif V.graph.is_unspec_arg(str(argument)):
                arguments.append(f"{argument}.item()")
            else:
                arguments.append(str(argument))
        numels = {tree.prefix: tree.numel for tree in self.range_trees}
        arguments += [self.pexpr(numels[prefix]) for prefix in self.parameters]
        arguments += [self.pexpr(expr) for expr, _ in self.fractions]
        arguments += [f"{name}={self.pexpr(number)}" for name, number in self.launch().items()]
        wrapper.writeline(f"{name}({', '.join(arguments)})")


def _report(number: int, outside: str, at: str, limit: str, kind: str) -> str:
    """Return the report of an index: see `dml_index_fault`."""
    lines = [
        f"if {outside} {{",
        f"  %raised{number}: u32 = compare_exchange @fault[0], 0, 1",
        f"  %won{number}: bool = eq %raised{number}, 0",
        f"  if %won{number} {{",
        "    store @fault[1], %fault_number",
    ]
    for word, value, name in ((2, at, "index"), (4, limit, "size")):
        wide = f"%{name}{number}"
        instruction = f"add {value}, 0:i64" if kind == "i64" else f"convert {value}"
        lines += [
            f"    {wide}: i64 = {instruction}",
            f"    {wide}low: u32 = cast {wide}",
            f"    {wide}shifted: i64 = shr {wide}, 32:i64",
            f"    {wide}high: u32 = cast {wide}shifted",
            f"    store @fault[{word}], {wide}low",
            f"    store @fault[{word + 1}], {wide}high",
        ]
    return "\n".join([*lines, "    store @fault[6], 0:u32", "  }", "}"])


def _short_rows(numel: int) -> Rows:
    """Return how a workgroup shares short rows."""
    along = 1 << max(numel - 1, 0).bit_length()
    if along > TILE:
        along = min(max(1 << max(-(-numel // row_elements.KEPT) - 1, 0).bit_length(), TILE), WORKGROUP)
    return Rows(along, across=False, kept=-(-numel // along) if numel else 1)


def _lines(buffer: IndentedBuffer) -> list[str]:
    return [line.strip() for line in buffer.getvalue().splitlines()]


def _groups_of(numel: sympy.Expr, width: int) -> sympy.Expr:
    numel = V.graph.sizevars.simplify(numel)
    if numel.is_Integer:
        return sympy.Integer(-(-int(numel) // width))
    return (numel + width - 1) // width


def _outside(cse: TextCSE) -> Any:
    """Return the values that are visible behind the loops."""
    from torch.utils._ordered_set import OrderedSet

    places = (Place.BODY, Place.BEHIND)
    kept = OrderedSet([variable for variable in cse.varname_map.values() if variable.place in places])
    for results in cse.reduction_cache.values():
        kept |= OrderedSet(results if isinstance(results, tuple) else [results])
    return kept
