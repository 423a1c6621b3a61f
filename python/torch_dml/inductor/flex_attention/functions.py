"""The functions of scores and masks, lowered: what Inductor computes of one score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch._inductor import lowering
from torch._inductor.exc import SubgraphLoweringException
from torch._inductor.ir import FixedLayout, InputBuffer, TensorBox
from torch._inductor.subgraph_lowering import PointwiseSubgraphLowering
from torch._inductor.virtualized import V

from torch_dml.inductor.errors import MissingKernelError

# Names of what a function is given. The last is the gradient of its result.
BATCH, HEAD, QUERY, KEY = POSITION = ("flex_b", "flex_h", "flex_q", "flex_k")
SCORE, GRADIENT = "flex_score", "flex_gradient"


@dataclass(frozen=True)
class Contribution:
    """What a score adds to an element of a captured tensor's gradient."""

    size: Sequence[sympy.Expr]
    indices: Sequence[TensorBox]
    value: TensorBox


# A value, or what is added to a gradient.
Result = TensorBox | list[Contribution] | None


def lowered(
    graph: torch.fx.GraphModule, names: Sequence[str], captured: Sequence[Any], device: torch.device, dtype: torch.dtype
) -> list[Result]:
    """Return the results of a function of values with these names and of captured tensors. Scores
    are of a dtype.
    """
    given = [_given(name, torch.int32 if name in POSITION else dtype, device) for name in names]
    graph.graph.eliminate_dead_code()
    additional: dict[Any, Any] = {
        torch.ops.flex_lib.zeros_and_scatter.default: _contribution,
        torch.ops.aten.add.Tensor: _sum,
    }
    interpreter = PointwiseSubgraphLowering(graph, V.graph, additional_lowerings=additional)
    try:
        with V.set_graph_handler(interpreter):  # type: ignore[arg-type]
            interpreter.run(*given, *captured)
    except SubgraphLoweringException as error:
        raise MissingKernelError(f"a function of flex_attention: {error}") from error
    results: Any = interpreter.graph_outputs
    return list(results) if isinstance(results, tuple | list) else [results]


def _given(name: str, dtype: torch.dtype, device: torch.device) -> TensorBox:
    return TensorBox.create(InputBuffer(name=name, layout=FixedLayout(device, dtype, [], [])))


def _contribution(size: Sequence[sympy.Expr], indices: Sequence[TensorBox], value: Any) -> list[Contribution]:
    if isinstance(value, list) or len(indices) != len(size):
        raise MissingKernelError("gradients of a captured tensor that is indexed in several steps")
    return [Contribution(size, indices, value)]


def _sum(x: Any, y: Any, **options: Any) -> Any:
    """A captured tensor that is read several times has a sum of gradients."""
    if isinstance(x, list) and isinstance(y, list):
        return x + y
    if isinstance(x, list) or isinstance(y, list):
        raise MissingKernelError("the sum of gradients of a captured tensor and of something else")
    return lowering.lowerings[torch.ops.aten.add.Tensor](x, y, **options)
