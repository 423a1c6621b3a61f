"""RNN, LSTM and GRU, their cells and packed sequences, compared with the CPU: results and
gradients.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.utils import rnn
from torch_dml.compare.equivalents import on_cpu

from tests.support.compare import assert_same
from tests.support.dtypes import dtypes
from tests.support.launches import launches

KINDS = [nn.RNN, nn.LSTM, nn.GRU]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bidirectional": True, "num_layers": 2},
    {"batch_first": True, "bias": False},
]


def on_both(module: nn.Module, inputs: list[torch.Tensor], run: Any, rtol: float = 1e-5, atol: float = 2e-6) -> None:
    """Compares results, and gradients of inputs and parameters, of `run(module, *inputs)`."""
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
        # The input is transposed, so it is not contiguous.
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
    # The CPU rounds after every operation; the cells here after the last one.
    tolerance = 1e-12 if dtype == torch.float64 else 16 * torch.finfo(dtype).eps
    on_both(kind(5, 7).to(dtype), [torch.randn(4, 3, 5).to(dtype)], lambda m, x: flat(*m(x)), tolerance, tolerance)


@pytest.mark.parametrize("part", [0, 1])
def test_gradient_of_one_state_alone(part: int) -> None:
    on_both(nn.LSTMCell(5, 7), [torch.randn(3, 5)], lambda m, x: [m(x)[part]])


# ---- many steps at once


# Small weights are read by workgroups that loop over steps; with large ones a step is a launch. The
# sizes include one that is not a multiple of the vector width, and numbers of sequences that do not
# fill workgroups.
WAYS = [(3, 1), (13, 9), (64, 5), (181, 3), (192, 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("hidden", "batch"), WAYS)
@pytest.mark.parametrize("packed", [False, True])
def test_sizes_in_float64(kind: type[nn.RNNBase], hidden: int, batch: int, packed: bool) -> None:
    """Gradients of everything, in both directions and with given initial states, compared with the
    CPU's in float64.
    """
    module = kind(6, hidden, bidirectional=True, batch_first=not packed)
    count = 2 if kind is nn.LSTM else 1
    states = [torch.randn(2, batch, hidden) for _ in range(count)]
    lengths = [5 - i % 3 for i in range(batch)]

    def run(module: nn.RNNBase, x: torch.Tensor, *states: torch.Tensor) -> list[torch.Tensor]:
        data = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False) if packed else x
        out, last = module(data, states if count == 2 else states[0])
        return flat(out.data if packed else out, last)

    found = []
    for device, dtype in (("cpu", torch.float64), ("dml", torch.float32)):
        twin = copy.deepcopy(module).to(device, dtype)
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(batch, 5, 6, generator=generator)
        leaves = [t.detach().to(device, dtype).requires_grad_() for t in (x, *states)]
        results = run(twin, *leaves)
        weights = [torch.linspace(-1, 1, t.numel()).reshape(t.shape).to(t) for t in results]
        torch.autograd.backward(results, weights)
        found.append([*results, *(t.grad for t in leaves), *(p.grad for p in twin.parameters())])
    for exact, ours in zip(*found, strict=True):
        assert_same(ours, exact.float(), 1e-5, 2e-6 * max(1.0, exact.abs().max().item()))


def test_more_steps_than_a_launch_takes() -> None:
    on_both(nn.LSTM(1, 2), [torch.randn(2100, 1, 1)], lambda m, x: flat(*m(x)), 1e-4, 1e-3)


@pytest.mark.parametrize("hidden", [16, 192])
def test_few_launches(hidden: int) -> None:
    module = nn.LSTM(4, hidden, batch_first=True).to("dml")
    counts = []
    for steps in (3, 33):
        x = torch.randn(2, steps, 4, device="dml")
        with torch.no_grad():
            counts.append(launches(lambda x=x: module(x)))
    # A loop is one launch of any length; otherwise a step is a product and its cells.
    assert counts[1] - counts[0] in ({16: (0,), 192: (30 * 2, 30 * 3)}[hidden]), counts


def test_results_are_the_same_from_run_to_run() -> None:
    module = nn.LSTM(4, 24).to("dml")
    x = torch.randn(7, 9, 4, device="dml")
    found = []
    for _ in range(2):
        out = module(x)[0]
        found.append([out, *torch.autograd.grad(out.sum(), module.parameters())])
    assert all(one.equal(other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("wanted", ["x", "h", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_one_alone(kind: type[nn.RNNBase], wanted: str) -> None:
    module = kind(3, 5).requires_grad_(False)
    given = {"x": torch.randn(4, 2, 3), "h": torch.randn(1, 2, 5)}
    found = []
    for device in ("cpu", "dml"):
        twin = copy.deepcopy(module).to(device)
        x, h = (t.to(device) for t in given.values())
        leaf = {"x": x, "h": h, **dict(twin.named_parameters())}[wanted].requires_grad_()
        out, _ = twin(x, (h, h.detach()) if kind is nn.LSTM else h)
        found.append(torch.autograd.grad(out.square().sum(), leaf)[0])
    assert_same(found[1], found[0], 1e-5, 2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_share_no_memory(kind: type[nn.RNNBase]) -> None:
    """Both biases of an LSTM have equal gradients; writing to one must not change the other."""
    module = kind(5, 7).to("dml")
    gradients = torch.autograd.grad(module(torch.randn(4, 3, 5, device="dml"))[0].sum(), list(module.parameters()))
    assert len({gradient.data_ptr() for gradient in gradients}) == len(gradients)


def test_one_tensor_as_several() -> None:
    """The input is also the initial state, and a weight is used for both directions."""

    def run(module: nn.RNNBase, x: torch.Tensor) -> list[torch.Tensor]:
        weights = [p for name, p in module.named_parameters() if "reverse" not in name]
        return list(torch._VF.gru(x, x[:2], weights * 2, True, 1, 0.0, True, True, False))

    on_both(nn.GRU(4, 4), [torch.randn(3, 2, 4)], run)


@pytest.mark.parametrize(("kind", "packed"), [(nn.RNN, False), (nn.GRU, False), (nn.LSTM, True)])
def test_second_derivatives(kind: type[nn.RNNBase], packed: bool) -> None:
    module = kind(2, 3, bidirectional=True).to("dml", torch.float64)
    x = torch.randn(5 if packed else 2, *(() if packed else (2,)), 2, device="dml", dtype=torch.float64)
    h = torch.randn(2, 2, 3, device="dml", dtype=torch.float64)
    names = [name for name, _ in module.named_parameters()]

    def run(x: torch.Tensor, h: torch.Tensor, *parameters: torch.Tensor) -> tuple[torch.Tensor, ...]:
        data = rnn.PackedSequence(x, torch.tensor([2, 2, 1])) if packed else x
        state = (h, h.sin()) if kind is nn.LSTM else h
        out, last = functional_call(module, dict(zip(names, parameters, strict=True)), (data, state))
        return (out.data if packed else out, last[0] if kind is nn.LSTM else last)

    leaves = [t.detach().requires_grad_() for t in (x, h, *module.parameters())]
    torch.autograd.gradcheck(run, leaves, fast_mode=True)
    torch.autograd.gradgradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("kind", KINDS)
def test_without_gradients(kind: type[nn.RNNBase]) -> None:
    module, x = kind(3, 5, 2), torch.randn(4, 2, 3)
    expected = module(x)[0]
    module, x = module.to("dml"), x.to("dml")
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            out = module(x)[0]
        assert not out.requires_grad
        assert_same(out, expected.detach())


def test_a_changed_weight_is_noticed() -> None:
    module = nn.LSTM(3, 5).to("dml")
    out = module(torch.randn(4, 2, 3, device="dml"))[0]
    with torch.no_grad():
        module.weight_hh_l0.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_lowers_everything(kind: type[nn.RNNBase], dtype: torch.dtype) -> None:
    module, x = kind(3, 5, 2, bidirectional=True), torch.randn(4, 2, 3)
    expected = module(x)[0].detach()
    module, x = module.to("dml"), x.to("dml").requires_grad_()
    with torch.autocast("dml", dtype):
        out, last = module(x)
        loss = out.float().square().sum()
    assert {t.dtype for t in flat(out, last)} == {dtype}
    assert_same(out.float(), expected, 0, 8 * torch.finfo(dtype).eps)
    loss.backward()
    assert x.grad.dtype == torch.float32 and all(p.grad.dtype == torch.float32 for p in module.parameters())


def test_numbers_that_are_not_finite() -> None:
    x = torch.randn(4, 3, 5)
    x[1, 0, 0], x[2, 1, 1], x[0, 2, 2] = torch.inf, torch.nan, -torch.inf
    for kind in KINDS:
        module = kind(5, 6)
        assert_same(module.to("dml")(x.to("dml"))[0].detach(), module.cpu()(x)[0].detach(), 1e-5, 2e-6)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_transforms(kind: type[nn.RNNBase]) -> None:
    module, x = kind(3, 4).double(), torch.randn(2, 5, 3).double()
    found = []
    for device in ("cpu", "dml"):
        twin = copy.deepcopy(module).to(device)
        parameters = {name: p.detach() for name, p in twin.named_parameters()}

        def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor, twin: nn.Module = twin) -> torch.Tensor:
            return functional_call(twin, parameters, (x[:, None],))[0].square().sum()

        samples = x.to(device)
        each = [grad(loss)(parameters, sample) for sample in samples]
        # PyTorch has no vmap for the CPU's operators.
        mapped = vmap(grad(loss), (None, 0))(parameters, samples) if device == "dml" else None
        gradients = [mapped[name] if mapped else torch.stack([of[name] for of in each]) for name in parameters]
        found.append([*each[0].values(), *gradients])
    assert_same(found[1], found[0], 1e-9, 1e-9)


@pytest.mark.parametrize("packed", [False, True])
def test_a_graph_of_a_step(packed: bool) -> None:
    module = nn.LSTM(3, 5).to("dml")
    x = torch.randn(*((5, 3) if packed else (3, 2, 3)), device="dml")
    sizes = torch.tensor([2, 2, 1])

    def step() -> list[torch.Tensor]:
        out = module(rnn.PackedSequence(x, sizes) if packed else x)[0]
        out = out.data if packed else out
        return [out.detach(), *torch.autograd.grad(out.square().sum(), module.parameters())]

    step()
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        captured = step()
    x.copy_(torch.randn_like(x))
    graph.replay()
    assert all(one.equal(other) for one, other in zip(captured, step(), strict=True))


@pytest.mark.parametrize("cell", ["lstm", "gru", "tanh", "relu"])
@pytest.mark.parametrize(
    "order", [([], False, False), ([], True, True), ([3, 2, 1], False, False), ([3, 2, 1], False, True)]
)
def test_what_stands_for_it_on_the_cpu(cell: str, order: tuple[list[int], bool, bool]) -> None:
    gates, lstm = {"lstm": 4, "gru": 3}.get(cell, 1), cell == "lstm"
    x, h, c = torch.randn(6, 2), torch.randn(3, 5), torch.randn(3, 5) if lstm else None
    weights = torch.randn(gates * 5, 2), torch.randn(gates * 5, 5)
    biases = torch.randn(gates * 5), torch.randn(gates * 5)

    def both(name: str, *args: Any) -> list[list[Any]]:
        operator = getattr(torch.ops.torch_dml, name).default
        on_device = [t.to("dml") if isinstance(t, torch.Tensor) else t for t in args]
        return [list(on_cpu(operator)(*args)), list(operator(*on_device))]

    first = both("recurrent_layer", x, h, c, *weights, *biases, cell, *order, True)
    out, last, _, kept = first[0]
    grads = [torch.randn_like(t) for t in (out, last)]
    wanted = [True, True, lstm, True, True, True, True]
    second = both("recurrent_layer_backward", *grads, c, x, h, c, *weights, out, kept, cell, *order, wanted)
    for theirs, ours in (first, second):
        assert_same(ours, theirs, 1e-5, 2e-6)


def test_what_pytorch_refuses() -> None:
    weights = [p.detach() for p in nn.LSTM(3, 5).to("dml").parameters()]
    x, h = torch.randn(4, 2, 3, device="dml"), torch.randn(1, 2, 5, device="dml")
    for given, hx, message in (
        (x, [h], "lstm expects two hidden states"),
        (x[..., :2], [h, h], "cannot be multiplied"),
        (x, [h.double(), h], "dtype"),
        (x[:0], [h, h], "Expected sequence length to be larger than 0 in RNN"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch._VF.lstm(given, hx, weights, True, 1, 0.0, False, False, False)


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
    for kind in KINDS:
        on_both(kind(5, 7), [torch.randn(4, 0, 5)], lambda m, x: flat(*m(x)))
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
    weights, biases = (torch.zeros(16, 3, device="dml"), torch.zeros(16, 4, device="dml")), (None, None)

    def layer(x: torch.Tensor, h: Any, c: Any, cell: str = "lstm", batch_sizes: tuple[int, ...] = ()) -> Any:
        return torch.ops.torch_dml.recurrent_layer(x, h, c, *weights, *biases, cell, batch_sizes, False, False, False)

    # What the engine does not take is left to PyTorch, which raises.
    x = torch.zeros(4, 3, device="dml")
    assert layer(x, state, state)[0] is not None
    wrong = [(x[:3], state, state), (x, state, None), (x, state.half(), state), (x[:0], state, state)]
    wrong += [(x, state, state, "lstm", sizes) for sizes in ((2, 1), (1, 2, 1), (3, 1), (2, 2, 0))]
    for case in (*wrong, (x[:, :2], state, state), (x, state[:, :3], state[:, :3])):
        assert layer(*case) == (None,) * 4
    with pytest.raises(RuntimeError, match="unknown recurrent cell"):
        layer(x, state, None, "elman")
