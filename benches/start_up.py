"""The time until a process's first training step, and compilation's share of it.

    python benches/start_up.py --json start_up.json
    python benches/start_up.py --models resnet18 --size 224

Each line is a separate process: "cold" starts with an empty directory of compiled kernels, "warm"
with the cold process's directory. NVIDIA's own shader cache is off, so that "cold" has no cache and
"warm" has torch-dml's alone; Mesa's starts empty too, and is kept for the warm run (lavapipe
compiles machine code at the first run of a kernel, and only Mesa can cache that). The CPU, and CUDA
if available, are measured the same way.

Times are seconds. "open" is loading the plugin and opening the device; "emission" building kernels
on the threads that requested them; "compilation" the driver's compilation, summed over the pool's
threads; "longest" the longest single compilation; "bound" the minimum wait if compilation is spread
over the cores; "waited" the time for which submissions waited for compilation.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

CHILD = "--child"
COLUMNS = (
    ("import torch", "import_torch_s"),
    ("open", "open_s"),
    ("model", "model_s"),
    ("first step", "first_step_s"),
    ("second", "second_step_s"),
    ("process", "process_s"),
    ("kernels", "kernels"),
    ("emission", "emit_s"),
    ("compilation", "compile_s"),
    ("longest", "longest_s"),
    ("bound", "bound_s"),
    ("waited", "wait_s"),
)


def child(device_name: str, model: str, size: int) -> dict[str, Any]:
    """Measure in this process."""
    found: dict[str, Any] = {}
    last = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal last
        now = time.perf_counter()
        found[name] = now - last
        last = time.perf_counter()

    import torch

    lap("import_torch_s")
    on_dml = device_name == "dml"
    if on_dml:
        import torch_dml

        torch_dml.load()
    device = torch.device(device_name)

    def synchronize() -> None:
        if device_name != "cpu":
            torch.get_device_module(device).synchronize()

    torch.empty(1, device=device)
    synchronize()
    lap("open_s")
    torch.manual_seed(0)
    if model == "digits":
        from networks import networks

        network, inputs, labels = networks()["digits_cnn"](), torch.rand(64, 1, 8, 8), torch.randint(10, (64,))
    else:
        import torchvision

        network = getattr(torchvision.models, model)(num_classes=10)
        inputs, labels = torch.rand(8, 3, size, size), torch.randint(10, (8,))
    network = network.to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=4e-3)
    synchronize()
    lap("model_s")
    for name in ("first_step_s", "second_step_s"):
        loss = torch.nn.functional.cross_entropy(network(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        loss.item()
        synchronize()
        lap(name)
    if on_dml:
        from torch_dml import engine

        stats = engine.kernel_stats()
        found |= {"kernels": stats["kernels"], "emit_s": stats["emit_ns"] / 1e9}
        found |= {"compile_s": stats["compile_ns"] / 1e9, "longest_s": stats["longest_ns"] / 1e9}
        found["wait_s"] = stats["wait_ns"] / 1e9
        found["cores"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        found["bound_s"] = max(found["longest_s"], found["compile_s"] / found["cores"])
        found["fallbacks"] = torch_dml.fallbacks()
        found["name"] = torch.dml.get_device_name(0)
    return found


def in_process(device: str, model: str, size: int, threads: int, cache: Path) -> dict[str, Any]:
    """Measure in a new process with `cache` as the directory of compiled kernels; 0 threads: the
    default.
    """
    environment = {
        **os.environ,
        "TORCH_DML_CACHE_DIR": str(cache / "torch-dml"),
        "__GL_SHADER_DISK_CACHE": "0",
        "MESA_SHADER_CACHE_DIR": str(cache / "mesa"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
        **({"TORCH_DML_COMPILE_THREADS": str(threads)} if threads else {}),
    }
    command = [sys.executable, __file__, CHILD, device, model, str(size)]
    started = time.perf_counter()
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    taken = time.perf_counter() - started
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return {**json.loads(done.stdout.splitlines()[-1]), "process_s": taken}


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == [CHILD]:
        device, model, size = sys.argv[2:]
        print(json.dumps(child(device, model, int(size))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["digits", "resnet18"], help="digits, or torchvision's by name")
    parser.add_argument("--size", type=int, nargs="+", default=[64], help="sides of torchvision's images (default: 64)")
    parser.add_argument("--threads", type=int, nargs="+", help="compile with so many threads, one run each")
    parser.add_argument("--devices", nargs="+", help="default: dml, cpu, and cuda if it is there")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    arguments = parser.parse_args()
    console = Console(width=160)
    devices = arguments.devices or ["dml", "cpu", *(["cuda"] if Path("/dev/nvidiactl").exists() else [])]
    rows: list[dict[str, Any]] = []
    table = Table(title="Start-up, seconds", title_justify="left")
    for column in ("model", "device", "", *(title for title, _ in COLUMNS)):
        table.add_column(column, justify="right")
    work = [(m, size) for m in arguments.models for size in ([8] if m == "digits" else arguments.size)]
    for model, size in work:
        for device, threads in itertools.product(devices, arguments.threads or [0]):
            if threads and device != "dml":
                continue
            with tempfile.TemporaryDirectory() as cache, console.status(f"{model} on {device} ..."):
                for state in ("cold", "warm"):
                    row = in_process(device, model, size, threads, Path(cache))
                    of = {"model": model, "size": size, "device": device, "state": state, "threads": threads}
                    rows.append(of | row)
                    label = f"{state}, {threads} threads" if threads else state
                    cells = [_figure(row.get(key)) for _, key in COLUMNS]
                    table.add_row(f"{model} {size}x{size}", device, label, *cells)
    console.print(table)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def _figure(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"


if __name__ == "__main__":
    main()
