"""Convolutions by Winograd's transforms, compared with float64 on the CPU.

In separate processes, since `TORCH_DML_WINOGRAD` is read once.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.support.processes import run_python

# Maximum errors of all three passes and of the bias, relative to the largest result.
PASSES = """
import json
import torch
import torch.nn.functional as F

torch.manual_seed(0)
found = {}
ORDERS = {"first": torch.contiguous_format, "last": torch.channels_last}


def error(actual, expected):
    assert actual.device.type == "dml" and actual.dtype == torch.float32 and actual.shape == expected.shape
    if expected.numel() == 0:
        return 0.0
    difference = (actual.detach().cpu().double() - expected.detach()).abs().max()
    return (difference / expected.detach().abs().max().clamp(min=1e-30)).item()


def check(name, n, c, k, size, padding, order="first", bias=True, function=F.conv2d, change=lambda t: t):
    shape = (k, c, 3, 3) if function is F.conv2d else (c, k, 3, 3)
    given = [torch.randn(n, c, *size), torch.randn(shape), torch.randn(k) if bias else None]
    wide = [None if t is None else t.double().requires_grad_() for t in given]
    expected = function(*wide, padding=padding)
    slope = torch.randn(expected.shape)
    expected.backward(slope.double())
    lay = lambda t: change(t.to("dml").contiguous(memory_format=ORDERS[order]))
    leaves = [lay(given[0]).detach().requires_grad_(), lay(given[1]).detach().requires_grad_()]
    leaves.append(None if given[2] is None else given[2].to("dml").requires_grad_())
    actual = function(*leaves, padding=padding)
    if n and min(c, *actual.shape[1:]) > 1:
        assert actual.is_contiguous(memory_format=ORDERS[order]), name
    actual.backward(lay(slope))
    errors = [error(actual, expected)]
    errors += [error(a.grad, b.grad) for a, b in zip(leaves, wide) if a is not None]
    found[name] = max(errors)


for order in ORDERS:
    for padding in (0, 1, 2):
        for size in ((3, 3), (4, 6), (5, 8), (7, 7), (9, 4)):
            check(f"{order}, padding {padding}, {size}", 2, 5, 6, size, padding, order)
    for c in (1, 3, 17, 64):
        for k in (1, 3, 17, 64):
            check(f"{order}, {c} to {k} channels", 2, c, k, (6, 7), 1, order)
    check(f"{order}, many channels", 2, 300, 64, (7, 6), 1, order)
    for n in (0, 1, 3):
        check(f"{order}, {n} images", n, 4, 8, (5, 6), 1, order)
    check(f"{order}, one pixel", 3, 8, 4, (1, 1), 1, order)
    check(f"{order}, one pixel, much padding", 2, 3, 4, (1, 1), 4, order)
    check(f"{order}, a row", 2, 3, 4, (1, 9), 1, order)
    check(f"{order}, a column", 2, 3, 4, (9, 1), (2, 1), order)
    check(f"{order}, paddings", 2, 3, 4, (6, 7), (0, 3), order)
    check(f"{order}, no bias", 2, 3, 4, (6, 7), 1, order, bias=False)
    check(f"{order}, transposed", 2, 3, 4, (6, 7), 1, order, function=F.conv_transpose2d)
    check(f"{order}, transposed, padding 3", 2, 4, 3, (6, 7), 3, order, function=F.conv_transpose2d)


def spread(t):
    # Every second element of a larger tensor.
    room = torch.zeros(*t.shape[:-1], 2 * t.shape[-1], device=t.device)
    room[..., ::2] = t
    return room[..., ::2]


check("not contiguous", 2, 3, 5, (6, 8), 1, change=spread)
shift = lambda t: torch.cat([t.new_zeros(1), t.flatten()])[1:].view(t.shape)
check("begins within 16 bytes", 2, 4, 4, (6, 8), 1, change=shift)

# No batch, out of range of the window, and a step and a group that leave it to others.
x, w = torch.randn(3, 7, 8), torch.randn(5, 3, 3, 3)
found["no batch"] = error(F.conv2d(x.to("dml"), w.to("dml"), padding=1), F.conv2d(x.double(), w.double(), padding=1))
for options in ({"stride": 2}, {"dilation": 2}, {"groups": 2}):
    x, w = torch.randn(2, 4, 7, 8), torch.randn(6, 4 // options.get("groups", 1), 3, 3)
    expected = F.conv2d(x.double(), w.double(), **options)
    found[str(options)] = error(F.conv2d(x.to("dml"), w.to("dml"), **options), expected)


# A small network, and the second derivative.
def network(x, weights):
    for w in weights:
        x = F.silu(F.conv2d(x, w, padding=1))
    return x.square().mean()


x = torch.randn(2, 3, 9, 7)
weights = [torch.randn(shape) / 6 for shape in ((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3, 3))]
results = []
for device, dtype in (("cpu", torch.float64), ("dml", torch.float32)):
    leaves = [t.to(device, dtype).requires_grad_() for t in (x, *weights)]
    first = torch.autograd.grad(network(leaves[0], leaves[1:]), leaves, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
    results.append([*first, *second])
found["a network"] = max(error(a, b) for b, a in zip(*results))

# The same bits each time, with and without the flag.
x, w = torch.randn(3, 16, 9, 9, device="dml"), torch.randn(24, 16, 3, 3, device="dml")
slope = torch.randn(3, 24, 9, 9, device="dml")
runs = []
for deterministic in (False, True, False):
    torch.use_deterministic_algorithms(deterministic)
    leaves = [t.clone().requires_grad_() for t in (x, w)]
    y = F.conv2d(*leaves, padding=1)
    y.backward(slope)
    runs.append([y.detach().cpu(), *(t.grad.cpu() for t in leaves)])
assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0]))
torch.use_deterministic_algorithms(False)

# What a graph's replay finds in its numbers is that replay's.
graph = torch.dml.Graph()
with torch.no_grad(), torch.dml.graph(graph):
    y = F.conv2d(x, w, padding=1)
for value in (0.0, float("inf"), 0.0):
    x[1, 2, 3, 4] = value
    graph.replay()
    expected = F.conv2d(x.cpu().double(), w.cpu().double(), padding=1)
    finite = expected.isfinite()
    assert torch.equal(y.cpu().isinf(), expected.isinf()) and torch.equal(y.cpu().isnan(), expected.isnan())
    name = f"a replay with {value}"
    found[name] = max(found.get(name, 0.0), error(y.cpu()[finite].to("dml"), expected[finite]))
print(json.dumps(found))
"""

# More transformed numbers than the workspace holds: images are processed in parts.
PARTS = """
import torch
import torch.nn.functional as F

torch.manual_seed(0)
x, w, slope = torch.randn(3, 48, 264, 264), torch.randn(40, 48, 3, 3), torch.randn(3, 40, 264, 264)
results = []
for device in ("cpu", "dml"):
    leaf = w.to(device).requires_grad_()
    y = F.conv2d(x.to(device), leaf, padding=1)
    results.append([y, *torch.autograd.grad(y, leaf, slope.to(device))])
for expected, actual in zip(*results):
    difference = (actual.cpu() - expected).abs().max() / expected.abs().max()
    assert difference < 5e-5, difference
"""

# Results and gradients for inputs with NaN, infinities or large numbers.
NUMBERS = """
import sys
import torch
import torch.nn.functional as F

results = {}


def run(name, n=2, c=5, k=7, size=(9, 8), scale=1.0, **changes):
    for last in (False, True):
        torch.manual_seed(0)
        given = {"x": torch.randn(n, c, *size), "w": torch.randn(k, c, 3, 3), "slope": torch.randn(n, k, *size)}
        for operand, values in changes.items():
            others = [t for key, t in given.items() if key != operand]
            for t in others:
                t *= scale
            for place, value in values.items():
                given[operand][place] = value
        order = torch.channels_last if last else torch.contiguous_format
        x, w, slope = (t.to("dml").contiguous(memory_format=order) for t in given.values())
        bias = torch.linspace(-1, 1, k).to("dml")
        leaves = [x.requires_grad_(), w.requires_grad_()]
        y = F.conv2d(*leaves, bias, padding=1)
        y.backward(slope)
        results[name, last] = [y.detach().cpu(), *(t.grad.cpu() for t in leaves)]


for value in (float("inf"), -float("inf"), float("nan")):
    run(f"{value} in the input", x={(0, 2, 3, 4): value})
    run(f"{value} in a corner", x={(1, 0, 8, 7): value})
    run(f"{value} in the weight", w={(1, 0, 2, 1): value})
    run(f"{value} in the gradient", slope={(1, 0, 2, 1): value})
run("both infinities", x={(0, 2, 3, 4): float("inf"), (0, 2, 3, 5): -float("inf")})
run("large inputs", scale=0.1, x={(1, 0, 2, 1): 1.2e38, (1, 0, 3, 1): -1.2e38, (0, 1, 5, 5): 3e38})
run("large weights", scale=0.1, w={(1, 0, 2, 1): 3e38, (2, 0, 1, 1): -3e38})
run("large gradients", scale=0.1, slope={(1, 0, 2, 1): 3e38, (0, 3, 4, 4): 2e38})
run("numbers beside a large one", x={(1, 0, 2, 1): 1e9}, slope={(1, 0, 2, 1): 1e-3})
run("gradients beside a large one", slope={(1, 0, 2, 1): 2.0**24})
run("all the same", x={...: 1e30}, scale=1e-3)
run("small numbers", x={...: 1e-25}, scale=1e-3)
# The largest that are transformed.
limit = 2.0**24 * (1 - 2**-24)
run("the largest", x={...: limit}, w={...: limit}, slope={...: -limit})
torch.save(results, sys.argv[1])
"""


def kernels(folder: Path) -> str:
    return " ".join(sorted(file.name for file in folder.iterdir()))


@pytest.mark.slow
def test_every_pass(tmp_path: Path) -> None:
    done = run_python(
        "-c", PASSES, TORCH_DML_WINOGRAD="always", TORCH_DML_FALLBACK="error", TORCH_DML_SPIRV_DIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    far = {name: error for name, error in found.items() if not error < 2e-6}
    assert len(found) > 90 and not far, far
    for kernel in ("input", "gradient", "filter", "output", "weight"):
        assert f"winograd_{kernel}" in kernels(tmp_path)


def test_parts() -> None:
    done = run_python("-c", PARTS, TORCH_DML_WINOGRAD="always", TORCH_DML_FALLBACK="error")
    assert done.returncode == 0, done.stderr


def test_every_number(tmp_path: Path) -> None:
    """Infinities and NaN are where the direct products have them, and large numbers do not become
    infinite.
    """
    results = []
    for mode in ("0", "always"):
        file = tmp_path / mode
        done = run_python("-c", NUMBERS, str(file), TORCH_DML_WINOGRAD=mode, TORCH_DML_FALLBACK="error")
        assert done.returncode == 0, done.stderr
        results.append(torch.load(file))
    direct, transformed = results
    assert len(direct) > 30 and direct.keys() == transformed.keys()
    for name, expected in direct.items():
        for i, (a, b) in enumerate(zip(transformed[name], expected, strict=True)):
            assert torch.equal(a.isnan(), b.isnan()), (name, i)
            assert torch.equal(a.isposinf(), b.isposinf()) and torch.equal(a.isneginf(), b.isneginf()), (name, i)
            a, b = a[b.isfinite()].double(), b[b.isfinite()].double()
            # Results that do not depend on a large number are as accurate as without it.
            scale = b.abs().median() if "beside" in name[0] else b.abs().max()
            assert b.numel() == 0 or (a - b).abs().max() <= 4e-6 * scale, (name, i, (a - b).abs().max(), scale)


@pytest.mark.parametrize("mode", ["", "0", "1"])
def test_small_convolutions_are_direct(mode: str, tmp_path: Path) -> None:
    code = "import torch; torch.nn.Conv2d(8, 8, 3).to('dml')(torch.randn(1, 8, 9, 9, device='dml')).sum().item()"
    done = run_python("-c", code, TORCH_DML_WINOGRAD=mode, TORCH_DML_SPIRV_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "winograd" not in kernels(tmp_path)
