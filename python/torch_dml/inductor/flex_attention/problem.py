"""What is computed, and of which tensors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from torch._inductor.ir import IRNode

from torch_dml.inductor.flex_attention.functions import Contribution, Result


class Role(enum.Enum):
    """What a kernel computes. Its rows are queries in the first two, and keys in the others."""

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
        """Whether the weights are the gradients of scores."""
        return self in (Role.QUERY_GRADIENT, Role.KEY_GRADIENT)


@dataclass(frozen=True)
class Blocks:
    """For each block of rows the blocks of columns that it meets."""

    # Rows and columns of a block.
    rows: int
    columns: int
    # Numbers of blocks, and their indices: of those to which the mask function applies, and of
    # those without masked scores, if they are listed.
    partial: tuple[IRNode, IRNode]
    full: tuple[IRNode, IRNode] | None


@dataclass(frozen=True)
class Problem:
    """What the kernels of one call have in common. Tensors are buffers, or views of them."""

    query: IRNode
    key: IRNode
    value: IRNode
    scale: float
    # Whether all batches of queries have the same keys and values.
    shares_keys: bool
    # What the functions of scores and masks return.
    score: Result
    mask: Result
    # By rows of queries, and of keys.
    blocks_of_queries: Blocks | None
    blocks_of_keys: Blocks | None
    # Of the backward pass: the gradient of the output, the saved base-2 logarithms of sums of
    # exponentials, and for each query what is subtracted from the gradients of its weights.
    gradient: IRNode | None = None
    saved: IRNode | None = None
    deltas: IRNode | None = None
    # The gradient of a score.
    score_gradient: Result = None

    def blocks(self, role: Role) -> Blocks:
        """Return the blocks of a kernel's rows."""
        blocks = self.blocks_of_keys if role.rows_are_keys else self.blocks_of_queries
        assert blocks is not None
        return blocks

    def inputs(self, role: Role) -> list[IRNode]:
        """Return the tensors that a kernel reads, but for captured ones."""
        blocks = self.blocks(role)
        nodes = [self.query, self.key, self.value, *blocks.partial, *(blocks.full or ())]
        return [*nodes, *(x for x in (self.gradient, self.saved, self.deltas) if x is not None)]


@dataclass(frozen=True)
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
