"""The training loop, shared by all ways: iterations, progress, checkpoints, and the end of a
run.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from dml_robot import devices
from dml_robot.errors import CheckpointError, MissingDependencyError, RobotError, SettingsError
from dml_robot.learn import checkpoint
from dml_robot.learn.curve import Events, Row, draw
from dml_robot.learn.progress import Bar
from dml_robot.learn.settings import Settings
from dml_robot.learn.trainer import Trainer


@dataclass
class Run:
    """A training run: settings, trainer and files."""

    settings: Settings
    trainer: Trainer
    out: Path
    rows: list[Row] = field(default_factory=list)
    seconds: float = 0.0
    """Training time of the run in seconds, including the time before it was resumed."""

    @property
    def path(self) -> Path:
        """The checkpoint's path."""
        return self.out / "checkpoint.pt"

    def save(self) -> None:
        """Write the checkpoint, then the learning curve; raise CheckpointError if they cannot be
        written.
        """
        contents = {
            "settings": self.settings.state_dict(),
            "policy": self.trainer.policy().describe(),
            "steps": self.trainer.steps,
            "seconds": self.seconds,
            "rows": self.rows,
            "training": self.trainer.state_dict(),
        }
        checkpoint.write(self.path, contents)
        picture = self.out / "curve.png"
        try:
            draw(self.rows, picture, f"{self.settings.algorithm} ({self.settings.way}) on {self.settings.sim}")
        except OSError as error:
            raise CheckpointError(f"cannot write {picture}: {error.strerror or error}; {self.path} is whole") from error


def begin(settings: Settings, out: Path) -> Run:
    """Return a new run."""
    settings = settings.checked()
    return Run(settings, make_trainer(settings), out)


def resume(path: Path, out: Path | None = None, changes: dict[str, Any] | None = None) -> Run:
    """Return a run restored from a checkpoint.

    `changes` may replace the settings "steps", "device" and "graphs"; raise SettingsError for
    others.
    """
    contents = checkpoint.read(path)
    if contents.get("training") is None:
        raise CheckpointError(f"{path} holds a policy to evaluate, not a run to go on with")
    try:
        saved = contents["settings"]
        for name, value in (changes or {}).items():
            if name not in ("steps", "device", "graphs") and saved[name] != value:
                raise SettingsError(f"{path} was trained with {name} {saved[name]}, which cannot become {value} now")
        settings = Settings.of({**saved, **(changes or {})}).checked()
        run = Run(settings, make_trainer(settings), out or path.parent, contents["rows"], contents["seconds"])
        run.trainer.load_state_dict(contents["training"])
    except RobotError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"the run in {path} cannot be gone on with: {_first_line(error)}") from error
    return run


def train(
    run: Run, console: Console, save_every: int | None = None, watch: Callable[[Run], bool] | None = None
) -> None:
    """Train for the settings' number of steps, saving every `save_every` control steps and at the
    end.

    `watch` is called after each iteration; when it returns true, the run ends. An interrupt
    (Ctrl-C) ends the run after the iteration; a second one ends the process as usual. Raise
    DeviceError when the device is lost, naming the last checkpoint, and CheckpointError when the
    last checkpoint cannot be written; a failure to write an intermediate checkpoint is reported,
    and the next one is tried.
    """
    try:
        with _interrupts() as interrupted:
            _train(run, console, save_every, watch, interrupted)
    finally:
        run.trainer.close()


def _train(
    run: Run,
    console: Console,
    save_every: int | None,
    watch: Callable[[Run], bool] | None,
    interrupted: threading.Event,
) -> None:
    total, saved = run.settings.steps or 0, run.trainer.steps
    device = torch.device(run.settings.device)
    try:
        events = Events(run.out / "events", saved)
    except OSError as error:
        raise CheckpointError(f"cannot write into {run.out}: {error.strerror or error}") from error
    try:
        with Bar(console, total, saved) as bar:
            while run.trainer.steps < total and not interrupted.is_set():
                kept = f"; {run.path} has the run up to {saved:,} steps" if run.path.exists() else ""
                with devices.told(device, kept):
                    row = _iterate(run)
                bar.show(row)
                events.add(row)
                if watch is not None and watch(run):
                    break
                if save_every and run.trainer.steps - saved >= save_every:
                    try:
                        run.save()
                        saved = run.trainer.steps
                    except CheckpointError as error:
                        console.print(f"warning: {error}", style="yellow", highlight=False)
        with devices.told(device):
            run.save()
        if interrupted.is_set():
            line = f"interrupted: `--load {run.path}` goes on at {run.trainer.steps:,} steps"
            console.print(line, highlight=False, soft_wrap=True)
    finally:
        events.close()


def make_trainer(settings: Settings) -> Trainer:
    """Return the trainer for checked settings."""
    with devices.told(torch.device(settings.device)):
        if settings.way == "device":
            from dml_robot.learn.ppo_device import DeviceTrainer

            return DeviceTrainer(settings)
        if settings.way == "overlapped":
            from dml_robot.learn.overlapped import OverlappedTrainer

            return OverlappedTrainer(settings)
        try:
            from dml_robot.learn.sb3 import Sb3Trainer
        except ImportError as error:
            raise MissingDependencyError(
                "the way 'sb3' needs Stable-Baselines3: pip install stable-baselines3"
            ) from error
        return Sb3Trainer(settings)


def _iterate(run: Run) -> Row:
    begun = time.perf_counter()
    before = run.trainer.steps
    metrics = run.trainer.iterate()
    taken = time.perf_counter() - begun
    run.seconds += taken
    speed = (run.trainer.steps - before) / taken
    row = {"steps": float(run.trainer.steps), "seconds": run.seconds, "steps_per_second": speed, **metrics}
    run.rows.append(row)
    return row


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Yield an event that the first interrupt sets; the second one acts as usual."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: Any) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
