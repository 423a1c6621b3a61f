"""Count which overloads training and inference of the usual kinds of models call on the device.

    python scripts/hot_operators.py [--steps 20] [--least 0.002]

Prints every overload by its number of calls over all models (those of tests/training/test_models.py
and a small MLP, each trained and then run without gradients), and marks those that the plugin
registers boxed. Operators on lists of tensors (`aten::_foreach_*`) are left out: their arguments
cost the same either way.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CALL = re.compile(r'dml::call.*name="([^"]+)"')


def models() -> dict[str, Callable[[], None]]:
    """What runs, by name; imported late, as only the measured processes need it."""
    sys.path.insert(0, str(ROOT))
    import torch
    import torch_dml  # noqa: F401  registers the device
    from torch import nn

    from tests.training import test_models as zoo

    def work(module: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]], rule: Callable) -> None:
        zoo.losses(module, batches, rule, "dml")
        module = module.to("dml").eval()
        with torch.inference_mode():
            for step in range(zoo.STEPS):
                module(batches[step % len(batches)][0].to("dml")).argmax(-1).cpu()

    def adam(module: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(module.parameters(), 1e-3)

    def mlp() -> None:
        module = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
        work(module, [(torch.randn(64, 8), torch.randint(0, 4, (64,)))], adam)

    def residual() -> None:
        blocks = [zoo.Residual(8, 16, 1), zoo.Residual(16, 16, 2)]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(16, 10)]
        work(nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.MaxPool2d(3, 2, 1), *blocks, *head), zoo.images(2, 16), zoo.sgd)

    return {
        "mlp": mlp,
        "residual": residual,
        "lstm": lambda: work(zoo.Speech(nn.LSTM), zoo.texts(2, 10), zoo.adamw),
        "gru": lambda: work(zoo.Speech(nn.GRU), zoo.texts(2, 10), zoo.adamw),
        "vit": lambda: work(zoo.VisionTransformer(), zoo.images(2, 16), zoo.adamw),
        "gpt": lambda: work(zoo.Language(), zoo.texts(2, 20), zoo.adamw),
    }


def unboxed_name(overload: str) -> str:
    """The class of an overload in at::_ops."""
    return overload.removeprefix("aten::").replace(".", "_")


def calls(model: str, steps: int) -> Counter[str]:
    """Overloads that a model called, counted in a process of its own whose log is read."""
    command = [sys.executable, __file__, "--model", model, "--steps", str(steps)]
    environment = {**os.environ, "TORCH_DML_LOG": "dml::call=trace", "NO_COLOR": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(ran.stderr[-4000:])
    return Counter(name for line in ran.stderr.splitlines() for name in CALL.findall(line))


def main() -> None:
    """Run all models, or in a measured process one, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, help="training steps, and as many inferences")
    parser.add_argument("--least", type=float, default=0.002, help="share of a model's calls below which none is hot")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        import torch

        torch.manual_seed(0)
        known = models()
        sys.modules["test_models"].STEPS = options.steps
        known[options.model]()
        return
    names = list(models())
    counted = {name: calls(name, options.steps) for name in names}
    plugin = "".join(file.read_text() for file in (ROOT / "plugin").rglob("*.[ch]*"))
    listed = set(re.findall(r"\bat::_ops::(\w+)", plugin))
    listed |= {unboxed_name(overload) for overload in re.findall(r'impl\("(aten::[^"]+)"', plugin)}
    every: Counter[str] = sum(counted.values(), Counter())
    print(f"{'overload':50}{'calls':>8}" + "".join(f"{name:>10}" for name in names))
    for overload, count in every.most_common():
        if overload.startswith("aten::_foreach_"):
            continue
        hot = any(found[overload] >= options.least * found.total() for found in counted.values())
        note = "  not unboxed" if hot and unboxed_name(overload) not in listed else ""
        print(f"{overload:50}{count:8}" + "".join(f"{counted[name][overload]:10}" for name in names) + note)


if __name__ == "__main__":
    main()
