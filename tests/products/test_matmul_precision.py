"""Products of float32 with `torch.set_float32_matmul_precision`: with matrix units, emulated ones,
and without.
"""

from __future__ import annotations

import json

import pytest
import torch

from tests.support.compare import assert_matches_cpu
from tests.support.processes import run_python

# For every kind of product and every setting: the root mean square error relative to the sums of
# magnitudes, and whether "high" has other bits than "highest", which means that matrix units were
# used.
PRODUCTS = """
import json
import torch
import torch.nn.functional as F

torch.manual_seed(0)
found = {}


def compare(name, function, *args):
    exact = function(*(x.double() for x in args))
    size = function(*(x.double().abs() for x in args)).abs().mean()
    given = [x.to("dml") for x in args]
    results = {}
    for setting in ("highest", "high", "medium", "highest"):
        torch.set_float32_matmul_precision(setting)
        once, again = function(*given).cpu(), function(*given).cpu()
        assert torch.equal(once, again), f"{name}, {setting}: other bits"
        assert setting not in results or torch.equal(results[setting], once), f"{name}: {setting} is not what it was"
        results[setting] = once
    errors = {setting: ((result - exact).square().mean().sqrt() / size).item() for setting, result in results.items()}
    found[name] = errors | {"split": not torch.equal(results["high"], results["highest"])}


x, y = torch.randn(48, 64), torch.randn(64, 40)
compare("mm", torch.mm, x, y)
compare("mm of transposes", lambda a, b: b.t() @ a.t(), x, y)
compare("mm of one transposed", lambda a, b: a @ b, x, y.t().contiguous().t())
compare("odd sizes", torch.mm, x[:33, :61], y[:61, :19])
compare("steps", torch.mm, x[::2, ::2], y[::2, ::2])
compare("expanded", torch.mm, x[:1].expand(48, 64), y)
compare("addmm", lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), x, y, torch.randn(40))
compare("addmm_", lambda a, b, c: c.clone().addmm_(a, b, beta=0.5, alpha=2), x, y, torch.randn(48, 40))
compare("out=", lambda a, b: torch.mm(a, b, out=a.new_empty(40, 48).t()), x, y)
compare("bmm", torch.bmm, torch.randn(3, 17, 24), torch.randn(3, 24, 33))
compare("bmm of one matrix", lambda a, b: a @ b.expand(3, 24, 33), torch.randn(3, 17, 24), torch.randn(1, 24, 33))
batches = torch.randn(3, 17, 24), torch.randn(3, 24, 33)
compare("baddbmm", lambda c, a, b: torch.baddbmm(c, a, b, alpha=3), torch.randn(33), *batches)
compare("addbmm", torch.addbmm, torch.randn(17, 33), torch.randn(3, 17, 24), torch.randn(3, 24, 33))
compare("linear", F.linear, x.view(2, 24, 64), y.t().contiguous(), torch.randn(40))
compare("einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), torch.randn(3, 17, 24), torch.randn(3, 33, 24))
compare("long", torch.mm, torch.randn(16, 900), torch.randn(900, 20))
compare("longer", torch.mm, torch.randn(40, 4096), torch.randn(4096, 20))
for i, of in enumerate(("input", "weight", "bias")):

    def gradient(a, w, bias, slope, i=i):
        operands = [t.detach().requires_grad_() for t in (a, w, bias)]
        return torch.autograd.grad(F.linear(*operands), operands, slope)[i]

    compare(f"gradient of linear's {of}", gradient, x, torch.randn(40, 64), torch.randn(40), torch.randn(48, 40))
print(json.dumps(found))
"""

# Rows and columns of every magnitude, infinities and NaN, compared with the CPU's.
NUMBERS = """
import sys
import torch

torch.manual_seed(0)


def compare(x, y, bound, settings=("high", "highest")):
    # float32's range is the result's.
    expected, magnitudes = (x.double() @ y.double()).float().double(), x.double().abs() @ y.double().abs()
    for setting in settings:
        torch.set_float32_matmul_precision(setting)
        actual = (x.to("dml") @ y.to("dml")).cpu().double()
        # What overflows on the way may be NaN, as in any order of a sum.
        finite = magnitudes <= torch.finfo(torch.float32).max
        assert (actual.isnan() == expected.isnan())[finite | ~magnitudes.isfinite()].all(), setting
        infinite = expected.isinf() & ~magnitudes.isfinite()
        assert (actual == expected)[infinite].all(), setting
        # Subnormal results are the adapter's own way.
        error = (actual - expected).abs()[finite] - 1e-37
        assert (error <= magnitudes[finite] * bound).all(), (setting, (error / magnitudes[finite]).max())


scales = torch.tensor([1e-30, 1e30, 1.0, 0.0, 1e-33, 1e37])
x, y = torch.randn(70, 40), torch.randn(40, 67)
compare(x * scales.repeat(12)[:70, None], y * scales.flip(0).repeat(12)[:67], 2**-20)
# In terms they count on every adapter; without, some adapters flush them.
if torch.dml.get_device_properties().subnormals or "emulate" in sys.argv:
    scales = torch.tensor([3e-39, 1e-44, 1e-41, 1e-40])
    compare(x * scales.repeat(18)[:70, None], y * 1e30, 2**-20, ("high",))
    compare(x * 1e30, y * scales.repeat(18)[:67], 2**-20, ("high",))
# Decisive elements far below their row's largest one, which meets a zero.
left, right = x.clone(), y.clone()
left[0], right[:, 0] = 3e-10, 7
left[0, 0], right[0, 0] = 1, 0
compare(left, right, 2**-10)
# Two such that meet.
left[1], right[:, 1] = 0, 0
left[1, 0], left[1, 1], right[1, 1], right[2, 1] = 1, 5e-10, 5e-10, 1
compare(left, right, 2**-10)
# One that is smaller still, in one block of the result.
left, right = x.clone(), y.clone()
left[0], right[:, 0] = 1e-20, 7
left[0, 0], right[0, 0] = 1, 0
compare(left, right, 2**-20)
for value in (float("inf"), -float("inf"), float("nan")):
    for a, b in ((3, 66), (66, 3)):
        left, right = x.clone(), y.clone()
        left[a, 5], right[6, b], right[5, 9] = value, value, 0
        compare(left, right, 2**-20)
assert torch.equal((torch.zeros(20, 30, device="dml") @ torch.randn(30, 20, device="dml")).cpu(), torch.zeros(20, 20))
torch.set_float32_matmul_precision("high")
assert (torch.zeros(20, 30, device="dml") @ torch.randn(30, 20, device="dml")).eq(0).all()
empty = torch.randn(20, 0, device="dml") @ torch.randn(0, 20, device="dml")
assert torch.equal(empty.cpu(), torch.zeros(20, 20))
assert (torch.randn(0, 20, device="dml") @ torch.randn(20, 30, device="dml")).shape == (0, 30)
bias = torch.randn(20)
assert torch.equal(torch.addmm(bias.to("dml"), empty[:, :0], empty[:0], beta=2).cpu(), (2 * bias).expand(20, 20))
nothing = torch.addmm(bias.to("dml"), empty + float("inf"), empty, alpha=0)
assert torch.equal(nothing.cpu(), bias.expand(20, 20))

# One bfloat16 each.
torch.set_float32_matmul_precision("medium")
x, y = torch.randn(33, 50), torch.randn(50, 21)
actual = (x.to("dml") @ y.to("dml")).cpu().double()
rounded = x.bfloat16().double() @ y.bfloat16().double()
torch.testing.assert_close(actual, rounded, rtol=1e-5, atol=1e-5)
assert (actual - x.double() @ y.double()).abs().max() > 1e-4, "not rounded to bfloat16"
x[3, 4], y[5, 6] = float("nan"), float("inf")
assert torch.equal((x.to("dml") @ y.to("dml")).cpu().isnan(), (x @ y).isnan())
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["0", "1", "emulate"])
def test_every_product(mode: str) -> None:
    """Each setting has the accuracy that it promises, with matrix units and without."""
    done = run_python("-c", PRODUCTS, TORCH_DML_MATRIX_UNITS=mode, TORCH_DML_FALLBACK="error")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, errors in found.items():
        near = max(1.2 * errors["highest"], 2**-24)
        assert errors["high"] <= near and errors["medium"] < 2**-8, f"{name}: {errors}"
    if mode == "0":
        assert not any(errors["split"] for errors in found.values())
    if mode == "emulate":
        # A vector's gradient is a sum of rows, and emulated units are too slow for the longest sums
        # on small adapters.
        plain = {name for name, errors in found.items() if not errors["split"]}
        assert plain - {"longer"} == {"gradient of linear's bias"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["0", "1", "emulate"])
def test_every_number(mode: str) -> None:
    code = NUMBERS if mode == "emulate" else NUMBERS.partition("# One bfloat16")[0]
    done = run_python("-c", code, mode, TORCH_DML_MATRIX_UNITS=mode, TORCH_DML_FALLBACK="error")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def precision():
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("precision")
def test_every_way_to_set_it() -> None:
    """However it is set, products work, and "highest" is float32."""
    x, y = torch.randn(20, 30), torch.randn(30, 25)
    for allow in (True, False):
        torch.backends.cuda.matmul.allow_tf32 = allow
        assert_matches_cpu(torch.mm, x, y)
    torch.set_float32_matmul_precision("highest")
    exact = (x.to("dml") @ y.to("dml")).cpu()
    # If only this one is set, it contradicts the older settings, and PyTorch's own getter raises.
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        torch.testing.assert_close((x.to("dml") @ y.to("dml")).cpu(), exact)
    finally:
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    assert torch.equal((x.to("dml") @ y.to("dml")).cpu(), exact)
