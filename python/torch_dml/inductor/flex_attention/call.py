"""A kernel's place in Inductor's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch._inductor.ir import Buffer, ExternKernel, IRNode, MutationOutput, NoneLayout
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from torch_dml.inductor.flex_attention.kernel import FlexKernel
from torch_dml.inductor.flex_attention.problem import Outputs, Problem, Role
from torch_dml.inductor.flex_attention.workgroups import write


class FlexCall(ExternKernel):
    """A launch of a kernel, which writes to buffers that exist."""

    def __init__(
        self,
        problem: Problem,
        role: Role,
        outputs: Outputs,
        captured: Sequence[IRNode],
        symbols: OrderedSet[sympy.Symbol],
    ) -> None:
        """Add the launch to the graph. `captured` are the other tensors that the functions read,
        and `symbols` the sizes and numbers.
        """
        device = problem.query.get_device()
        written = outputs.nodes()
        super().__init__(None, NoneLayout(device=device), [*problem.inputs(role), *captured, *written])
        self.device: torch.device | None = device
        self.problem, self.role, self.outputs, self.captured = problem, role, outputs, captured
        self.symbols = symbols
        self.mutation_outputs = [MutationOutput(NoneLayout(device=device), node, self) for node in written]
        V.graph.register_operation(self)

    def get_outputs(self) -> list[Buffer]:
        return list(self.mutation_outputs)

    def get_device(self) -> torch.device | None:
        return self.device

    def get_free_symbol_uses(self, unbacked_only: bool = False) -> OrderedSet[sympy.Symbol]:
        return super().get_free_symbol_uses(unbacked_only) | (OrderedSet() if unbacked_only else self.symbols)

    def codegen(self, wrapper: Any) -> None:
        """Write the kernel and its call into the program."""
        kernel = FlexKernel(self.problem, self.role, self.outputs, self.captured)
        with kernel:
            write(kernel)
        scheduling = V.graph.scheduler.get_backend(self.device)
        self.codegen_comment(wrapper)
        kernel.call_kernel(scheduling.define_kernel(kernel.codegen_kernel(), self, kernel))
