"""Which rows a workgroup has, and which heads of queries and keys it meets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch_dml.inductor.flex_attention.functions import BATCH
from torch_dml.inductor.flex_attention.kernel import FlexKernel
from torch_dml.inductor.flex_attention.problem import Role
from torch_dml.inductor.flex_attention.rows import Rows
from torch_dml.inductor.flex_attention.tile import Tile


def write(kernel: FlexKernel) -> None:
    """Write a kernel. A workgroup has a tile of rows of one head, in one block of the mask, and a
    slice of the result's columns.
    """
    s, index, size = kernel.statements, kernel.index, kernel.size
    group = s.value("u32", f"add {s.value('u32', 'mul group.y, groups.x')}, group.x")
    group = s.value(index, f"{'convert' if kernel.wide else 'bitcast'} {group}")
    _leave_if(kernel, f"ge {group}, {size(kernel.groups())}")
    unit, part = _split(kernel, group, size(kernel.slices))
    plane, tile = _split(kernel, unit, size(kernel.tiles))
    batch, head = _split(kernel, plane, size(kernel.planes[1]))
    block, of_block = _split(kernel, tile, size(kernel.tiles_of_block))
    first = s.value(index, f"mul {block}, {size(kernel.blocks.rows)}")
    end = s.value(index, f"add {first}, {size(kernel.blocks.rows)}")
    end = s.value(index, f"min {end}, {size(kernel.row_count)}")
    row0 = s.value(index, f"add {first}, {s.value(index, f'mul {of_block}, {size(kernel.shape.rows)}')}")
    _leave_if(kernel, f"ge {row0}, {end}")
    x0 = s.value(index, f"mul {part}, {size(kernel.shape.width)}")
    is_first = s.value("bool", f"eq {part}, {size(0)}")
    rows = Rows(kernel, Tile(s, kernel.shape, index, row0, x0), end, block, is_first)
    if kernel.role == Role.OUTPUT:
        rows.write_output(batch, head, *_keys_of(kernel, batch, head))
        return
    if kernel.role == Role.QUERY_GRADIENT:
        rows.add_gradients(batch, head, *_keys_of(kernel, batch, head))
    else:
        with _queries_of(kernel, batch, head) as (query_batch, query_head):
            rows.add_gradients(query_batch, query_head, batch, head)
    rows.store(batch, head, [])


def _leave_if(kernel: FlexKernel, condition: str) -> None:
    kernel.statements.line(f"if {kernel.statements.value('bool', condition)} {{ return }}")


def _split(kernel: FlexKernel, number: str, by: str) -> tuple[str, str]:
    """Return quotient and remainder of a number that is not negative."""
    s, index = kernel.statements, kernel.index
    quotient = s.value(index, f"div {number}, {by}")
    return quotient, s.value(index, f"sub {number}, {s.value(index, f'mul {quotient}, {by}')}")


def _keys_of(kernel: FlexKernel, batch: str, head: str) -> tuple[str, str]:
    """Return batch and head of the keys that a head of queries attends to."""
    key_batch = kernel.size(0) if kernel.problem.shares_keys else batch
    return key_batch, kernel.statements.value(kernel.index, f"div {head}, {kernel.size(kernel.shared_by)}")


@contextlib.contextmanager
def _queries_of(kernel: FlexKernel, key_batch: str, key_head: str) -> Iterator[tuple[str, str]]:
    """Write a loop over batches and heads of the queries that attend to a head of keys."""
    s, index, shares_keys = kernel.statements, kernel.index, kernel.problem.shares_keys
    shared_by = kernel.size(kernel.shared_by)
    count = kernel.size(kernel.shared_by * kernel.sizes[BATCH]) if shares_keys else shared_by
    first = s.value(index, f"mul {key_head}, {shared_by}")
    with s.loop(index, kernel.size(0), count, kernel.size(1)) as number:
        batch, of_head = _split(kernel, number, shared_by)
        yield batch if shares_keys else key_batch, s.value(index, f"add {first}, {of_head}")
