"""Fusion of pointwise launches changes no bit: the same programs with fusion off, and with every
possible chain fused.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.processes import run_python

PROGRAM = """
import hashlib, random, sys
import torch, torch_dml

def bits(*tensors):
    digest = hashlib.sha256()
    for t in tensors:
        digest.update(t.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    print(digest.hexdigest())

def chain():
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8):
        for n in (1, 7, 1000, 4096):
            x = (torch.arange(n, dtype=torch.float32) * 0.37 - 20).to(dtype).to("dml")
            for i in range(12):
                x = x * 3 + x if i % 3 else x - 1
                x = (x > 2).to(dtype) + x
            bits(x)

def random_programs():
    choose = random.Random(7)
    for size in (5, 1024, 100_003):
        torch.manual_seed(size)
        values = [torch.randn(size).to("dml") for _ in range(4)]
        kept = []
        for step in range(120):
            a, b = choose.choice(values), choose.choice(values)
            kind = choose.randrange(12)
            if kind == 0: r = a + b
            elif kind == 1: r = a * b
            elif kind == 2: r = torch.tanh(a)
            elif kind == 3: r = a - b * 0.5
            elif kind == 4: r = torch.where(a > b, a, b)
            elif kind == 5: a.mul_(0.5); r = a
            elif kind == 6: r = torch.exp(-a.abs())
            elif kind == 7: a.add_(b, alpha=0.1); r = a.clone()
            elif kind == 8: r = a.half().float()
            elif kind == 9: r = a + a[0]
            elif kind == 10: r = torch.sigmoid(a).to(torch.float64).float()
            else: r = a[1:] + b[:-1]; r = torch.cat([r, a[:1]])
            values[choose.randrange(4)] = r
            if choose.random() < 0.1: kept.append(r)
        bits(*values, *kept)

def training():
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))
    x, y = torch.randn(64, 8), torch.randn(64, 4)
    model, x, y = model.to("dml"), x.to("dml"), y.to("dml")
    for foreach in (True, False):
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=foreach)
        for _ in range(6):
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean() + 0.01 * sum(p.abs().sum() for p in model.parameters())
            loss.backward()
            optimizer.step()
        bits(loss, *model.parameters())

{"chain": chain, "random_programs": random_programs, "training": training}[sys.argv[1]]()
print("fused", torch_dml.engine.queue_stats()["fused_launches"])
assert torch_dml.fallbacks() == {}
"""


@pytest.mark.parametrize("program", ["chain", "random_programs", "training"])
def test_no_bit_changes(program: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    path = ":".join(p for p in sys.path if p)
    runs = [run_python(str(script), program, TORCH_DML_FUSION=mode, PYTHONPATH=path) for mode in ("0", "wait")]
    for run in runs:
        assert run.returncode == 0, run.stderr
    off, joined = (run.stdout.splitlines() for run in runs)
    assert off[:-1] == joined[:-1]
    assert len(off) > 1
    assert off[-1] == "fused 0"
    assert int(joined[-1].split()[1]) > 20
