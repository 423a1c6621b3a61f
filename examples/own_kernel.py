"""Two custom kernels, written as text: silu(x) * y in one pass, and softmax of rows."""

from __future__ import annotations

import argparse
import sys

import torch
import torch_dml
from torch.nn import functional

# One element per invocation.
SILU_MUL = """
kernel silu_mul [256, 1, 1] {
  output @out: f32
  input @x: f32
  input @y: f32
  param %n: u32

  %first: u32 = mul group.x, 256
  %i: u32 = add %first, local.x
  %inside: bool = lt %i, %n
  if %inside {
    %x: f32 = load @x[%i]
    %y: f32 = load @y[%i]
    %gate: f32 = sigmoid %x
    %silu: f32 = mul %x, %gate
    %result: f32 = mul %silu, %y
    store @out[%i], %result
  }
}
"""

# One row per workgroup: its maximum, the sum of exponentials, then the quotients.
SOFTMAX = """
kernel softmax_rows [64, 1, 1] {
  output @out: f32
  input @x: f32
  param %columns: u32
  shared @partial: f32[64]
  var @best: f32
  var @sum: f32
  var @i: u32
  var @half: u32

  %begin: u32 = mul group.x, %columns

  // Each invocation's largest, then the workgroup's: halves of halves.
  store @best, -inf
  store @i, local.x
  loop {
    %i: u32 = load @i
    %more: bool = lt %i, %columns
    while %more
    %at: u32 = add %begin, %i
    %x: f32 = load @x[%at]
    %before: f32 = load @best
    %best: f32 = maximum %before, %x
    store @best, %best
    %next: u32 = add %i, 64
    store @i, %next
  }
  %own: f32 = load @best
  store @partial[local.x], %own
  barrier
  store @half, 32
  loop {
    %half: u32 = load @half
    %halves: bool = gt %half, 0
    while %halves
    %lower: bool = lt local.x, %half
    if %lower {
      %other: u32 = add local.x, %half
      %a: f32 = load @partial[local.x]
      %b: f32 = load @partial[%other]
      %larger: f32 = maximum %a, %b
      store @partial[local.x], %larger
    }
    barrier
    %quarter: u32 = shr %half, 1
    store @half, %quarter
  }
  %largest: f32 = load @partial[0]
  barrier

  // The same with the sum.
  store @sum, 0.0
  store @i, local.x
  loop {
    %j: u32 = load @i
    %left: bool = lt %j, %columns
    while %left
    %from: u32 = add %begin, %j
    %y: f32 = load @x[%from]
    %below: f32 = sub %y, %largest
    %e: f32 = exp %below
    store @out[%from], %e
    %so_far: f32 = load @sum
    %sum: f32 = add %so_far, %e
    store @sum, %sum
    %after: u32 = add %j, 64
    store @i, %after
  }
  %part: f32 = load @sum
  store @partial[local.x], %part
  barrier
  store @half, 32
  loop {
    %step: u32 = load @half
    %steps: bool = gt %step, 0
    while %steps
    %adds: bool = lt local.x, %step
    if %adds {
      %there: u32 = add local.x, %step
      %c: f32 = load @partial[local.x]
      %d: f32 = load @partial[%there]
      %both: f32 = add %c, %d
      store @partial[local.x], %both
    }
    barrier
    %fewer: u32 = shr %step, 1
    store @half, %fewer
  }
  %total: f32 = load @partial[0]

  store @i, local.x
  loop {
    %k: u32 = load @i
    %rest: bool = lt %k, %columns
    while %rest
    %to: u32 = add %begin, %k
    %exponential: f32 = load @out[%to]
    %quotient: f32 = div %exponential, %total
    store @out[%to], %quotient
    %following: u32 = add %k, 64
    store @i, %following
  }
}
"""


def main() -> int:
    """Run both kernels; fail if they differ from PyTorch's operators, or if an operator ran on the
    CPU.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="dml", help="dml, or dml:1")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    x, y = torch.randn(2, 1000, 333, device=options.device)
    out = torch.empty_like(x)

    silu_mul = torch_dml.kernel(SILU_MUL)
    silu_mul(out, x, y, x.numel(), groups=-(-x.numel() // 256))
    differences = {"silu_mul": (out - functional.silu(x) * y).abs().max().item()}

    softmax = torch_dml.kernel(SOFTMAX)
    softmax(out, x, x.shape[1], groups=x.shape[0])
    differences["softmax_rows"] = (out - x.softmax(1)).abs().max().item()

    for name, difference in differences.items():
        print(f"{name}: largest difference {difference:.2g}")
    print(f"fallbacks to the CPU: {torch_dml.fallback_count()}")
    return int(max(differences.values()) > 1e-5 or torch_dml.fallback_count() > 0)


if __name__ == "__main__":
    sys.exit(main())
