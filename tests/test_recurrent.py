"""RNN, LSTM and GRU, their cells and packed sequences, against the CPU: results and gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from support.compare import assert_same
from support.dtypes import dtypes
from torch import nn
from torch.nn.utils import rnn

KINDS = [nn.RNN, nn.LSTM, nn.GRU]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bidirectional": True, "num_layers": 2},
    {"batch_first": True, "bias": False},
]


def on_both(module: nn.Module, inputs: list[torch.Tensor], run: Any, rtol: float = 1e-5, atol: float = 2e-6) -> None:
    """Results, and gradients of inputs and parameters, of `run(module, *inputs)`."""
    found = []
    for device in ("cpu", "dml"):
        twin = copy.deepcopy(module).to(device)
        leaves = [t.detach().to(device).requires_grad_() for t in inputs]
        results = [t for t in run(twin, *leaves) if t is not None]
        weights = [torch.linspace(-1, 1, t.numel()).reshape(t.shape).to(t) for t in results]
        torch.autograd.backward(results, weights)
        found.append([*results, *(t.grad for t in leaves), *(p.grad for p in twin.parameters())])
    for theirs, ours in zip(*found, strict=True):
        assert_same(ours, theirs, rtol, atol)


def flat(out: torch.Tensor, state: Any) -> list[torch.Tensor]:
    return [out, *(state if isinstance(state, tuple) else (state,))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_layers(kind: type[nn.RNNBase], options: dict[str, Any]) -> None:
    module = kind(5, 7, **options)
    on_both(module, [torch.randn(4, 3, 5)], lambda m, x: flat(*m(x)))


def test_relu_and_projections() -> None:
    on_both(nn.RNN(5, 7, nonlinearity="relu"), [torch.randn(4, 3, 5)], lambda m, x: flat(*m(x)))
    module = nn.LSTM(5, 7, 2, proj_size=3, bidirectional=True)
    on_both(module, [torch.randn(4, 2, 5)], lambda m, x: flat(*m(x)))


@pytest.mark.parametrize("kind", KINDS)
def test_initial_states_and_no_batch(kind: type[nn.RNNBase]) -> None:
    def run(module: nn.RNNBase, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> list[torch.Tensor]:
        # The input is transposed, so not contiguous.
        state = (h, c) if isinstance(module, nn.LSTM) else h + c
        return flat(*module(x.t(), state))

    on_both(kind(5, 7), [torch.randn(5, 4), torch.randn(1, 7), torch.randn(1, 7)], run)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("sorted_lengths", [True, False])
def test_packed_sequences(kind: type[nn.RNNBase], sorted_lengths: bool) -> None:
    lengths = torch.tensor([5, 3, 2] if sorted_lengths else [3, 5, 2])

    def run(module: nn.RNNBase, x: torch.Tensor) -> list[torch.Tensor]:
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=sorted_lengths)
        out, state = module(packed)
        padded, sizes = rnn.pad_packed_sequence(out, batch_first=True)
        assert sizes.equal(lengths)
        return flat(padded, state)

    on_both(kind(4, 6, batch_first=True, bidirectional=True), [torch.randn(3, 5, 4)], run)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(kind: Any, bias: bool) -> None:
    def run(module: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
        state = module(x)
        state = module(x, state)
        return list(state) if isinstance(state, tuple) else [state]

    on_both(kind(5, 7, bias=bias), [torch.randn(3, 5)], run)


@dtypes(torch.float64, torch.float16, torch.bfloat16)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_dtypes(kind: type[nn.RNNBase], dtype: torch.dtype) -> None:
    # The CPU rounds after every operation; the cells here after the last.
    tolerance = 1e-12 if dtype == torch.float64 else 16 * torch.finfo(dtype).eps
    on_both(kind(5, 7).to(dtype), [torch.randn(4, 3, 5).to(dtype)], lambda m, x: flat(*m(x)), tolerance, tolerance)


@pytest.mark.parametrize("part", [0, 1])
def test_gradient_of_one_state_alone(part: int) -> None:
    on_both(nn.LSTMCell(5, 7), [torch.randn(3, 5)], lambda m, x: [m(x)[part]])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_second_derivatives(kind: type[nn.RNNBase]) -> None:
    module = kind(2, 3).to("dml", torch.float64)
    x = torch.randn(2, 2, 2, device="dml", dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: module(x)[0], x, fast_mode=True)
    torch.autograd.gradgradcheck(lambda x: module(x)[0], x, fast_mode=True)


def test_dropout_between_layers_is_seeded() -> None:
    module = nn.LSTM(5, 7, 2, dropout=0.5).to("dml")
    x = torch.randn(4, 3, 5, device="dml")
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(module(x)[0])
    assert results[0].equal(results[1]) and not results[0].equal(results[2])
    module.eval()
    assert module(x)[0].equal(module(x)[0])


def test_nothing_in_the_batch() -> None:
    on_both(nn.LSTMCell(5, 7), [torch.randn(0, 5)], lambda m, x: list(m(x)))
    on_both(nn.GRUCell(5, 7), [torch.randn(0, 5)], lambda m, x: [m(x)])


def test_wrong_sizes() -> None:
    gates, state = torch.zeros(2, 12, device="dml"), torch.zeros(2, 4, device="dml")
    with pytest.raises(RuntimeError, match="expected gates of size"):
        torch.ops.aten._thnn_fused_lstm_cell(gates, gates, state)
    with pytest.raises(RuntimeError, match="both biases or none"):
        torch.ops.aten._thnn_fused_gru_cell(gates, gates, state, gates[0])
    with pytest.raises(RuntimeError, match="expected scalar type"):
        torch.ops.aten._thnn_fused_gru_cell(gates, gates, state.half())
