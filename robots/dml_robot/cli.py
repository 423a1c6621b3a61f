"""The command `dml-robot`."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dml_robot.errors import RobotError, SettingsError

app = typer.Typer(
    name="dml-robot",
    help="A six-axis arm that learns to reach, on any device that PyTorch knows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_console = Console()


class Algorithm(str, Enum):
    """The learning algorithm."""

    ppo = "ppo"
    sac = "sac"
    td3 = "td3"


class Sim(str, Enum):
    """The simulator."""

    mujoco = "mujoco"
    batched = "batched"


class Way(str, Enum):
    """The way of training: where it learns and simulates."""

    auto = "auto"
    sb3 = "sb3"
    device = "device"
    overlapped = "overlapped"


class Form(str, Enum):
    """The format of an exported policy."""

    onnx = "onnx"
    torch = "torch"
    both = "both"


Device = Annotated[str, typer.Option(help="auto, cpu, dml or cuda, with :N for the Nth.")]
Load = Annotated[Path | None, typer.Option(help="A checkpoint; the package's own if not given.")]


@app.command()
def train(
    algorithm: Annotated[Algorithm | None, typer.Option(help="[default: ppo]")] = None,
    sim: Annotated[Sim | None, typer.Option(help="[default: batched]")] = None,
    way: Annotated[
        Way | None,
        typer.Option(
            help="sb3: Stable-Baselines3; device: all on the device; overlapped: the CPU simulates while the device "
            "learns. auto: what fits the algorithm and the simulator."
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, dml or cuda. [default: auto]")] = None,
    parallel: Annotated[
        str | None,
        typer.Option(metavar="N|auto", help="How many arms side by side; auto measures what is fastest."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Control steps in all.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="[default: 0]")] = None,
    learning_rate: Annotated[float | None, typer.Option()] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Steps a gradient is of.")] = None,
    load: Annotated[Path | None, typer.Option(help="A checkpoint to go on with.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder. [default: runs/...]")] = None,
    save_every: Annotated[int, typer.Option(min=1, help="Control steps between checkpoints.")] = 500_000,
    graph: Annotated[bool | None, typer.Option(help="Capture an iteration as a graph (dml, CUDA).")] = None,
) -> None:
    """Train an arm, or go on with a run. Ctrl-C saves it."""
    from dml_robot import devices
    from dml_robot.learn import train as training
    from dml_robot.learn.parallel import choose
    from dml_robot.learn.settings import Settings

    given = {
        "algorithm": algorithm and algorithm.value,
        "sim": sim and sim.value,
        "way": way and way.value,
        "device": None if device is None and load is not None else str(devices.choose(device or "auto")),
        "parallel": None if parallel in (None, "auto") else _whole(parallel or "", "--parallel"),
        "steps": steps,
        "seed": seed,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "graphs": graph,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if load is not None:
        run = training.resume(load, out, given)
    else:
        settings = Settings(**given)
        folder = out or Path("runs") / f"{settings.algorithm}-{settings.sim}-{time.strftime('%Y%m%d-%H%M%S')}"
        if (folder / "checkpoint.pt").exists():
            raise SettingsError(f"{folder} has a run already: --load {folder / 'checkpoint.pt'} goes on with it")
        if parallel == "auto":
            settings = dataclasses.replace(settings, parallel=choose(settings, _say))
        run = training.begin(settings, folder)
    target = devices.choose(run.settings.device)
    _say(
        f"{run.settings.algorithm} ({run.settings.way}) with {run.settings.parallel} arms in {run.settings.sim}, "
        f"on {target} ({devices.describe(target)}), to {run.settings.steps:,} steps; {run.out}"
    )
    training.train(run, _console, save_every)
    missing = devices.fallbacks(target)
    if missing:
        _say(f"operators that ran on the CPU instead of the device: {missing}")
    _say(f"{run.trainer.steps:,} steps in {run.seconds:.1f} s; `dml-robot eval --load {run.path}` evaluates it")


@app.command(name="eval")
def evaluate_command(
    load: Load = None,
    episodes: Annotated[int, typer.Option(min=1, help="How many unseen targets.")] = 500,
    sim: Annotated[Sim, typer.Option()] = Sim.batched,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Of the targets.")] = 1_000_000,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Also write the figures here; - is the output.")
    ] = None,
) -> None:
    """Evaluate a checkpoint: success, distance, time, violations of limits, smoothness."""
    from dml_robot import devices, policy
    from dml_robot.evaluate import evaluate
    from dml_robot.sim import make

    target = devices.choose(device)
    loaded = policy.load(load, target)
    with devices.told(target):
        place = target if sim is Sim.batched else "cpu"
        env = make(sim.value, min(episodes, 500), place, seed, as_torch=target)
        try:
            found = evaluate(env, loaded, episodes, seed=seed)
        finally:
            env.close()
    if as_json != Path("-"):
        _console.print(found.table())
    if as_json is not None:
        _write_json(found.as_dict(), as_json)


@app.command()
def demo(
    load: Load = None,
    save_video: Annotated[Path | None, typer.Option(help="Write an MP4; needs no display.")] = None,
    save_image: Annotated[Path | None, typer.Option(help="Write a PNG of the video's middle.")] = None,
    view: Annotated[bool, typer.Option(help="Show it in MuJoCo's viewer, where there is a display.")] = False,
    episodes: Annotated[int, typer.Option(min=1)] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Of the targets.")] = 1_000_000,
) -> None:
    """Show a checkpoint's arm: as a video, a picture, or in a window."""
    from dml_robot import demo as demonstration
    from dml_robot import policy

    loaded = policy.load(load)
    if view:
        demonstration.view(loaded, seed=seed)
        return
    if save_video is None and save_image is None:
        save_video, save_image = Path("demo.mp4"), Path("demo.png")
    found = demonstration.record(loaded, video=save_video, image=save_image, episodes=episodes, seed=seed)
    files = ", ".join(str(path) for path in (save_video, save_image) if path is not None)
    _say(f"{files}: {found.successes} of {found.episodes} targets reached; drawn by {found.renderer}")


@app.command()
def export(
    load: Load = None,
    out: Annotated[Path, typer.Option(help="The file, without its ending.")] = Path("policy"),
    form: Annotated[Form, typer.Option("--format")] = Form.both,
) -> None:
    """Export a policy as ONNX and torch.export, compared with the trained one."""
    from dml_robot import policy
    from dml_robot.export import FORMATS
    from dml_robot.export import export as write

    loaded = policy.load(load)
    for each in FORMATS if form is Form.both else (form.value,):
        path = out.with_name(out.name + FORMATS[each])
        difference = write(loaded, path, each)
        _say(f"{path}: {path.stat().st_size / 1024:.0f} KiB, differs from the policy by {difference:.1g}")


@app.command()
def bench(
    device: Annotated[list[str] | None, typer.Option(help="May be repeated. [default: all there are]")] = None,
    sim: Annotated[Sim | None, typer.Option(help="[default: both]")] = None,
    way: Annotated[Way | None, typer.Option(help="[default: all]")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="[default: each way's own]")] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Steps a gradient is of. [default: each way's own]")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="How long each speed is measured.")] = 3.0,
    until: Annotated[
        float | None, typer.Option(help="Also train until 95 % of unseen targets, for so many seconds at most.")
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", help="Also write the figures here; - is the output.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw the speeds into this PNG.")] = None,
) -> None:
    """Measure steps per second, simulated, acted and learnt, and the time to success."""
    from dml_robot import bench as measuring
    from dml_robot import devices
    from dml_robot.learn.settings import Settings

    names = device or [kind for kind in ("cpu", "dml", "cuda") if devices.available(kind)]
    chosen = [
        Settings(
            sim=each, way=kind, device=str(devices.choose(name)), parallel=parallel, batch_size=batch_size
        ).checked()
        for name in names
        for each, kind in measuring.WAYS
        if sim in (None, each) and way in (None, "auto", kind)
    ]
    if not chosen:
        raise SettingsError(f"no simulator and way fit: there are {measuring.WAYS}")
    results = [measuring.measure(each, seconds, until, _aside) for each in chosen]
    if as_json != Path("-"):
        _console.print(measuring.table(results))
    if as_json is not None:
        _write_json([dataclasses.asdict(result) for result in results], as_json)
    if plot is not None:
        try:
            measuring.draw(results, plot)
        except OSError as error:
            raise RobotError(f"cannot write {plot}: {error.strerror or error}") from error


@app.command()
def report() -> None:
    """Say what this machine has: system, processor, GPUs and drivers, packages."""
    from dml_robot.launcher import report as lines

    for line in lines():
        _say(line)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; an error that the user can fix is one line, with exit status 1 (2 for
    invalid arguments).
    """
    try:
        status = app(args=arguments, standalone_mode=False)
    except RobotError as error:
        print(f"dml-robot: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingsError) else 1
    except typer.Exit as error:
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        print("dml-robot: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        show = getattr(error, "format_message", None)  # click's errors of the command line
        if show is None:
            raise
        print(f"dml-robot: {show()}", file=sys.stderr)
        return int(getattr(error, "exit_code", 2))
    return status if isinstance(status, int) else 0


def _say(line: str) -> None:
    _console.print(line, highlight=False, markup=False, soft_wrap=True)


def _aside(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _whole(text: str, option: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{option} is a number from 1 on or auto, not '{text}'")
    return int(text)


def _write_json(contents: Any, path: Path) -> None:
    text = json.dumps(contents, indent=2)
    if path == Path("-"):
        print(text)
        return
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise RobotError(f"cannot write {path}: {error.strerror or error}") from error


if __name__ == "__main__":
    sys.exit(main())
