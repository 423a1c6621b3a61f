"""The command line. Each command imports its dependencies when it runs: `doctor` works where torch
does not.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from torch_dml._version import __version__

SUITES = (
    *("ops", "matmul", "train", "graph"),
    *("compile", "conv", "attention", "rows", "models", "fft", "sparse", "linear", "linalg"),
)
# The suites that together take a few minutes.
USUAL = SUITES[:4]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return 130
    except (ImportError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "devices":
        from torch_dml.cli import devices

        return devices.run(as_json=options.json)
    if options.command == "doctor":
        from torch_dml.cli import doctor

        return doctor.run()
    if options.command == "report":
        from torch_dml.cli import report

        return report.run(options.output)
    if options.command == "bench" and options.breakdown:
        from torch_dml.cli.bench import breakdown

        if options.suites not in ([], ["ops"]):
            raise RuntimeError("--breakdown is of the suite ops")
        (device, *others) = options.device or ["dml"]
        if others or device.partition(":")[0] != "dml":
            raise RuntimeError("--breakdown is of one dml device")
        return breakdown.run(device, quick=options.quick, target=options.json)
    if options.command == "bench":
        from torch_dml.cli import bench

        return bench.run(
            options.suites or list(USUAL),
            options.device,
            quick=options.quick,
            limit=options.limit,
            target=options.json,
        )
    if options.command == "demo":
        from torch_dml.cli import demo

        return demo.run(options.device, options.epochs, options.seed)
    if options.command == "trace":
        # Without this, PyTorch's collector prints on stderr that it found no CUDA device. It is
        # read when torch is imported.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        from torch_dml.cli import trace

        return trace.run(
            options.script,
            options.arguments,
            module=options.module,
            target=options.output,
            stacks=options.stacks,
            rows=options.rows,
        )
    if options.command == "kernels":
        from torch_dml.cli import kernels

        return kernels.run(
            options.file,
            rows=options.rows,
            select=options.select,
            as_json=options.json,
            counts=options.counts,
            model=options.model,
        )
    if options.command == "compare":
        from torch_dml.cli import compare

        return compare.run(options)
    if options.command == "run":
        from torch_dml.cli import run

        return run.run(options.script, options.arguments, module=options.module, force=options.force)
    from torch_dml.cli import probe

    return probe.run(options.step)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m torch_dml", description="torch-dml: PyTorch on any GPU with a Vulkan driver"
    )
    parser.add_argument("--version", action="version", version=f"torch-dml {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    devices = commands.add_parser("devices", help="list the devices", description="List the devices.")
    devices.add_argument("--json", action="store_true", help="print JSON instead of a table")

    commands.add_parser(
        "doctor",
        help="check the installation",
        description="Check the Vulkan loader, the drivers, torch, the plugin and every device; exit with status 1 "
        "and say what to install or update when something does not work.",
    )

    report = commands.add_parser(
        "report",
        help="write a text file for a report of a bug",
        description="Write versions, drivers, devices and, where the last run was recorded (TORCH_DML_RECORD=1), what "
        "fell back and which error ended it to a text file, and show it. Paths and names are left out, and nothing is "
        "sent.",
    )
    default = "torch-dml-report.txt"
    report.add_argument("-o", "--output", default=default, metavar="FILE", help=f"{default} when left out")

    bench = commands.add_parser(
        "bench",
        help="measure dml beside cpu and cuda",
        description="Run benchmark suites on dml and on each of cpu and cuda present, in one process. "
        "Figures are medians of several repeats after a warm-up, on random data, printed as they come.",
    )
    bench.add_argument(
        "suites", nargs="*", metavar="SUITE", type=_suite, help=f"{', '.join(SUITES)}; default: {', '.join(USUAL)}"
    )
    bench.add_argument("--device", action="append", help="run on this device only; may be given again")
    bench.add_argument("--json", metavar="FILE", help="write the figures to FILE, as they come")
    bench.add_argument(
        "--breakdown", action="store_true", help="ops only: split a small operator's host time into its stages"
    )
    bench.add_argument("--quick", action="store_true", help="small sizes, for a first look")
    bench.add_argument(
        "--limit",
        type=float,
        default=10.0,
        metavar="S",
        help="skip what takes longer than S seconds a repeat, and stop repeating after S seconds (10)",
    )

    demo = commands.add_parser(
        "demo",
        help="train a network on handwritten digits",
        description="Train a convolutional network on scikit-learn's handwritten digits, on the best device and on "
        "the CPU, with the same seed and batches.",
    )
    demo.add_argument("--device", default="dml", help="dml (default), dml:1, cpu, cuda")
    demo.add_argument("--epochs", type=_positive, default=12, help="12 when left out")
    demo.add_argument("--seed", type=int, default=0, help="0 when left out")

    trace = commands.add_parser(
        "trace",
        help="write what a script does on host and device as a trace",
        description="Run a script under torch.profiler, write a trace for Perfetto or chrome://tracing, with the "
        "host's operators and the devices' kernels on tracks of their own, and print the kernels by their time.",
    )
    trace.add_argument("-o", "--output", default="trace.json", metavar="FILE", help="trace.json when left out")
    trace.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module's name, as in python -m")
    trace.add_argument("--stacks", action="store_true", help="with the Python functions that ran (slow)")
    trace.add_argument("--rows", type=_positive, default=20, help="kernels in the table; 20 when left out")
    trace.add_argument("script", metavar="SCRIPT", help="a Python file; the options of this command come before it")
    trace.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script")

    kernels = commands.add_parser(
        "kernels",
        help="show what the driver's compiler made of the kernels",
        description="Show registers, spills, shared memory, occupancy and instructions of the kernels that a program "
        "compiled while TORCH_DML_PIPELINE_STATISTICS=FILE was set, as far as the driver reports them, the worst "
        "first. Exit with status 1 where the driver refused a kernel.",
    )
    kernels.add_argument("--rows", type=_positive, default=40, help="rows of the table; 40 when left out")
    kernels.add_argument("--select", metavar="TEXT", help="only kernels whose name contains TEXT")
    kernels.add_argument("--json", action="store_true", help="print JSON instead of a table")
    kernels.add_argument(
        "--counts",
        metavar="FILE",
        help="print what was executed too, from a file of RADEON_PLAYER_COUNTS (tools/radeon-player)",
    )
    kernels.add_argument(
        "--model",
        choices=("navi31", "navi21"),
        help="with --counts, predict the time of each kernel on an RX 7900 XTX or an RX 6800",
    )
    kernels.add_argument("file", metavar="FILE", help="the file that the program wrote")

    compare = commands.add_parser(
        "compare",
        help="find where a script's results differ from the CPU's, and why",
        description="Run a script's first training steps while each operator is also called with the same inputs on "
        "the CPU, in float32 and in float64, and whole runs are followed there with the same weights and random "
        "numbers. Name the first operator whose error its precision does not explain, write a script that repeats it "
        "alone, and exit with status 1 where something stands out. The script runs twice, as far as the steps; the "
        "model is the first one that it trains, or what it names with torch_dml.compare.watch(model).",
    )
    compare.add_argument("-o", "--output", default="compare.html", metavar="FILE", help="the page; compare.html")
    compare.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module's name, as in python -m")
    compare.add_argument("--steps", type=_positive, default=2, metavar="N", help="optimizer steps; 2 when left out")
    compare.add_argument("--device", help="the device to examine; dml when left out")
    compare.add_argument("--seed", type=int, default=0, help="of random numbers; 0 when left out")
    compare.add_argument("--json", metavar="FILE", help="write everything to FILE")
    compare.add_argument("--rows", type=_positive, default=20, help="rows of each table; 20 when left out")
    compare.add_argument("--once", action="store_true", help="do not call operators twice to compare the bits")
    compare.add_argument(
        "--operators-only", action="store_true", help="no whole runs in float64 and float32: less memory and time"
    )
    compare.add_argument(
        "--max-elements",
        type=_positive,
        default=1 << 26,
        metavar="N",
        help="do not compare calls with more input elements; 67,108,864 when left out",
    )
    compare.add_argument("script", metavar="SCRIPT", help="a Python file; the options of this command come before it")
    compare.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script")

    run = commands.add_parser(
        "run",
        help="run a script that was written for CUDA",
        description='Run a script with the devices in CUDA\'s place: they are "cuda:0", "cuda:1" and so on, for '
        "PyTorch and every library, also in the processes that the script starts.",
    )
    run.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module's name, as in python -m")
    run.add_argument("--force", action="store_true", help="also where a CUDA device is usable")
    run.add_argument("script", metavar="SCRIPT", help="a Python file; the options of this command come before it")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script")

    # A step of doctor that runs in a child process, so that a driver that crashes does not end
    # doctor.
    probe = commands.add_parser("_probe")
    probe.add_argument("step")
    return parser


def _suite(name: str) -> str:
    if name not in SUITES:
        raise argparse.ArgumentTypeError(f"no suite {name!r}: choose from {', '.join(SUITES)}")
    return name


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return value
