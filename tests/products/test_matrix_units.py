"""Products in half precision on matrix units: on the adapter's if it has any, and on emulated
ones.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from tests.support import notes
from tests.support.processes import run_python

PRODUCTS = """
import json
import torch
import torch.nn.functional as F

torch.manual_seed(0)
worst = {}


def compare(name, function, *args):
    expected = function(*(x.double() for x in args))
    actual = function(*(x.to("dml") for x in args)).cpu().double()
    # Each sum is rounded once to the dtype, and its terms are at most a few.
    error = (actual - expected).abs() / (1 + expected.abs())
    worst[name] = max(worst.get(name, 0.0), error.max().item() / torch.finfo(args[0].dtype).eps)


for dtype in (torch.float16, torch.bfloat16):
    x, y = torch.randn(48, 64).to(dtype), torch.randn(64, 40).to(dtype)
    compare("mm", torch.mm, x, y)
    compare("mm of transposes", lambda a, b: b.t() @ a.t(), x, y)
    compare("odd sizes", torch.mm, x[:33, :61], y[:61, :19])
    compare("steps", torch.mm, x[::2, ::2], y[::2, ::2])
    compare("addmm", lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), x, y, torch.randn(40).to(dtype))
    compare("bmm", torch.bmm, torch.randn(3, 17, 24).to(dtype), torch.randn(3, 24, 33).to(dtype))
    compare("linear", F.linear, x, y.t().contiguous(), torch.randn(40).to(dtype))
    image, weight = torch.randn(2, 8, 9, 9).to(dtype), torch.randn(16, 8, 3, 3).to(dtype)
    compare("conv2d", lambda a, w: F.conv2d(a, w, padding=1), image, weight)
    for name, inputs, outputs, kernel, pixels, options in (
        ("conv2d of tiles of channels", 64, 40, 3, 8, {"padding": 1}),
        ("conv2d of steps", 16, 24, 3, 11, {"padding": 2, "stride": 2, "dilation": 2}),
        ("conv2d of single pixels", 16, 8, 1, 7, {}),
        ("conv2d of units of pixels", 16, 8, 1, 8, {}),
    ):
        image = torch.randn(2, inputs, pixels, pixels).to(dtype)
        weight = (torch.randn(outputs, inputs, kernel, kernel) / (inputs * kernel * kernel) ** 0.5).to(dtype)
        result = F.conv2d(image.double(), weight.double(), **options)
        slope = torch.randn(result.shape).to(dtype)
        compare(name, lambda a, w, _: F.conv2d(a, w, **options), image, weight, slope)
        for i, of in enumerate(("image", "weight")):

            def gradient(a, w, slope, i=i):
                operands = (a.detach().requires_grad_(), w.detach().requires_grad_())
                return torch.autograd.grad(F.conv2d(*operands, **options), operands, slope)[i] / (1, 8)[i]

            compare(f"{name}: gradient of the {of}", gradient, image, weight, slope)
wide = torch.tensor([[65504.0, float("inf"), float("nan"), 6e-8]] * 16, dtype=torch.float16).repeat(1, 4)
one = torch.eye(16, dtype=torch.float16)
product = (wide.to("dml") @ one.to("dml")).cpu()
print(json.dumps({"worst": worst, "special": product.isnan().all(1).tolist()}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["0", "1", "emulate"])
def test_products(mode: str) -> None:
    """As close to float64 with matrix units as without; an infinity times 0 is NaN in each."""
    done = run_python("-c", PRODUCTS, TORCH_DML_MATRIX_UNITS=mode, TORCH_DML_FALLBACK="error")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(found["special"])
    for name, error in found["worst"].items():
        assert error < 4, f"{name}: {error} of the dtype's epsilon"


def test_capture_of_the_first_product() -> None:
    """The capture cannot wait for the units' self-test: the product is computed without them,
    correctly.
    """
    code = """
import torch
x = torch.randint(-3, 4, (32, 32)).half()
given = x.to("dml")
graph = torch.dml.Graph()
with torch.dml.graph(graph):
    result = given @ given
graph.replay()
assert torch.equal(result.cpu(), (x.float() @ x.float()).half()), result
"""
    done = run_python("-c", code, TORCH_DML_MATRIX_UNITS="1")
    assert done.returncode == 0, done.stderr


PRODUCT = """
import torch
x = torch.randint(-3, 4, (64, 64)).half()
given = x.to("dml")
assert torch.equal((given @ given).cpu(), (x.float() @ x.float()).half())
"""


def product(folder: Path, code: str = PRODUCT) -> tuple[int, str]:
    """Run a product in half precision in a new process; return how many kernels for matrix units it
    compiled, and its log.
    """
    kernels = folder / "kernels"
    for file in kernels.glob("*"):
        file.unlink()
    variables = {
        "TORCH_DML_CACHE_DIR": str(folder / "cache"),
        "TORCH_DML_SPIRV_DIR": str(kernels),
        "TORCH_DML_MATRIX_UNITS": "emulate",
        "TORCH_DML_LOG": "warn",
    }
    done = run_python("-c", code, **variables)
    assert done.returncode == 0, done.stderr
    return sum("matrix_gemm" in file.name for file in kernels.glob("*.spv")), done.stderr


@pytest.mark.skipif(
    os.environ.get("TORCH_DML_PROFILE") == "minimum", reason="that profile's workgroups are too small for the kernels"
)
def test_the_verdict_is_kept(tmp_path: Path) -> None:
    """The first process tests the units, later ones use the stored verdict, and none uses a corrupt
    file.
    """
    tried, said = product(tmp_path)
    file = notes.file(tmp_path / "cache")
    good = file.read_bytes()
    content = good[64:]
    assert b"Half 16x16x16" in content and content.endswith(b"\tright\n") and said == ""
    assert notes.rewritten(good, content) == good
    # One is the product's own kernel.
    known, _ = product(tmp_path)
    assert tried > known == 1
    assert file.read_bytes() == good
    # A stored verdict needs no waiting in a capture.
    captured = PRODUCT.replace(
        "assert", "graph = torch.dml.Graph()\nwith torch.dml.graph(graph):\n    given @ given\nassert"
    )
    assert product(tmp_path, captured.split("assert")[0]) == (1, "")

    file.write_bytes(notes.rewritten(good, content.replace(b"right", b"wrong")))
    made, said = product(tmp_path)
    assert made == 0 and "no right products of Half" in said
    damaged = bytearray(good)
    damaged[-2] ^= 1
    header = bytearray(good[:64])
    header[20] ^= 1
    other_version = notes.resealed(bytes(header), content)
    for foreign in (bytes(damaged), other_version):
        file.write_bytes(foreign)
        made, said = product(tmp_path)
        assert made == tried and "it is not read" in said
        assert file.read_bytes() == good
    file.chmod(0o666)
    assert product(tmp_path)[0] == tried


def test_determinism() -> None:
    x = torch.randn(130, 70, device="dml").half()
    assert torch.equal(x @ x.t(), x @ x.t())


EPILOGUES = """
import torch, torch_dml

torch.manual_seed(0)
op = torch.ops.torch_dml.product_then.default
for dtype, of in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
    for m, n, k in ((128, 128, 32), (100, 136, 24)):
        a, b = torch.randn(m, k, device="dml").to(dtype), torch.randn(k, n, device="dml").to(dtype)
        whole = [torch.randn(m, n, device="dml").to(dtype) for _ in range(3)]
        row, column = torch.randn(n, device="dml").to(dtype), torch.randn(m, 1, device="dml")
        for tensors in ([whole[0]], [row, whole[1]], [column, whole[2].float()], [*whole, row]):
            names = ", ".join(f"%t{i}" for i in range(len(tensors)))
            lines, value, expected = [f"%p = identity [rounded {of}] %sum"], "%p", a @ b
            for i, tensor in enumerate(tensors):
                rounded = f" [rounded {of}]"
                lines.append(f"%v{i} = add{rounded} {value}, %t{i}")
                value, expected = f"%v{i}", (expected.float() + tensor.float()).to(dtype)
            found = op(a, b, None, tensors, f"expr %sum, {names} {{ {' '.join(lines)} }}", dtype)
            assert torch.equal(found, expected), (dtype, m, len(tensors))
print("equal")
"""


@pytest.mark.parametrize("mode", ["0", "emulate"])
def test_epilogues_with_tensors(mode: str) -> None:
    done = run_python("-c", EPILOGUES, TORCH_DML_MATRIX_UNITS=mode)
    assert done.returncode == 0 and "equal" in done.stdout, done.stderr
