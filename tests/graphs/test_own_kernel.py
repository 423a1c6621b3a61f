"""Kernels that a program writes as text."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
import torch
import torch_dml
from torch.nn import functional
from torch_dml import engine

from tests.support.compare import assert_same
from tests.support.environment import ROOT
from tests.support.processes import run_python


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_kernel", ROOT / "examples" / "own_kernel.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCALE = """
kernel scale [64, 1, 1] {
  output @out: f32
  input @x: f32
  param %n: u32
  param %factor: f32
  %first: u32 = mul group.x, 64
  %i: u32 = add %first, local.x
  %inside: bool = lt %i, %n
  if %inside {
    %x: f32 = load @x[%i]
    %y: f32 = mul %x, %factor
    store @out[%i], %y
  }
}
"""


def test_silu_and_multiplication_in_one_pass(device: torch.device) -> None:
    kernel = torch_dml.kernel(example().SILU_MUL)
    x, y = torch.randn(2, 1000, device=device)
    out = torch.empty_like(x)
    assert kernel(out, x, y, x.numel(), groups=4) is None
    torch.testing.assert_close(out, functional.silu(x) * y, rtol=4e-6, atol=0)
    assert kernel.name == "silu_mul" and kernel.workgroup == (256, 1, 1)
    assert repr(kernel) == "<kernel silu_mul (output out: f32, input x: f32, input y: f32, param n: u32)>"


@pytest.mark.parametrize("columns", [1, 63, 64, 1000])
def test_softmax_of_rows(columns: int, device: torch.device) -> None:
    kernel = torch_dml.kernel(example().SOFTMAX)
    x = torch.randn(17, columns, device=device) * 10
    out = torch.empty_like(x)
    kernel(out, x, columns, groups=17)
    torch.testing.assert_close(out, x.softmax(1), rtol=4e-6, atol=1e-9)
    assert torch.allclose(out.sum(1), torch.ones(17, device=device))


def test_functions_have_the_bits_of_the_operators(device: torch.device) -> None:
    x = torch.rand(777, device=device) * 6 + 0.01
    for function, operator in {"exp": torch.exp, "erf": torch.erf, "tanh": torch.tanh, "rsqrt": torch.rsqrt}.items():
        body = f"%s: f32 = {function} %x\n    %y: f32 = mul %s, %factor"
        kernel = torch_dml.kernel(SCALE.replace("%y: f32 = mul %x, %factor", body))
        out = torch.empty_like(x)
        kernel(out, x, 777, 1.0, groups=13)
        assert torch.equal(out, operator(x))


@pytest.mark.parametrize(
    ("name", "dtype"), [("bf16", torch.bfloat16), ("f16", torch.float16), ("u8", torch.uint8), ("bool", torch.bool)]
)
def test_narrow_tensors(name: str, dtype: torch.dtype, device: torch.device) -> None:
    kernel = torch_dml.kernel(f"""
    kernel widen [32, 1, 1] {{
      output @out: f32  input @x: {name}  output @back: {name}
      %element: u32 = load @x[local.x]
      %number: {"i32" if name == "u8" else "bool" if name == "bool" else "f32"} = decode_{name} %element
      {"%wide: f32 = convert %number" if name in ("u8", "bool") else "%wide: f32 = add %number, 0.0"}
      store @out[local.x], %wide
      %narrow: u32 = encode_{name} %wide
      store @back[local.x], %narrow
    }}""")
    x = (torch.randn(32).abs() * 3).to(dtype).to(device)
    out, back = torch.empty(32, device=device), torch.empty_like(x)
    kernel(out, x, back, groups=1)
    assert torch.equal(out, x.float()) and torch.equal(back, x)


def test_order_with_operators(device: torch.device) -> None:
    kernel = torch_dml.kernel(SCALE)
    x = torch.arange(1000.0, device=device)
    for _ in range(5):
        x = x + 1
        kernel(x, x, 1000, 2.0, groups=16)  # In place: an invocation reads what it writes.
    expected = torch.arange(1000.0)
    for _ in range(5):
        expected = (expected + 1) * 2
    assert_same(x, expected)


def test_a_view_is_seen_from_its_first_element_on(device: torch.device) -> None:
    x = torch.arange(100.0, device=device)
    out = torch.zeros(100, device=device)
    torch_dml.kernel(SCALE)(out[10:20], x[50:60], 10, -1.0, groups=1)
    expected = torch.zeros(100)
    expected[10:20] = -torch.arange(50.0, 60.0)
    assert_same(out, expected)


def test_no_workgroups_and_no_elements(device: torch.device) -> None:
    kernel = torch_dml.kernel(SCALE)
    out = torch.zeros(4, device=device)
    kernel(out, torch.ones(4, device=device), 4, 2.0, groups=(0, 1))
    assert_same(out, torch.zeros(4))
    empty = torch.empty(0, device=device)
    kernel(empty, empty, 0, 2.0, groups=1)


def test_one_kernel_is_compiled_once(device: torch.device) -> None:
    text = SCALE.replace("scale", "compiled_once")
    x = torch.ones(8, device=device)

    def run(text: str) -> int:
        torch_dml.kernel(text)(x, x, 8, 2.0, groups=1)
        torch.dml.synchronize()
        return engine.kernel_stats()["kernels"]

    compiled = run(text)
    assert run(text) == compiled
    assert run(text.replace("\n", "  // laid out differently\n")) == compiled
    assert run(text.replace("compiled_once", "another_name")) == compiled + 1


def test_errors_name_line_and_column() -> None:
    with pytest.raises(ValueError, match=r"^13:5: memory of f32 takes no bool$"):
        torch_dml.kernel(SCALE.replace("store @out[%i], %y", "store @out[%i], %inside"))
    with pytest.raises(ValueError, match=r"^12:19: %z is not defined here$"):
        torch_dml.kernel(SCALE.replace("mul %x, %factor", "mul %z, %factor"))
    with pytest.raises(ValueError, match=r"^1:1: kernel is wanted, and the text ends$"):
        torch_dml.kernel("")
    with pytest.raises(ValueError, match="no addresses as values"):
        torch_dml.kernel("kernel k [1, 1, 1] { param %a: words @p: f32 = at %a store @p[0], 1.0 }")


def test_arguments_that_do_not_fit(device: torch.device) -> None:
    kernel = torch_dml.kernel(SCALE)
    x = torch.ones(4, device=device)
    with pytest.raises(TypeError, match="scale takes 4 arguments, not 3"):
        kernel(x, x, 4, groups=1)
    with pytest.raises(TypeError, match=r"scale: x is a tensor of torch\.float32, not of torch\.float64"):
        kernel(x, torch.ones(4, dtype=torch.float64), 4, 1.0, groups=1)
    with pytest.raises(TypeError, match=r"scale: out is a tensor of torch\.float32, not int"):
        kernel(1, x, 4, 1.0, groups=1)
    with pytest.raises(TypeError, match="scale: n is an integer of type u32, not float"):
        kernel(x, x, 4.0, 1.0, groups=1)
    with pytest.raises(TypeError, match="scale: factor is a number of type f32, not Tensor"):
        kernel(x, x, 4, x, groups=1)
    for number in (-1, 1 << 32):
        with pytest.raises(ValueError, match=f"scale: n: {number} is out of the range of u32"):
            kernel(x, x, number, 1.0, groups=1)
    with pytest.raises(ValueError, match="scale: factor: 1e\\+300 is out of the range of f32"):
        kernel(x, x, 4, 1e300, groups=1)
    for groups in ((), (1, 1, 1, 1), -1, 1 << 32):
        with pytest.raises(ValueError, match="groups are one to three numbers"):
            kernel(x, x, 4, 1.0, groups=groups)
    with pytest.raises(RuntimeError, match="workgroups, and at most"):
        kernel(x, x, 4, 1.0, groups=(1, 1, (1 << 32) - 1))
    with pytest.raises(RuntimeError, match="requires grad"):
        kernel(x, torch.ones(4, device=device, requires_grad=True), 4, 1.0, groups=1)
    with pytest.raises(RuntimeError, match="negated"):
        kernel(x, torch.ones(4, dtype=torch.complex64, device=device).conj().imag[:4], 4, 1.0, groups=1)


def test_tensors_of_other_devices(device: torch.device) -> None:
    kernel = torch_dml.kernel(SCALE)
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match=r"scale: x is a dense tensor on dml, not a torch\.strided one on cpu"):
        kernel(x, torch.ones(4), 4, 1.0, groups=1)
    other = torch.ones(4, device="dml:1")
    with pytest.raises(RuntimeError, match="scale: x is on dml:1, and others are on dml:0"):
        kernel(x, other, 4, 1.0, groups=1)
    kernel(other, other, 4, 3.0, groups=1)  # It is compiled for this device, too.
    assert_same(other, torch.full((4,), 3.0))


def test_what_is_saved_for_backward_is_protected(device: torch.device) -> None:
    x = torch.ones(4, device=device)
    weight = torch.ones(4, device=device, requires_grad=True)
    y = weight * x
    with torch.no_grad():
        torch_dml.kernel(SCALE)(x, x, 4, 2.0, groups=1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_capture_in_a_graph(device: torch.device) -> None:
    kernel = torch_dml.kernel(SCALE)
    x = torch.ones(100, device=device)
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        y = torch.empty_like(x)
        kernel(y, x + 1, 100, 10.0, groups=2)
        z = y - 1
    for scale in range(3):
        x.fill_(scale)
        graph.replay()
        assert_same(z, torch.full((100,), (scale + 1) * 10.0 - 1))


def test_example_agrees_with_pytorch() -> None:
    done = run_python("examples/own_kernel.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fallbacks to the CPU: 0" in done.stdout and "softmax_rows" in done.stdout
