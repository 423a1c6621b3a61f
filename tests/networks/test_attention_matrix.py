"""Attention on matrix units, compared with float64: on the adapter's units if it has any, and on
emulated ones.

The kernels of real tiles are tested by the interpreter
(crates/compute/src/attention/matrix_units/interpreted.rs); here are few kernels, since software
adapters compile them slowly.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.processes import run_python

ATTENTION = """
import json
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
worst = {}


def attend(device, dtype, tensors, mask, options):
    q, k, v, g = (t.to(dtype).to(device) for t in tensors)
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, None if mask is None else mask.to(device), **options)
    out.backward(g)
    return [out.detach().cpu().double(), *(t.grad.cpu().double() for t in leaves)]


def compare(name, tensors, dtype, mask=None, **options):
    tensors = [t.to(dtype) for t in tensors]
    actual = attend("dml", dtype, tensors, mask, options)
    with sdpa_kernel(SDPBackend.MATH):
        wide = mask if mask is None or mask.dtype == torch.bool else mask.double()
        expected = attend("cpu", torch.float64, tensors, wide, options)
    for ours, theirs in zip(actual, expected, strict=True):
        assert torch.equal(ours.isnan(), theirs.isnan()), name
        scale = theirs.nan_to_num(0, 0, 0).abs().max().item() + 1
        error = (ours - theirs).nan_to_num(0, 0, 0).abs().max().item() / scale / torch.finfo(dtype).eps
        worst[name] = max(worst.get(name, 0.0), error)


def make(b, h, length, keys, d, e, kv=None):
    kv = kv or h
    return [torch.randn(s) for s in ((b, h, length, d), (b, kv, keys, d), (b, kv, keys, e), (b, h, length, e))]


half = torch.float16
compare("one tile", make(1, 1, 5, 9, 16, 16), half)
compare("odd lengths", make(2, 1, 37, 41, 16, 16), half)
compare("shared heads", make(1, 4, 9, 21, 16, 16, 2), half, enable_gqa=True)
strided = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in make(1, 3, 9, 21, 16, 16)]
compare("heads inside", strided, half, scale=-0.5)
special = make(1, 1, 5, 9, 16, 16)
special[0][0, 0, 1, 0] = torch.nan
special[1][0, 0, 2, 3] = 60000.0
special[2][0, 0, 3, 4] = torch.inf
compare("special numbers", special, half)
# The same kernel for both: rows that see nothing have results of 0.
mask = torch.randn(1, 2, 37, 21)
mask[..., :4, :] = -torch.inf
mask[..., 5:] = -torch.inf
compare("masks", make(1, 2, 37, 21, 16, 16), torch.bfloat16, mask.to(torch.bfloat16), is_causal=False)
compare("causal", make(1, 2, 37, 41, 13, 21), torch.bfloat16, is_causal=True)
compare("more queries than keys", make(1, 2, 41, 21, 13, 21), torch.bfloat16, is_causal=True)
print(json.dumps(worst))
"""

# Dropout draws the same numbers as the kernels without matrix units, forward and backward, so that
# either may follow the other.
DROPOUT = """
import sys
import torch
import torch.nn.functional as F

torch.manual_seed(0)
tensors = [torch.randn(1, 2, 21, 16, dtype=torch.float16).to("dml").requires_grad_() for _ in range(3)]
torch.manual_seed(1)
out = F.scaled_dot_product_attention(*tensors, dropout_p=0.4)
out.backward(torch.ones_like(out))
torch.save([out.detach().cpu(), *(t.grad.cpu() for t in tensors)], sys.argv[1])
"""


def names(folder: Path) -> str:
    return " ".join(sorted(file.name for file in folder.iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["1", "emulate"])
def test_against_float64(mode: str, tmp_path: Path) -> None:
    done = run_python(
        "-c", ATTENTION, TORCH_DML_MATRIX_UNITS=mode, TORCH_DML_FALLBACK="error", TORCH_DML_SPIRV_DIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    for name, error in json.loads(done.stdout).items():
        assert error < 2, f"{name}: {error} of the dtype's epsilon"
    # This profile's workgroups are too small for the kernels.
    if mode == "emulate" and os.environ.get("TORCH_DML_PROFILE") != "minimum":
        assert all(f"matrix_attention_{role}" in names(tmp_path) for role in ("Forward", "Query", "Key"))


def test_dropout(tmp_path: Path) -> None:
    import torch

    results = []
    for mode in ("0", "emulate"):
        file = tmp_path / mode
        done = run_python("-c", DROPOUT, str(file), TORCH_DML_MATRIX_UNITS=mode, TORCH_DML_FALLBACK="error")
        assert done.returncode == 0, done.stderr
        results.append(torch.load(file))
    for plain, units in zip(*results, strict=True):
        scale = plain.abs().max().item()
        torch.testing.assert_close(units, plain, rtol=0, atol=4e-3 * scale)
