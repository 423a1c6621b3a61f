"""Composite operators of PyTorch that read a tensor's memory on the host, whatever its device.

On a GPU whose addresses are not the host's, they ended the process. On others the values arrive
late, so that a read by address would find zeros. `python -m tests.host_reads` searches for more of
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_dml

from tests.support.compare import assert_matches_cpu
from tests.support.late import late

aten = torch.ops.aten


def directions() -> torch.Tensor:
    """Direction numbers of a Sobol sequence of two dimensions."""
    return aten._sobol_engine_initialize_state_(torch.zeros(2, 30, dtype=torch.long), 2)


def draws() -> torch.Tensor:
    """Lower triangular bits with a diagonal of ones, which scramble a sequence."""
    return torch.randint(0, 2, (2, 30, 30)).tril().bitwise_or(torch.eye(30, dtype=torch.long))


def half_weights() -> torch.Tensor:
    return aten.fbgemm_pack_gemm_matrix_fp16(torch.randn(3, 4))


def byte_weights() -> list[Any]:
    """int8 weights for fbgemm_linear_int8_weight, packed on the CPU."""
    levels, offsets, scale, zero = aten.fbgemm_linear_quantize_weight(torch.randn(3, 4))
    return [levels, aten.fbgemm_pack_quantized_matrix(levels), offsets, scale, zero, torch.randn(3)]


# Operators that run on the CPU, counted as fallbacks, with arguments. Those of `STAY` are weights
# that FBGEMM packed.
ON_CPU: dict[str, Callable[[], list[Any]]] = {
    "_grid_sampler_2d_cpu_fallback": lambda: [torch.randn(1, 2, 4, 4), torch.randn(1, 3, 3, 2) / 2, 0, 0, False],
    "_grid_sampler_2d_cpu_fallback_backward": lambda: [
        torch.randn(1, 2, 3, 3),
        torch.randn(1, 2, 4, 4),
        torch.randn(1, 3, 3, 2) / 2,
        0,
        0,
        False,
    ],
    "_rowwise_prune": lambda: [torch.randn(4, 3), torch.tensor([True, False, True, True]), torch.int64],
    "_saturate_weight_to_fp16": lambda: [torch.randn(3, 4) * 1e5],
    "_sobol_engine_draw": lambda: [torch.tensor([3, 5]), 4, directions(), 2, 1, torch.float32],
    "_sobol_engine_ff_": lambda: [torch.tensor([3, 5]), 3, directions(), 2, 1],
    "_sobol_engine_initialize_state_": lambda: [torch.zeros(2, 30, dtype=torch.long), 2],
    "_sobol_engine_scramble_": lambda: [directions(), draws(), 2],
    "choose_qparams_optimized": lambda: [torch.randn(16), 16, 200, 0.16, 8],
    "fbgemm_linear_fp16_weight": lambda: [torch.randn(2, 4), half_weights(), torch.randn(3)],
    "fbgemm_linear_fp16_weight_fp32_activation": lambda: [torch.randn(2, 4), half_weights(), torch.randn(3)],
    "fbgemm_linear_int8_weight": lambda: [torch.randn(2, 4), *byte_weights()],
    "fbgemm_linear_int8_weight_fp32_activation": lambda: [torch.randn(2, 4), *byte_weights()],
    "fbgemm_linear_quantize_weight": lambda: [torch.randn(3, 4)],
}
STAY = {"fbgemm_linear_fp16_weight": 1, "fbgemm_linear_fp16_weight_fp32_activation": 1}
STAY |= {"fbgemm_linear_int8_weight": 2, "fbgemm_linear_int8_weight_fp32_activation": 2}


def needs(name: str) -> None:
    """Skip if PyTorch is built without FBGEMM."""
    if name.startswith("fbgemm"):
        try:
            half_weights()
        except RuntimeError as error:
            pytest.skip(str(error))


@pytest.mark.allow_fallback
@pytest.mark.parametrize("name", ON_CPU)
def test_composites_that_read_memory_run_on_the_cpu(name: str, device: torch.device) -> None:
    needs(name)
    operator, arguments = getattr(aten, name), ON_CPU[name]()
    there = late(arguments, device)
    if name in STAY:
        there[STAY[name]] = arguments[STAY[name]]
    torch_dml.reset_fallbacks()
    got = operator(*there)
    assert torch_dml.fallbacks() == {f"aten::{name}": 1}
    want = operator(*arguments)
    for one, other in zip(*(value if isinstance(value, tuple) else (value,) for value in (got, want)), strict=True):
        if isinstance(one, torch.Tensor):
            assert one.device.type == device.type
            assert torch.equal(one.cpu(), other)
        else:
            assert one == other


@pytest.mark.allow_fallback
@pytest.mark.parametrize("name", ON_CPU)
def test_their_gradients_are_those_of_the_cpu(name: str, device: torch.device) -> None:
    needs(name)
    arguments = ON_CPU[name]()
    tracked = [value.requires_grad_() if _is_float(value) else value for value in arguments]
    there = [
        value.detach().to(device).requires_grad_(value.requires_grad)
        if isinstance(value, torch.Tensor) and STAY.get(name) != index
        else value
        for index, value in enumerate(tracked)
    ]
    want, got = (_gradients(getattr(aten, name)(*values), values) for values in (tracked, there))
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one.cpu(), other)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _gradients(results: Any, arguments: list[Any]) -> list[torch.Tensor | None]:
    """The gradients of the results' sums, if there are any."""
    tracked = [value for value in arguments if isinstance(value, torch.Tensor) and value.requires_grad]
    sums = [
        value.sum()
        for value in (results if isinstance(results, tuple) else (results,))
        if isinstance(value, torch.Tensor) and value.requires_grad
    ]
    return list(torch.autograd.grad(sums, tracked, allow_unused=True)) if sums else []


@pytest.mark.allow_fallback
def test_a_layer_whose_weights_fbgemm_packs(device: torch.device) -> None:
    needs("fbgemm")
    weight, bias, x = torch.randn(3, 4), torch.randn(3), torch.randn(2, 4)
    packed = aten.fbgemm_pack_gemm_matrix_fp16(late(weight, device))
    assert packed.is_cpu  # a C++ object
    want = aten.fbgemm_linear_fp16_weight(x, aten.fbgemm_pack_gemm_matrix_fp16(weight), bias)
    assert torch.equal(aten.fbgemm_linear_fp16_weight(x.to(device), packed, bias.to(device)).cpu(), want)
    levels = torch.randint(-9, 9, (3, 4), dtype=torch.int8)
    for sizes in ((), (4, 3)):
        packed = aten.fbgemm_pack_quantized_matrix(late(levels, device), *sizes)
        rest = [torch.zeros(3, dtype=torch.int32), 0.5, 0, bias]
        want = aten.fbgemm_linear_int8_weight(x, levels, aten.fbgemm_pack_quantized_matrix(levels), *rest)
        there = [levels.to(device), packed, rest[0].to(device), 0.5, 0, bias.to(device)]
        assert torch.equal(aten.fbgemm_linear_int8_weight(x.to(device), *there).cpu(), want)
    assert torch_dml.fallbacks()["aten::fbgemm_pack_quantized_matrix.KN"] == 1


def test_sizes_in_a_tensor_of_the_device(device: torch.device) -> None:
    x = torch.randn(2, 3, requires_grad=True)
    there = x.detach().to(device).requires_grad_()
    for operator in (aten._reshape_from_tensor, torch.ops.onnx.Reshape):
        y = operator(there, late(torch.tensor([3, 2]), device))
        assert y.shape == (3, 2)
        y[0].sum().backward()
    assert there.grad is not None
    assert there.grad.tolist() == [[2, 2, 0], [0, 0, 0]]


def test_numbers_in_a_tensor_of_the_device(device: torch.device) -> None:
    graph = "graph(%x : Tensor):\n  %y : int[] = aten::_tensor_to_list(%x)\n  return (%y)"
    listed = torch._C._create_function_from_graph("listed", torch._C.parse_ir(graph))
    numbers = torch.tensor([4, 5, 6], dtype=torch.int32)
    assert torch.ops.aten._tensor_to_list(late(numbers, device)) == [4, 5, 6]
    assert listed(late(numbers, device)) == [4, 5, 6]


def test_a_nested_shape_on_the_device(device: torch.device) -> None:
    padded, shapes = torch.randn(2, 3, 4), torch.tensor([[2, 4], [3, 4]])
    got = aten._nested_from_padded(padded.to(device), late(shapes, device))
    for one, other in zip(got.unbind(), aten._nested_from_padded(padded, shapes).unbind(), strict=True):
        assert torch.equal(one.cpu(), other)


def test_a_nested_view_of_a_buffer(device: torch.device) -> None:
    buffer, parts = (
        torch.randn(20),
        [torch.tensor([[2, 4], [3, 4]]), torch.tensor([[4, 1], [4, 1]]), torch.tensor([0, 8])],
    )
    there = buffer.to(device)
    got = aten._nested_view_from_buffer(there, *late(parts, device)).unbind()
    assert got[0].data_ptr() == there.data_ptr()
    for one, other in zip(got, aten._nested_view_from_buffer(buffer, *parts).unbind(), strict=True):
        assert torch.equal(one.cpu(), other)


@pytest.mark.allow_fallback
def test_nested_tensors(device: torch.device) -> None:
    nested = torch.nested.nested_tensor([torch.randn(2, 3) * 1e5, torch.randn(2, 3) * 1e5])
    want = aten._saturate_weight_to_fp16(nested).unbind()
    assert torch_dml.fallbacks() == {}
    got = aten._saturate_weight_to_fp16(nested.to(device))
    assert torch_dml.fallbacks() == {"aten::_saturate_weight_to_fp16": 1}
    assert got.device.type == device.type
    for one, other in zip(got.unbind(), want, strict=True):
        assert torch.equal(one.cpu(), other)


@pytest.mark.allow_fallback
def test_a_quantised_layer_takes_packed_sequences(device: torch.device) -> None:
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("PyTorch is built without FBGEMM")
    module = torch.ao.nn.quantized.dynamic.LSTM(3, 4)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 3), torch.tensor([5, 3]))
    got, want = module(packed.to(device))[0], module(packed)[0]
    assert got.data.device.type == device.type
    assert torch.equal(got.data.cpu(), want.data)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_batch_sizes_on_the_device(kind: str, device: torch.device) -> None:
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(kind, torch.nn.RNN)(3, 4)
    data, sizes, h = torch.randn(8, 3), torch.tensor([2, 2, 2, 1, 1]), torch.randn(1, 2, 4)
    state = (h, h) if kind == "lstm" else h

    def run(data: torch.Tensor, sizes: torch.Tensor, state: Any) -> Any:
        weights = [weight.to(data.device) for weight in module._flat_weights]
        return getattr(torch, kind)(data, sizes, state, weights, True, 1, 0.0, True, False)[0]

    there = (h.to(device), h.to(device)) if kind == "lstm" else h.to(device)
    got = run(data.to(device), late(sizes, device), there)
    torch.testing.assert_close(got.cpu(), run(data, sizes, state))


def test_a_range_without_a_step_is_the_devices() -> None:
    assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::range.out_", "PrivateUse1")
    assert_matches_cpu(lambda out: aten.range.out_(1, 6, out=out), torch.zeros(6))


def test_byteswap_of_a_storage(device: torch.device) -> None:
    x = torch.randn(3)
    there = late(x, device)
    for tensor in (x, there):
        tensor.untyped_storage().byteswap(torch.float32)
    assert torch.equal(there.cpu().view(torch.int32), x.view(torch.int32))
