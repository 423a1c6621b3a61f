"""Small work on dml and on CUDA in one process: single operators, chains, read-backs, an MLP, an optimizer.

    python benches/eager_latency.py

Prints microseconds (medians of rounds that end with a synchronisation) and the ratio of dml to CUDA. CUDA is measured
before dml is registered: PyTorch's autograd asks for streams of one accelerator only.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn


def measure(
    work: Callable[[], object], synchronize: Callable[[], None], calls: int, rounds: int = 7, warm: int = 3
) -> float:
    """Microseconds of one call, synchronisation included."""
    times = []
    for i in range(warm + rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        synchronize()
        if i >= warm:
            times.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(times)


def chain(x: torch.Tensor) -> torch.Tensor:
    """32 pointwise operators."""
    y = x
    for _ in range(8):
        y = y * 1.01
        y = y + x
        y = torch.relu(y)
        y = y - 0.1
    return y


def suite(device: str, synchronize: Callable[[], None]) -> dict[str, float]:
    """Every measurement on one device."""
    torch.manual_seed(0)
    found = {}
    x, y, scalar = torch.randn(16, device=device), torch.randn(16, device=device), torch.randn((), device=device)
    found["x + y, 16 elements, 20,000 in a row"] = measure(lambda: x + y, synchronize, 20_000, 3, 1)
    for elements, name, calls in ((1 << 20, "1 Mi", 20), (64 << 20, "64 Mi", 4)):
        z = torch.randn(elements, device=device)
        found[f"32 pointwise operators, {name} elements"] = measure(lambda z=z: chain(z), synchronize, calls, warm=6)
        del z
    found["(x + y)[0].item()"] = measure(lambda: (x + y)[0].item(), synchronize, 300)
    found["(scalar + 1).item()"] = measure(lambda: (scalar + 1).item(), synchronize, 300)

    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)).to(device)
    inputs, targets = torch.randn(64, 8, device=device), torch.randn(64, 4, device=device)
    for name, options in (("Adam", {}), ("fused Adam", {"fused": True})):
        optimizer = torch.optim.Adam(model.parameters(), 1e-3, **options)

        def step(optimizer: torch.optim.Optimizer = optimizer) -> None:
            optimizer.zero_grad()
            (model(inputs) - targets).square().mean().backward()
            optimizer.step()

        found[f"MLP 8-64-64-4, batch 64, step with {name}"] = measure(step, synchronize, 50)
    observation = torch.randn(1, 8, device=device)
    with torch.no_grad():
        found["the MLP, one observation, read back"] = measure(lambda: model(observation).cpu(), synchronize, 100)

    parameters = [torch.randn(64, 64, device=device, requires_grad=True) for _ in range(200)]
    for parameter in parameters:
        parameter.grad = torch.randn(64, 64, device=device)
    adam = torch.optim.Adam(parameters, 1e-3, foreach=True)
    found["Adam step, 200 tensors of 64x64, foreach"] = measure(adam.step, synchronize, 10)
    return found


def main() -> None:
    """Measure and print."""
    cuda = suite("cuda", torch.cuda.synchronize) if torch.cuda.is_available() else {}
    import torch_dml

    for name, dml in suite("dml", torch.dml.synchronize).items():
        ratio = f"cuda {cuda[name]:10.2f} us   ratio {dml / cuda[name]:.2f}" if name in cuda else ""
        print(f"{name:45} dml {dml:10.2f} us   {ratio}")
    print("fallbacks:", torch_dml.fallbacks())


if __name__ == "__main__":
    main()
