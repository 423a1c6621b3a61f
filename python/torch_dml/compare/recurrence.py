"""A layer of a recurrent network in one direction, and its gradients, step by step with operators
of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

Tensors = tuple[torch.Tensor | None, ...]
Rows = list[torch.Tensor]


def layer(
    x: torch.Tensor,
    hx: torch.Tensor,
    cx: torch.Tensor | None,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: torch.Tensor | None,
    b_hh: torch.Tensor | None,
    cell: str,
    batch_sizes: Sequence[int],
    batch_first: bool,
    reverse: bool,
    keep: bool,
) -> Tensors:
    """Replacement for torch_dml::recurrent_layer."""
    gates = torch.nn.functional.linear(x, w_ih, b_ih)
    steps = _steps(len(gates), len(hx), batch_sizes, batch_first, reverse)
    output = torch.empty(len(gates), hx.size(1), dtype=gates.dtype)
    kept = output.new_empty(len(gates) if keep and cell in _KEPT else 0, _KEPT.get(cell, 0) * hx.size(1))
    h, c = hx.clone(), None if cx is None else cx.clone()
    for rows in steps:
        n = len(rows)
        hidden = torch.nn.functional.linear(h[:n], w_hh, b_hh)
        of_step = gates[rows]
        parts: Rows = []
        if c is not None:
            enter, forget, new, leave = (of_step + hidden).chunk(4, 1)
            parts = [enter.sigmoid(), forget.sigmoid(), new.tanh(), leave.sigmoid()]
            c[:n] = parts[1] * c[:n] + parts[0] * parts[2]
            parts.append(c[:n])
            h[:n] = parts[3] * c[:n].tanh()
        elif cell == "gru":
            of_input, of_hidden = of_step.chunk(3, 1), hidden.chunk(3, 1)
            reset, update = (of_input[0] + of_hidden[0]).sigmoid(), (of_input[1] + of_hidden[1]).sigmoid()
            candidate = (of_input[2] + reset * of_hidden[2]).tanh()
            parts = [reset, update, candidate, of_hidden[2]]
            h[:n] = candidate + update * (h[:n] - candidate)
        else:
            h[:n] = (of_step + hidden).tanh() if cell == "tanh" else (of_step + hidden).relu()
        output[rows] = h[:n]
        if len(kept):
            kept[rows] = torch.cat(parts, 1)
    return output, h, c, kept


def layer_backward(
    grad_output: torch.Tensor,
    grad_hy: torch.Tensor,
    grad_cy: torch.Tensor | None,
    x: torch.Tensor,
    hx: torch.Tensor,
    cx: torch.Tensor | None,
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    output: torch.Tensor,
    kept: torch.Tensor,
    cell: str,
    batch_sizes: Sequence[int],
    batch_first: bool,
    reverse: bool,
    wanted: Sequence[bool],
) -> Tensors:
    """Replacement for torch_dml::recurrent_layer_backward."""
    steps = _steps(len(output), len(hx), batch_sizes, batch_first, reverse)
    grad_gates = output.new_empty(len(output), len(w_hh))
    grad_hidden = torch.empty_like(grad_gates) if cell == "gru" else None
    before = torch.empty_like(output)
    grad_h, grad_c = grad_hy.clone(), None if grad_cy is None else grad_cy.clone()
    for i, rows in reversed(list(enumerate(steps))):
        n = len(rows)
        earlier = steps[i - 1] if i else rows[:0]
        both = min(n, len(earlier))
        h = torch.cat([output[earlier[:both]], hx[both:n]])
        before[rows] = h
        grad = grad_h[:n] + grad_output[rows]
        direct = torch.zeros_like(grad)
        if grad_c is not None and cx is not None:
            enter, forget, new, leave, cell_state = kept[rows].chunk(5, 1)
            c = torch.cat([kept[earlier[:both]].chunk(5, 1)[4], cx[both:n]])
            squashed = cell_state.tanh()
            of_cell = grad * leave * (1 - squashed * squashed) + grad_c[:n]
            parts = [
                of_cell * new * enter * (1 - enter),
                of_cell * c * forget * (1 - forget),
                of_cell * enter * (1 - new * new),
                grad * squashed * leave * (1 - leave),
            ]
            grad_c[:n] = of_cell * forget
        elif cell == "gru":
            r, z, new, hidden = kept[rows].chunk(4, 1)
            of_new = grad * (1 - z) * (1 - new * new)
            parts = [of_new * hidden * r * (1 - r), grad * (h - new) * z * (1 - z), of_new]
            direct = grad * z
        else:
            parts = [torch.where(output[rows] == 0, 0, grad) if cell == "relu" else grad * (1 - output[rows] ** 2)]
        gates = grad_gates[rows] = torch.cat(parts, 1)
        if grad_hidden is not None:
            gates = grad_hidden[rows] = torch.cat([*parts[:2], parts[2] * r], 1)
        grad_h[:n] = direct + gates @ w_hh
    of_hidden = grad_gates if grad_hidden is None else grad_hidden
    found = (
        grad_gates @ w_ih,
        grad_h,
        grad_c,
        grad_gates.T @ x,
        of_hidden.T @ before,
        grad_gates.sum(0),
        of_hidden.sum(0),
    )
    return tuple(gradient if wants else None for gradient, wants in zip(found, wanted, strict=True))


# Numbers that are saved for each unit.
_KEPT = {"lstm": 5, "gru": 4}


def _steps(rows: int, batch: int, batch_sizes: Sequence[int], batch_first: bool, reverse: bool) -> Rows:
    """Return the rows of every step, in the order in which the recurrence computes them."""
    places = torch.arange(rows)
    if batch_sizes:
        steps = list(places.split(list(batch_sizes)))
    else:
        steps = list((places.view(batch, -1).T if batch_first else places.view(-1, batch)).unbind(0))
    return steps[::-1] if reverse else steps
