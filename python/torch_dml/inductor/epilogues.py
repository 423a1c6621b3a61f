"""Products, convolutions and the elementwise operators that follow them, as one call: the engine
computes what becomes of an element before it stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from torch_dml.backend import DEVICE
from torch_dml.inductor import roundings
from torch_dml.inductor.costs import SHORT
from torch_dml.inductor.functions import FUNCTIONS
from torch_dml.inductor.types import is_narrow, stored

aten, prims = torch.ops.aten, torch.ops.prims

# The factors and the addend among the arguments of a product.
PRODUCTS: dict[Any, Callable[..., tuple[Any, Any, Any]]] = {
    aten.mm.default: lambda a, b: (a, b, None),
    aten.bmm.default: lambda a, b: (a, b, None),
    aten.addmm.default: lambda addend, a, b: (a, b, addend),
    aten.baddbmm.default: lambda addend, a, b: (a, b, addend),
}
# Operators that are one function of their arguments, beside those of `functions`.
PLAIN = {
    aten.abs.default: "abs",
    aten.add.Tensor: "add",
    aten.div.Tensor: "div",
    aten.exp.default: "exp",
    aten.maximum.default: "maximum",
    aten.minimum.default: "minimum",
    aten.mul.Tensor: "mul",
    aten.neg.default: "neg",
    aten.reciprocal.default: "reciprocal",
    aten.relu.default: "relu",
    aten.rsqrt.default: "rsqrt",
    aten.sigmoid.default: "sigmoid",
    aten.sqrt.default: "sqrt",
    aten.sub.Tensor: "sub",
    aten.tanh.default: "tanh",
}
# Functions for which products on matrix units have no registers left.
LONGEST = ("gelu", "gelu_backward", "gelu_tanh", "gelu_tanh_backward")
# A larger result's functions, unless they are short, have a kernel of their own: a product has few
# invocations, and its code repeats the functions. A smaller one's take less time than a launch.
LARGE = 1 << 18
# Views of a tensor of which one smaller than the result is computed in the expression.
SMALL_VIEWS = (aten.unsqueeze.default, aten.view.default, aten.reshape.default)
VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)
# What the engine's products have room for.
MOST_TENSORS = 6


class Epilogues(CustomGraphPass):
    """Replaces products by `torch_dml::product_then`, and convolutions by
    `torch_dml::convolution_then`. An operator joins if nothing else reads what it is computed from,
    and if the other tensors that it reads broadcast to the result. Then roundings of the graph's
    inputs are joined.
    """

    def __init__(self, before: Callable[[Graph], None] | None) -> None:
        """`before` is a pass that a user has set."""
        self._before = before

    def __call__(self, graph: Graph) -> None:
        """Change the graph in place."""
        if self._before is not None:
            self._before(graph)
        for node in list(graph.nodes):
            if _begins(node):
                _fuse(graph, node)
        roundings.join(graph)

    def uuid(self) -> Any:
        """Return what stands for the pass in Inductor's cache; its key has a digest of this
        file.
        """
        uuid = getattr(self._before, "uuid", None)
        return "torch_dml.epilogues", uuid() if uuid is not None else None


def _begins(node: Node) -> bool:
    """Return whether a node is a product or a convolution of floats on the device. Where an adapter
    lacks float64, the operators alone may run on the CPU.
    """
    if node.target not in PRODUCTS and (node.target != aten.convolution.default or node.args[6]):
        return False
    return _of(node).device.type == DEVICE and _of(node).dtype in (torch.float32, torch.float16, torch.bfloat16)


@dataclass
class Chain:
    """A product and the operators after it, as an expression of the product's elements."""

    product: Node
    lines: list[str] = field(default_factory=list)
    tensors: list[Node] = field(default_factory=list)
    # The product, views of it, and operators, in the order in which each is the only user of the
    # one before.
    nodes: list[Node] = field(default_factory=list)
    # Whether the product itself adds its addend.
    adds: bool = True
    # The last view of the product's rows.
    view: Node | None = None

    def expression(self) -> str:
        """Return the engine's text."""
        names = ", ".join(["%sum", *(f"%t{i}" for i in range(len(self.tensors)))])
        return f"expr {names} {{ {' '.join(self.lines)} }}"

    def tensor(self, node: Node) -> str:
        """Return the name of a tensor that the expression reads."""
        if node not in self.tensors:
            self.tensors.append(node)
        return f"%t{self.tensors.index(node)}"

    def write(self, function: str, arguments: str, dtype: torch.dtype) -> str:
        """Write a function whose result has a dtype, and return the result's name."""
        name = f"%v{len(self.lines)}"
        rounded = f" [rounded {stored(dtype)}]" if is_narrow(dtype) else ""
        self.lines.append(f"{name} = {function}{rounded} {arguments}")
        return name


def _of(node: Node) -> torch.Tensor:
    value: torch.Tensor = node.meta["val"]
    return value


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(statically_known_true(x == y) for x, y in zip(one, other, strict=True))


def _fuse(graph: Graph, product: Node) -> None:
    chain = Chain(product, nodes=[product])
    value = _first(chain)
    views: list[Node] = []
    at = product
    while len(at.users) == 1:
        user = next(iter(at.users))
        if user.target in VIEWS and _keeps_rows(product, user):
            views.append(user)
        else:
            view = views[-1] if views else chain.view
            found = _step(graph, chain, at, view, user, value)
            if found is None:
                break
            value, chain.view = found, view
            chain.nodes += [*views, user]
            views = []
        at = user
    if len(chain.nodes) > 1:
        _replace(graph, chain, chain.nodes[-1])


def _first(chain: Chain) -> str:
    """Write the product with its addend, and return its value."""
    dtype = _of(chain.product).dtype
    if chain.product.target in PRODUCTS and not chain.product.kwargs:
        _, _, addend = PRODUCTS[chain.product.target](*chain.product.args)
        source = _rounded_input(addend)
        if source is not None:
            # The addend is a graph's float32 input: this rounds it.
            chain.adds = False
            return chain.write("add", f"%sum, {chain.write('identity', chain.tensor(source), dtype)}", dtype)
    return chain.write("identity", "%sum", dtype) if is_narrow(dtype) else "%sum"


def _keeps_rows(product: Node, view: Node) -> bool:
    """Return whether a view of a matrix only takes apart, or joins, its rows."""
    return _of(product).dim() == 2 and _of(view).dim() >= 2 and _same(_of(view).shape[-1:], _of(product).shape[-1:])


def _step(graph: Graph, chain: Chain, at: Node, view: Node | None, user: Node, value: str) -> str | None:
    """Write an operator of the value at a node, and return its value; None if it cannot join."""
    result = user.meta.get("val")
    if not isinstance(result, torch.Tensor) or not _same(result.shape, _of(at).shape):
        return None

    def operand(node: Node) -> str | None:
        return value if node is at else _read(graph, chain, view, user, node)

    before = chain.lines.copy(), chain.tensors.copy()
    found = _written(chain, user, operand)
    if found is None or len(chain.tensors) > MOST_TENSORS:
        chain.lines, chain.tensors = before
        return None
    return found


def _written(chain: Chain, node: Node, operand: Callable[[Node], str | None]) -> str | None:
    """Write an operator of operands, and return its value; None if it is no function of them."""
    result = _of(node)
    if not result.dtype.is_floating_point or result.dtype == torch.float64:
        return None
    is_rounding = node.target == prims.convert_element_type.default
    function, operands = ("identity", node.args[:1]) if is_rounding else _call(node) or (None, ())
    if function is None or not (function in SHORT or _may_be_long(chain.product, result, function)):
        return None
    arguments, lines = [], chain.lines.copy()
    for of in operands:
        number = repr(float(of)) if isinstance(of, int | float) else None
        argument = operand(of) if isinstance(of, Node) else number
        if argument is None:
            chain.lines = lines
            return None
        arguments.append(argument)
    if is_rounding and not is_narrow(result.dtype):
        return arguments[0]
    return chain.write(function, ", ".join(arguments), result.dtype)


def _may_be_long(product: Node, result: torch.Tensor, function: str) -> bool:
    """Return whether a function that is not short is computed by the product's kernel."""
    if function in LONGEST and is_narrow(_of(product).dtype):
        return False
    return statically_known_true(result.numel() <= LARGE) or statically_known_true(
        result.numel() * 16 <= _of(product).numel()
    )


def _call(node: Node) -> tuple[str, Sequence[Any]] | None:
    """Return the function of an operator and its operands."""
    of = FUNCTIONS.get(node.target)
    # `nextafter` asks Inductor's tensors for their dtype.
    if of is not None and node.target != aten.nextafter.default:
        call = of(*node.args, **node.kwargs)
        if call is not None:
            return call
    name = PLAIN.get(node.target)  # type: ignore[call-overload]
    return (name, node.args) if name is not None and not set(node.kwargs) - {"alpha"} else None


def _read(graph: Graph, chain: Chain, view: Node | None, user: Node, node: Node) -> str | None:
    """Return the value of another tensor that an operator reads. One that is smaller than the
    result is computed here if it is a function of others.
    """
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and statically_known_true(value.numel() < _of(user).numel()):
        views, root = [], node
        while root.target in SMALL_VIEWS:
            views.append(root)
            root = root.args[0]

        def leaf(of: Node) -> str | None:
            if not _same(_of(of).shape, _of(root).shape):
                return None
            found = _written(chain, of, leaf)
            if found is not None:
                return found
            for viewed in reversed(views):
                target: Any = viewed.target
                with graph.inserting_before(user):
                    view_of = graph.call_function(target, (of, *viewed.args[1:]))
                view_of.meta["val"] = target(_of(of), *viewed.args[1:])
                of = view_of
            return tensor(of)

        def tensor(of: Node) -> str | None:
            found = _operand(graph, chain.product, view, user, of)
            return None if found is None else chain.tensor(found)

        before = chain.lines.copy(), chain.tensors.copy()
        found = leaf(root)
        if found is not None and len(chain.tensors) <= MOST_TENSORS:
            return found
        chain.lines, chain.tensors = before
    operand = _operand(graph, chain.product, view, user, node)
    return None if operand is None else chain.tensor(operand)


def _operand(graph: Graph, product: Node, view: Node | None, user: Node, operand: Node) -> Node | None:
    """Return another tensor that an operator reads in the product's shape, or so that it broadcasts
    to that; None if it has no such view.
    """
    value = operand.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.device.type != DEVICE:
        return None
    if not value.dtype.is_floating_point or value.dtype == torch.float64:
        return None
    shape = _of(product).shape
    if view is None:
        return operand
    of_view, columns = _of(view).shape, shape[-1]
    if value.dim() == 0 or all(statically_known_true(size == 1) for size in value.shape[:-1]):
        if value.dim() <= 1:
            return operand
        size: list[Any] = [value.shape[-1]]
    elif _same(value.shape, of_view):
        size = [-1, columns]
    elif _same(value.shape, [*of_view[:-1], 1]):
        size = [-1, 1]
    else:
        return None
    if not isinstance(size[-1], int) or not value.is_contiguous():
        return None
    with graph.inserting_before(user):
        viewed = graph.call_function(aten.reshape.default, (operand, size))
    viewed.meta["val"] = value.reshape(size)
    return viewed


def _replace(graph: Graph, chain: Chain, last: Node) -> None:
    """Replace a chain that ends at an operator."""
    product, result = chain.product, _of(last)
    with graph.inserting_before(last):
        if product.target in PRODUCTS:
            if not result.is_contiguous():
                return
            a, b, addend = PRODUCTS[product.target](*product.args)
            factors, rounded = _unrounded(a, b)
            fused = graph.call_function(
                torch.ops.torch_dml.product_then.default,
                (*factors, addend if chain.adds else None, chain.tensors, chain.expression(), result.dtype),
                {**product.kwargs, **({"rounded": rounded} if rounded is not None else {})},
            )
        else:
            if result.dtype != _of(product).dtype or not _same(result.stride(), _of(product).stride()):
                return
            image, weight, bias, stride, padding, dilation, _, _, groups = product.args
            fused = graph.call_function(
                torch.ops.torch_dml.convolution_then.default,
                (image, weight, bias, stride, padding, dilation, groups, chain.tensors, chain.expression()),
            )
        fused.meta.update(last.meta)
        replacement = fused
        if chain.view is not None:
            fused.meta["val"] = result.view(_of(product).shape)
            replacement = graph.call_function(aten.reshape.default, (fused, chain.view.args[1]))
            replacement.meta.update(last.meta)
    last.replace_all_uses_with(replacement)
    for node in reversed(chain.nodes):
        graph.erase_node(node)


def _unrounded(a: Node, b: Node) -> tuple[tuple[Node, Node], torch.dtype | None]:
    """Return factors without the roundings of a graph's float32 inputs, such as weights under
    autocast, and the dtype to which the product rounds them instead.
    """
    found, rounded = [], None
    for factor in (a, b):
        rounding = factor.args[0] if factor.target == aten.permute.default else factor
        source = _rounded_input(rounding) if len(factor.users) == 1 else None
        if source is None:
            found.append(factor)
            continue
        rounded = _of(factor).dtype
        if factor is rounding:
            found.append(source)
            continue
        order: Any = factor.args[1]
        with factor.graph.inserting_before(factor):
            turned = factor.graph.call_function(aten.permute.default, (source, order))
        turned.meta["val"] = _of(source).permute(order)
        found.append(turned)
    return (found[0], found[1]), rounded


def _rounded_input(node: Any) -> Node | None:
    """Return the float32 input that a node rounds for one reader."""
    return roundings.rounded_input(node) if isinstance(node, Node) and len(node.users) == 1 else None
