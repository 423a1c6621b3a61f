"""Runs a case in one of the modes, in its own process, and reads its output.

`cpu`: PyTorch loads no other backend. `cuda`: through `python -m torch_dml run`, with the device in
place of CUDA. `dml`: with a plain `python`, where `import torch` finds the device. CUDA's own
devices are hidden in all three.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .cases import Case

ROOT = Path(__file__).resolve().parents[2]
REPORT = Path(__file__).with_name("report")

COMMANDS = {"cpu": (), "cuda": ("-m", "torch_dml", "run"), "dml": ()}
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "YOLO_OFFLINE": "true", "WANDB_MODE": "disabled"}


@dataclass
class Outcome:
    """The outcome of a program: `error` is empty if it succeeded, else the end of its stderr."""

    device: str = ""
    numbers: list[float] = field(default_factory=list)
    tolerance: float = 0.0
    fallbacks: dict[str, int] = field(default_factory=dict)
    error: str = ""
    stderr: str = ""
    seconds: float = 0.0


def run(case: Case, mode: str, timeout: float = 600) -> Outcome:
    """Run a case in a mode, in its own folder, which is then removed."""
    with tempfile.TemporaryDirectory(prefix="torch-dml-libraries-") as folder:
        report = Path(folder) / "fallbacks.jsonl"
        work = Path(folder) / "work"
        work.mkdir()
        command = [sys.executable, *COMMANDS[mode], str(case.program), *case.arguments]
        started = time.monotonic()
        try:
            done = subprocess.run(
                command,
                cwd=work,
                env=_environment(mode, Path(folder), report),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(error=f"took more than {timeout:g} s", seconds=timeout)
        outcome = _read(done)
        outcome.seconds = time.monotonic() - started
        outcome.fallbacks = _fallbacks(report)
        return outcome


def _environment(mode: str, folder: Path, report: Path) -> dict[str, str]:
    path = [str(REPORT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        # Mesa's software adapter compiles without optimisation: most kernels run a few times.
        "GALLIVM_PERF": "nopt",
        # The programs are too small for several threads.
        "OMP_NUM_THREADS": "1",
        **os.environ,
        **OFFLINE,
        "PYTHONPATH": os.pathsep.join(path),
        "LIBRARIES_REPORT": str(report),
        "CUDA_VISIBLE_DEVICES": "",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0" if mode == "cpu" else "1",
        "TORCH_DML_AS_CUDA": "",
        "TORCH_DML_AUTOLOAD": "",
        # Keras looks for no device but CUDA, MPS and XPU: its users name others.
        **({"KERAS_TORCH_DEVICE": "dml"} if mode == "dml" else {}),
        "TORCH_DML_DEVICES_PER_ADAPTER": "1",
        "MPLBACKEND": "Agg",
        "HF_HOME": str(folder / "huggingface"),
        "YOLO_CONFIG_DIR": str(folder),
        "MPLCONFIGDIR": str(folder),
    }


def _read(done: subprocess.CompletedProcess[str]) -> Outcome:
    said = next((line for line in reversed(done.stdout.splitlines()) if line.startswith('{"device"')), None)
    if done.returncode != 0 or said is None:
        text = (done.stderr.strip() or done.stdout.strip())[-2000:]
        return Outcome(error=text or f"ended with {done.returncode} and no word", stderr=done.stderr)
    found = json.loads(said)
    return Outcome(found["device"], found["numbers"], found["tolerance"], stderr=done.stderr)


def _fallbacks(report: Path) -> dict[str, int]:
    total: Counter[str] = Counter()
    if report.exists():
        for line in report.read_text().splitlines():
            total.update(json.loads(line))
    return dict(total)
