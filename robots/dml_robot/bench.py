"""Speed of simulating, acting and learning, and time until success, for each device, simulator and
way of training.
"""

from __future__ import annotations

import dataclasses
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode

from dml_robot import devices
from dml_robot.evaluate import evaluate
from dml_robot.learn.checkpoint import replace
from dml_robot.learn.settings import Settings
from dml_robot.learn.train import Run, begin, make_trainer, train
from dml_robot.sim import make

SUCCESS = 0.95
EPISODES = 500
UNSEEN = 1_000_000
"""The seed of the targets on which success is measured; not used in training."""
WAYS = (("batched", "device"), ("mujoco", "overlapped"), ("mujoco", "sb3"))


@dataclasses.dataclass(frozen=True)
class Result:
    """Measurements of one simulator and way on one device; speeds are in control steps of one arm
    per second.
    """

    device: str
    name: str
    """The device's name in its driver."""
    sim: str
    way: str
    arms: int
    simulation: float
    """Steps per second of the simulator alone."""
    inference: float
    """Steps per second with the policy acting."""
    learning: float
    """Steps per second with learning."""
    operators: int
    """Operators that a training iteration calls on the device."""
    steps: int
    """Steps in a training iteration."""
    memory: int
    """Peak memory in bytes: of the device, or of the process on the CPU."""
    cores: float
    """Processor cores busy while learning."""
    gpu: float | None
    """Fraction of the time in which the GPU was busy, if its driver reports it."""
    fallbacks: int
    """Operators that fell back to the CPU, in all measurements."""
    seconds: float | None
    """Seconds of training until success; None if it was not measured or not reached."""
    success: float | None
    """The success rate measured last."""


def measure(settings: Settings, seconds: float, until: float | None, tell: Callable[[str], None]) -> Result:
    """Measure each speed for about `seconds`, and train for up to `until` seconds until success if
    that is given.
    """
    settings = settings.checked()
    device = torch.device(settings.device)
    fallbacks = sum(devices.fallbacks(device).values())
    with devices.told(device):
        devices.peak_memory(device, reset=True)
        simulation, inference = _simulated(settings, device, seconds)
        trainer = make_trainer(settings)
        try:
            for _ in range(2):  # one-time work: compilation and capture
                trainer.iterate()
            busy = time.process_time()
            begun, before = time.perf_counter(), trainer.steps
            while time.perf_counter() - begun < seconds:
                trainer.iterate()
            gpu = devices.busy(device)
            taken = time.perf_counter() - begun
            cores = (time.process_time() - busy) / taken
            learning = (trainer.steps - before) / taken
            memory = devices.peak_memory(device)
        finally:
            trainer.close()
    operators, steps = _counted(settings)
    tell(f"{device} {settings.sim} {settings.way}: {learning:,.0f} steps/s with learning")
    found = to_success(settings, until, tell) if until is not None else (None, None)
    return Result(
        str(device),
        devices.describe(device),
        settings.sim,
        settings.way,
        settings.parallel or 1,
        simulation,
        inference,
        learning,
        operators,
        steps,
        memory,
        cores,
        gpu,
        sum(devices.fallbacks(device).values()) - fallbacks,
        *found,
    )


def to_success(settings: Settings, limit: float, tell: Callable[[str], None]) -> tuple[float | None, float]:
    """Train until `SUCCESS` on `EPISODES` unseen targets; return the seconds of training (None if
    not reached within `limit`) and the last success rate.

    Evaluations are not timed; they are made whenever a twentieth of the limit has passed, and after
    the last step.
    """
    place = torch.device("cpu")
    arms = make("batched" if settings.way == "device" else settings.sim, EPISODES, place, UNSEEN, as_torch=place)
    rate, next_look = 0.0, limit / 20

    def look(run: Run) -> bool:
        nonlocal rate, next_look
        if run.seconds >= next_look or run.trainer.steps >= (run.settings.steps or 0):
            next_look = run.seconds + limit / 20
            rate = evaluate(arms, run.trainer.policy(), EPISODES, seed=UNSEEN).success_rate
            tell(f"{run.seconds:.1f} s, {run.trainer.steps:,} steps: {rate:.1%} of unseen targets")
        return rate >= SUCCESS or run.seconds >= limit

    with tempfile.TemporaryDirectory() as folder:
        run = begin(settings, Path(folder))
        train(run, Console(quiet=True), watch=look)
    arms.close()
    if rate < SUCCESS:
        return None, rate
    return run.seconds, rate


def table(results: list[Result]) -> Table:
    """Return the results as a table."""
    found = Table(title="control steps a second, and what they cost")
    for heading in ("device", "simulator", "way", "arms"):
        found.add_column(heading)
    headings = (
        "simulation",
        "+ inference",
        "+ learning",
        "operators",
        "MiB",
        "cores",
        "GPU",
        "fallbacks",
        f"s to {SUCCESS:.0%}",
    )
    for heading in headings:
        found.add_column(heading, justify="right")
    for each in results:
        reached = "-" if each.success is None else f"({each.success:.0%})"
        found.add_row(
            each.device,
            each.sim,
            each.way,
            str(each.arms),
            *(f"{speed:,.0f}" for speed in (each.simulation, each.inference, each.learning)),
            f"{each.operators:,}",
            f"{each.memory / 2**20:,.0f}",
            f"{each.cores:.1f}",
            "-" if each.gpu is None else f"{each.gpu:.0%}",
            str(each.fallbacks),
            reached if each.seconds is None else f"{each.seconds:.1f}",
        )
    return found


def draw(results: list[Result], path: Path) -> None:
    """Draw the speeds into a PNG; raise OSError if it cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.5 + 0.9 * len(results)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    for offset, name in ((-0.27, "learning"), (0, "inference"), (0.27, "simulation")):
        speeds = [getattr(each, name) for each in results]
        axes.barh([place + offset for place in range(len(results))], speeds, 0.25, label=name)
    axes.set_yticks(range(len(results)), [f"{each.device} {each.sim}\n{each.way}, {each.arms}" for each in results])
    axes.set_xscale("log")
    axes.set_xlabel("control steps a second")
    axes.legend()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    replace(path, buffer.getbuffer())


def _simulated(settings: Settings, device: torch.device, seconds: float) -> tuple[float, float]:
    """Return steps per second of the simulator alone, and with a policy of the settings' widths
    acting.
    """
    place = device if settings.sim == "batched" else torch.device("cpu")
    arms: Any = make(settings.sim, settings.parallel or 1, place, settings.seed, as_torch=place)
    from dml_robot.learn.network import ActorCritic

    actor = ActorCritic(
        arms.single_observation_space.shape[0], arms.single_action_space.shape[0], settings.hidden
    ).actor.to(place)
    still = torch.zeros(arms.num_envs, arms.single_action_space.shape[0], device=place)
    speeds = []
    with torch.no_grad():
        for act in (lambda _: still, actor):
            observation, _ = arms.reset(seed=settings.seed)
            steps, begun = 0, 0.0
            while steps < 4 or time.perf_counter() - begun < seconds:
                if steps == 3:  # compilation is done
                    devices.synchronize(place)
                    begun = time.perf_counter()
                observation = arms.step(act(observation))[0]
                steps += 1
            devices.synchronize(place)
            speeds.append((steps - 3) * arms.num_envs / (time.perf_counter() - begun))
    arms.close()
    return speeds[0], speeds[1]


class _Counter(TorchDispatchMode):
    """Counts the operators that run on a device; views do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def _counted(settings: Settings) -> tuple[int, int]:
    """Return how many operators an iteration calls, counted on the CPU with few arms, and how many
    steps it has.

    The number of arms changes the operators' sizes and not their number, if the number of gradients
    is the same.
    """
    arms = settings.parallel or 1
    few = min(arms, 8)
    batch = max(1, (settings.batch_size or 1) * few // arms) if settings.way != "sb3" else settings.batch_size
    trainer = make_trainer(
        dataclasses.replace(settings, device="cpu", parallel=few if settings.way != "sb3" else arms, batch_size=batch)
    )
    try:
        trainer.iterate()
        before = trainer.steps
        with _Counter() as counter:
            trainer.iterate()
        steps = (trainer.steps - before) * (arms // few if settings.way != "sb3" else 1)
    finally:
        trainer.close()
    return counter.count, steps
