"""The lowerings of flex_attention and of its backward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch._inductor import lowering
from torch._inductor.ir import ExternKernel, FlexibleLayout, IRNode, Pointwise, TensorBox, convert_shape_to_inductor
from torch._inductor.virtualized import V, ops
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.functions import ModularIndexing

from torch_dml.inductor.errors import MissingKernelError
from torch_dml.inductor.flex_attention.call import FlexCall
from torch_dml.inductor.flex_attention.functions import (
    GRADIENT,
    POSITION,
    SCORE,
    Contribution,
    Result,
    lowered,
)
from torch_dml.inductor.flex_attention.problem import Blocks, Outputs, Problem, Role

aten = torch.ops.aten


def flex_attention(
    query: TensorBox,
    key: TensorBox,
    value: TensorBox,
    score: Any,
    block_mask: tuple[Any, ...],
    scale: Any,
    kernel_options: dict[str, Any],
    score_captured: Sequence[Any] = (),
    mask_captured: Sequence[Any] = (),
) -> tuple[TensorBox, ...]:
    """Return the output, and of each query the base-2 logarithm of the sum of exponentials and the
    largest score times the same factor.
    """
    call = _Call(query, key, value, score, block_mask, scale, score_captured, mask_captured)
    out, saved, largest = (_like(fake) for fake in V.graph.current_node.meta["val"])
    call.launch(call.problem(), Role.OUTPUT, Outputs(_node(out), _node(saved), _node(largest)))
    return out, saved, largest


def flex_attention_backward(
    query: TensorBox,
    key: TensorBox,
    value: TensorBox,
    out: TensorBox,
    saved: TensorBox,
    gradient: TensorBox | None,
    saved_gradient: TensorBox | None,
    score: Any,
    joint: Any,
    block_mask: tuple[Any, ...],
    scale: Any,
    kernel_options: dict[str, Any],
    score_captured: Sequence[Any] = (),
    mask_captured: Sequence[Any] = (),
) -> tuple[Any, ...]:
    """Return the gradients of query, key and value, and those of the captured tensors."""
    call = _Call(query, key, value, score, block_mask, scale, score_captured, mask_captured)
    device, dtype = _device(query), call.dtype
    if gradient is None:
        gradient = _zeros(out.get_size(), out.get_dtype(), device)
    deltas = _deltas(out, gradient, saved_gradient, dtype)
    names = [SCORE, *POSITION, GRADIENT]
    of_score, *of_others = lowered(joint.graph_module, names, call.score_captured, device, dtype)
    problem = call.problem(_node(gradient), _node(saved), _node(deltas), of_score)

    *fakes, fakes_of_captured = V.graph.current_node.meta["val"]
    sums: list[_Captured | None] = []
    added: list[tuple[Contribution, IRNode, IRNode]] = []
    # Gradients of captured tensors are behind those of a score's position.
    for x, fake, result in zip(score_captured, fakes_of_captured, of_others[len(POSITION) :], strict=True):
        sums.append(None if result is None else _Captured(x, fake, query, key, dtype))
        if sums[-1] is not None:
            added += sums[-1].contributions(result)
    results = [_like(fake) for fake in fakes]
    for role, result in zip((Role.QUERY_GRADIENT, Role.KEY_GRADIENT, Role.VALUE_GRADIENT), results, strict=True):
        contributions = added if role == Role.QUERY_GRADIENT else ()
        call.launch(problem, role, Outputs(_node(result), contributions=contributions))
    return (*results, tuple(None if captured is None else captured.gradient() for captured in sums))


class _Call:
    """What the forward and the backward pass have in common."""

    def __init__(
        self,
        query: TensorBox,
        key: TensorBox,
        value: TensorBox,
        score: Any,
        block_mask: tuple[Any, ...],
        scale: Any,
        score_captured: Sequence[Any],
        mask_captured: Sequence[Any],
    ) -> None:
        """Lower the functions."""
        device = _device(query)
        self.dtype = torch.promote_types(query.get_dtype(), torch.float32)
        self.query, self.key, self.value = (_node(x) for x in (query, key, value))
        self.score_captured = [_captured(x, device) for x in score_captured]
        self.mask_captured = [_captured(x, device) for x in mask_captured]
        for x in (query, key, value):
            V.graph.sizevars.guard_int(x.get_size()[-1])
        self.scale = _number(scale)
        names = [SCORE, *POSITION]
        (self.score,) = lowered(score.graph_module, names, self.score_captured, device, self.dtype)
        (self.mask,) = lowered(block_mask[-1].graph_module, POSITION, self.mask_captured, device, self.dtype)
        batches = sympy.Eq(query.get_size()[0], key.get_size()[0])
        self.shares_keys = not V.graph.sizevars.evaluate_expr(batches)
        sizes = [V.graph.sizevars.guard_int(size) for size in block_mask[-3:-1]]
        lists = [None if x is None else _node(x) for x in block_mask[2:10]]
        self.blocks = _blocks(sizes, lists[:4]), _blocks(sizes[::-1], lists[4:])

    def problem(self, *backward: Any) -> Problem:
        """Return the problem, with tensors of the backward pass."""
        given = (self.query, self.key, self.value, self.scale, self.shares_keys, self.score, self.mask)
        return Problem(*given, *self.blocks, *backward)

    def launch(self, problem: Problem, role: Role, outputs: Outputs) -> None:
        """Add a launch to the graph."""
        all_captured = [*self.score_captured, *self.mask_captured]
        captured = [_node(x) for x in all_captured if isinstance(x, TensorBox)]
        symbols = OrderedSet[sympy.Symbol]()
        for x in all_captured:
            if isinstance(x, sympy.Expr):
                symbols |= OrderedSet(x.free_symbols)
        for node in (self.query, self.key, *captured):
            for size in node.get_size():
                symbols |= OrderedSet(sympy.sympify(size).free_symbols)
        FlexCall(problem, role, outputs, captured, symbols)


def _blocks(sizes: Sequence[int], lists: Sequence[IRNode | None]) -> Blocks | None:
    partial_counts, partial, full_counts, full = lists
    if partial_counts is None or partial is None:
        return None
    both = (full_counts, full) if full_counts is not None and full is not None else None
    return Blocks(sizes[0], sizes[1], (partial_counts, partial), both)


def _number(scale: Any) -> float:
    """Return a scale, which has no symbols once sizes of heads are known."""
    if isinstance(scale, sympy.Expr):
        scale = V.graph.sizevars.simplify(scale)
        if scale.free_symbols:
            raise MissingKernelError("flex_attention with a scale that is no constant")
    return float(scale)


def _device(box: TensorBox) -> torch.device:
    device = box.get_device()
    assert device is not None
    return device


def _node(box: TensorBox) -> IRNode:
    """Return a tensor as a buffer, or a view of one, whose layout is fixed."""
    node = ExternKernel.unwrap_storage_for_input(ExternKernel.realize_input(box))
    node.freeze_layout()
    return node


def _captured(x: Any, device: torch.device) -> Any:
    """Return a captured tensor in the device's memory; a number as it is."""
    if not isinstance(x, TensorBox):
        return x
    if x.get_device() != device:
        x = lowering.to_device(x, device)
    return TensorBox.create(_node(x))


def _like(fake: torch.Tensor) -> TensorBox:
    """Return an uninitialised tensor."""
    size, stride = convert_shape_to_inductor(fake.size()), convert_shape_to_inductor(fake.stride())
    return lowering.empty_strided(size, stride, dtype=fake.dtype, device=fake.device)  # type: ignore[no-any-return]


def _zeros(size: Sequence[Any], dtype: torch.dtype, device: torch.device) -> TensorBox:
    zeros = lowering.lowerings[aten.full](size, 0, dtype=dtype, device=device)
    zeros.realize()
    return zeros  # type: ignore[no-any-return]


def _deltas(out: TensorBox, gradient: TensorBox, saved_gradient: TensorBox | None, dtype: torch.dtype) -> TensorBox:
    """Return for each query what is subtracted from the gradients of its weights."""
    products = lowering.lowerings[aten.mul](*(lowering.to_dtype(x, dtype) for x in (out, gradient)))
    deltas = lowering.lowerings[aten.sum](products, axis=[-1])
    if saved_gradient is not None:
        # That of a base-2 logarithm.
        of_log = lowering.lowerings[aten.mul](lowering.to_dtype(saved_gradient, dtype), math.log2(math.e))
        deltas = lowering.lowerings[aten.sub](deltas, of_log)
    return deltas  # type: ignore[no-any-return]


class _Captured:
    """The gradient of a captured tensor. Scores store what they add, and an operator adds it, in
    one order: floats that are added atomically have another sum in each run.
    """

    def __init__(self, captured: TensorBox, fake: torch.Tensor, query: TensorBox, key: TensorBox, dtype: torch.dtype):
        """Name a tensor, and a tensor like its gradient."""
        self.captured, self.dtype, self.result_dtype = captured, dtype, fake.dtype
        self.size = convert_shape_to_inductor(fake.size())
        self.scores = [*query.get_size()[:3], key.get_size()[2]]
        self.stored: list[tuple[TensorBox, TensorBox]] = []

    def contributions(self, result: Result) -> list[tuple[Contribution, IRNode, IRNode]]:
        """Return where scores store what they add, and to which elements."""
        added = result if isinstance(result, list) else [_whole(result, self.captured)]
        self.stored = [(_zeros(self.scores, self.dtype, _device(self.captured)), self._places()) for _ in added]
        return [(x, _node(values), _node(places)) for x, (values, places) in zip(added, self.stored, strict=True)]

    def _places(self) -> TensorBox:
        """Return elements for scores that are not computed. They add zeros: to all elements alike,
        since those to one element are added one after the other.
        """
        numel, strides = sympy.Mul(*self.size), FlexibleLayout.contiguous_strides(self.scores)

        def place(at: Sequence[sympy.Expr]) -> Any:
            number = sum((i * stride for i, stride in zip(at, strides, strict=True)), sympy.S.Zero)
            return ops.index_expr(ModularIndexing(number, sympy.S.One, numel), torch.int64)

        device = _device(self.captured)
        places = Pointwise.create(device=device, dtype=torch.int64, inner_fn=place, ranges=self.scores)
        places.realize()
        return places

    def gradient(self) -> TensorBox:
        """Return the sum."""
        total = _zeros([sympy.Mul(*self.size)], self.dtype, _device(self.captured))
        for values, places in self.stored:
            flat = [lowering.view(x, [sympy.Mul(*self.scores)]) for x in (values, places)]
            total = lowering.lowerings[aten.scatter_add.default](total, 0, flat[1], flat[0])
        return lowering.to_dtype(lowering.view(total, self.size), self.result_dtype)  # type: ignore[no-any-return]


def _whole(result: Result, captured: TensorBox) -> Contribution:
    """Return what a score adds to a tensor of one element, which the function reads as a number."""
    if not isinstance(result, TensorBox) or captured.get_size():
        raise MissingKernelError("the gradient of a captured tensor that is read without indices")
    return Contribution([], [], result)
