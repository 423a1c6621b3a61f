"""Operators whose kernels an adapter cannot run."""

from __future__ import annotations

import json

from tests.support.processes import run_python

# This profile has no float64, and too little shared memory for some of the kernels that compute it
# in software.
PROGRAM = """
import json
import warnings
import torch
import torch_dml

torch.manual_seed(0)
errors = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for dtype in (torch.float64, torch.complex128):
        x = torch.randn(6, 5, dtype=dtype)
        square = x @ x.mH
        for name, a, function in (
            ("svd", x, lambda a: torch.linalg.svd(a, full_matrices=False).S),
            ("eigh", square, torch.linalg.eigvalsh),
            ("vectors", square, lambda a: torch.linalg.eigh(a).eigenvectors.abs()),
            ("qr", x, lambda a: torch.linalg.qr(a).R.abs()),
        ):
            found = function(a.to("dml"))
            assert found.device.type == "dml", name
            errors[f"{name} {dtype}"] = (found.cpu() - function(a)).abs().max().item()
    leaf = torch.randn(5, 5, dtype=torch.float64).to("dml").requires_grad_()
    torch.linalg.svdvals(leaf).sum().backward()
    of_cpu = leaf.detach().cpu().requires_grad_()
    torch.linalg.svdvals(of_cpu).sum().backward()
    errors["gradient"] = (leaf.grad.cpu() - of_cpu.grad).abs().max().item()
print(json.dumps({
    "errors": errors,
    "warnings": [str(w.message) for w in caught],
    "fallbacks": torch_dml.fallbacks(),
    "reasons": torch_dml.fallback_reasons(),
}))
"""


def test_the_cpu_takes_what_the_adapter_cannot_run() -> None:
    done = run_python("-c", PROGRAM, TORCH_DML_PROFILE="qualcomm-adreno")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    for name, error in result["errors"].items():
        assert error < 1e-12, name
    for name, reasons in result["reasons"].items():
        assert sum(reasons.values()) == result["fallbacks"][name]
        # Shared memory or float64.
        assert all("needs" in reason and "which" in reason for reason in reasons), reasons
    assert any("shared memory" in reason for reason in result["reasons"]["aten::_linalg_svd"])
    # Once for each operator.
    assert sum("aten::_linalg_svd" in message for message in result["warnings"]) == 1
