"""Drivers that refuse kernels, or whose compiler or queries end the process.

The faults are imitated on the adapter of the tests (TORCH_DML_IMITATED_FAULTS), in processes of
their own.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import notes
from tests.support.processes import run_python

# Prints the largest difference between the device and the CPU, of programs by name.
PROGRAM = """
import sys
import torch
import torch.nn.functional as F
import torch_dml

def difference(of, *inputs):
    on_device = of(*(x.to("dml") for x in inputs)).cpu().double()
    return (on_device - of(*(x.double() for x in inputs))).abs().max().item()

def attention(x):
    return F.scaled_dot_product_attention(x, x, x)

def recurrence(x):
    torch.manual_seed(1)
    return torch.nn.LSTM(8, 16).to(x.device, x.dtype)(x)[0]

def chain(x):
    for _ in range(12):
        y = ((x * 0.5 + 1.0).exp() - x).tanh()
    return y

def elementwise(x):
    y = x.clone()
    y.mul_(2.0).sub_(x)
    out = torch.empty(0, dtype=x.dtype, device=x.device)
    torch.atan2(y, x.t().contiguous().t(), out=out)
    return out.add_(x[:, ::2].repeat_interleave(2, 1)).masked_fill_(x > 1, 0.5)

def selected(x):
    top, median = x.topk(5, 1), x.median(1)
    return torch.cat([top[0], top[1].to(x.dtype), median[0][:, None], x.kthvalue(7, 1)[0][:, None]], 1)

def data_dependent(x):
    y = x.clone()
    y[x > 0.5] = 2.0
    return torch.cat([y.flatten(), x[x > 0], x.round().unique(), (x > 0).nonzero().flatten().to(x.dtype)])

def training(x):
    torch.manual_seed(2)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
              torch.nn.Flatten(), torch.nn.Linear(8 * 9, 10)]
    model = torch.nn.Sequential(*layers).to(x.device, x.dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    labels = torch.arange(4, device=x.device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.cat([p.detach().flatten() for p in model.parameters()] + [torch.stack(losses)])

def attention_step(x):
    x = x.detach().requires_grad_()
    y = F.scaled_dot_product_attention(x, x * 0.5, x.sin(), is_causal=True)
    y.square().sum().backward()
    return torch.cat([y.detach(), x.grad])

def recurrent_step(x):
    torch.manual_seed(1)
    layer = torch.nn.GRU(8, 16).to(x.device, x.dtype)
    x = x.detach().requires_grad_()
    layer(x)[0].square().sum().backward()
    return torch.cat([x.grad.flatten()] + [p.grad.flatten() for p in layer.parameters()])

def classes(x):
    x = x.detach().requires_grad_()
    loss = F.cross_entropy(x, torch.arange(len(x), device=x.device) % x.shape[1], label_smoothing=0.1)
    loss.backward()
    return torch.cat([loss.detach()[None], x.grad.flatten()])

def graphed(x):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.Tanh()).to(x.device, x.dtype)
    x = x.detach().requires_grad_()
    call = torch_dml.graphs.make_graphed_callables(model, (x,)) if x.device.type == "dml" else model
    y = call(x)
    y.square().sum().backward()
    return torch.cat([y.detach().flatten(), x.grad.flatten()])

def captured(x):
    graph = torch_dml.graphs.Graph()
    with torch_dml.graphs.graph(graph):
        y = x.tanh() + 1
    graph.replay()
    return y

def spectra(*lengths):
    def of(x):
        lines = [torch.view_as_real(torch.fft.fft(x[:, :n].contiguous())).flatten() for n in lengths]
        lines += [torch.fft.irfft(torch.fft.rfft(x[:, :n]), n).flatten() for n in lengths]
        return torch.cat(lines)
    return of

PROGRAMS = {
    "chain": lambda: difference(chain, torch.randn(20, 30)),
    "elementwise": lambda: difference(elementwise, torch.randn(20, 30)),
    "selected": lambda: difference(selected, torch.randn(6, 900)),
    "data dependent": lambda: difference(data_dependent, torch.randn(20, 30)),
    "attention step": lambda: difference(attention_step, torch.randn(1, 2, 40, 32)),
    "recurrent step": lambda: difference(recurrent_step, torch.randn(5, 3, 8)),
    "graphed": lambda: difference(graphed, torch.randn(20, 30)),
    "captured": lambda: captured(torch.randn(20, 30).to("dml")).cpu().mean(),
    "classes": lambda: difference(classes, torch.randn(50, 30)),
    "training": lambda: difference(training, torch.randn(4, 3, 8, 8)),
    "fft": lambda: difference(spectra(16, 60, 256, 1024), torch.randn(3, 1024)),
    "long fft": lambda: difference(spectra(1 << 15), torch.randn(2, 1 << 15)),
    "fft of primes": lambda: difference(spectra(31, 101, 37 * 8), torch.randn(3, 1024)),
    "long sort": lambda: difference(lambda x: torch.cat(x.sort(1)), torch.randn(2, 9000)),
    "short sort": lambda: difference(lambda x: torch.cat(x.sort(1)), torch.randn(40, 20)),
    "positions": lambda: difference(lambda x: torch.cat(x.sort(1)), torch.randn(50, 300)),
    "product": lambda: difference(torch.matmul, torch.randn(300, 200), torch.randn(200, 260)),
    "few rows": lambda: difference(torch.matmul, torch.randn(2, 80), torch.randn(80, 90)),
    "halves": lambda: difference(torch.matmul, torch.randn(100, 80).half(), torch.randn(80, 90).half()),
    "attention": lambda: difference(attention, torch.randn(1, 2, 70, 64)),
    "attention of halves": lambda: difference(attention, torch.randn(1, 2, 64, 32).half()),
    "convolution": lambda: difference(
        lambda x, w: F.conv2d(x, w, padding=1), torch.randn(2, 8, 20, 20), torch.randn(8, 8, 3, 3)),
    "depthwise": lambda: difference(
        lambda x, w: F.conv2d(x, w, groups=8), torch.randn(2, 8, 20, 20), torch.randn(8, 1, 3, 3)),
    "recurrence": lambda: difference(recurrence, torch.randn(5, 3, 8)),
    "softmax": lambda: difference(lambda x: x.softmax(1), torch.randn(50, 300)),
    "sort": lambda: difference(lambda x: x.sort(1)[0], torch.randn(50, 300)),
}
for name in sys.argv[1:]:
    torch.manual_seed(0)
    try:
        print(name, PROGRAMS[name]())
    except RuntimeError as error:
        print(name, "RuntimeError:", error)
"""
# Of the results, which are of the size of 1 to 50.
TOLERANCE = {
    "product": 1e-3,
    "halves": 0.05,
    "attention of halves": 2e-3,
    "fft": 1e-3,
    "long fft": 1e-3,
    "fft of primes": 1e-3,
}
REFUSED = "is refused, optimised: "
FALLBACK = "has no dml kernel for these arguments and runs on the CPU"


def in_every_form(*names: str) -> str:
    """The fault of a driver that is known to refuse, and refuses these kernels altogether."""
    return "; ".join(["known", *(f"refuses {name}; refuses halved {name}" for name in names)])


class Folder:
    """A cache of its own, in which processes run one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, faults: str, *programs: str, **environment: str) -> tuple[dict[str, str], list[str], list[str]]:
        """Run programs in a process with faults. Return their results by name, the kernels that
        the process compiled, and what was refused.
        """
        kernels = self.path / "kernels.jsonl"
        kernels.unlink(missing_ok=True)
        done = run_python(
            "-c",
            PROGRAM,
            *programs,
            timeout=300,
            TORCH_DML_CACHE_DIR=str(self.path / "cache"),
            TORCH_DML_IMITATED_FAULTS=faults,
            TORCH_DML_PIPELINE_STATISTICS=str(kernels),
            TORCH_DML_LOG="dml_vulkan=info,warn",
            **environment,
        )
        self.error = done.stderr
        self.code = done.returncode
        results = {
            name: line.removeprefix(name).strip()
            for name in programs
            for line in done.stdout.splitlines()
            if line.startswith(f"{name} ")
        }
        lines = [json.loads(line) for line in kernels.read_text().splitlines()] if kernels.exists() else []
        compiled = [line["kernel"] for line in lines if "error" not in line]
        refused = [line for line in done.stderr.splitlines() if REFUSED in line]
        return results, compiled, refused

    def on_cpu(self) -> list[str]:
        """The operators whose fallback to the CPU the last process warned of."""
        lines = [line for line in self.error.splitlines() if FALLBACK in line]
        return sorted(line.split("The operator '")[1].split("'")[0] for line in lines)

    def works(self, faults: str, *programs: str, **environment: str) -> tuple[list[str], list[str]]:
        """As `run`, without errors and with right results; return the last two."""
        results, compiled, refused = self.run(faults, *programs, **environment)
        assert self.code == 0, self.error
        for name in programs:
            assert float(results[name]) < TOLERANCE.get(name, 1e-4), f"{name}: {results[name]}"
        return compiled, refused

    def notes(self) -> list[str]:
        """What is noted of kernels."""
        records = notes.read(self.path / "cache")
        return sorted(text for name, text in records.items() if name.startswith("pipeline "))

    def journals(self) -> int:
        return len(list((self.path / "cache").glob("*.journal")))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the kernel that computes the product without faults."""
    folder = Folder(tmp_path_factory.mktemp("healthy"))
    compiled, refused = folder.works("", "product")
    assert not refused and folder.notes() == [] and folder.journals() == 0
    (name,) = (name for name in compiled if name.startswith("gemm "))
    return name


def test_what_is_refused_is_compiled_without_optimisation_and_the_next_process_takes_another(
    folder: Folder, gemm: str
) -> None:
    compiled, refused = folder.works(f"refuses-optimised {gemm}", "product")
    assert gemm in compiled
    assert len(refused) == 1
    assert folder.error.count(f"refuses kernel {gemm}: vkCreateComputePipelines failed") == 1, "one warning"
    assert folder.notes() == ["unoptimised"]
    compiled, refused = folder.works(f"refuses-optimised {gemm}", "product")
    assert [name for name in compiled if name.startswith("gemm ") and name != gemm], "a smaller tile"
    assert not refused and "WARN" not in folder.error
    assert folder.notes() == ["unoptimised"]


def test_what_is_refused_without_optimisation_too_is_compiled_with_smaller_workgroups(
    folder: Folder, gemm: str
) -> None:
    _, refused = folder.works(f"refuses {gemm}", "product")
    assert len(refused) == 2
    assert folder.notes() == ["halved"]
    compiled, refused = folder.works(f"refuses {gemm}", "product")
    assert [name for name in compiled if name.startswith("gemm ") and name != gemm], "a smaller tile"
    assert not refused and "WARN" not in folder.error


def test_what_is_refused_in_every_form_is_an_error_once(folder: Folder, gemm: str) -> None:
    faults = f"refuses {gemm}; refuses halved {gemm}"
    results, _, refused = folder.run(faults, "product")
    assert f"RuntimeError: kernel {gemm} could not be compiled: the driver of " in results["product"]
    assert "python -m torch_dml report" in results["product"]
    assert len(refused) == 3 and folder.notes() == ["refused"]
    compiled, refused = folder.works(faults, "product")
    assert gemm not in compiled and not refused
    # In one process, too, the second product takes a smaller tile.
    again = Folder(folder.path / "again")
    results, _, refused = again.run(faults, "product", "product")
    assert float(results["product"]) < TOLERANCE["product"] and len(refused) == 3


def test_on_a_driver_that_is_known_to_refuse_there_is_no_error(folder: Folder, gemm: str) -> None:
    compiled, refused = folder.works(in_every_form(gemm), "product")
    assert gemm not in compiled and len(refused) == 3
    assert folder.notes() == ["refused"]


def test_kernels_without_alternatives_run_with_smaller_workgroups(folder: Folder) -> None:
    programs = ("product", "few rows", "attention", "depthwise", "softmax", "sort")
    # Without the kernels of the device itself, which read results back.
    names = ("gemm", "gemv", "attention", "depthwise", "row", "sort", "softmax", "reduce")
    _, refused = folder.works("; ".join(f"refuses {name}" for name in names), *programs)
    assert refused and "halved" in folder.notes()


def test_other_algorithms_take_the_place_of_refused_ones(folder: Folder) -> None:
    kernels = {
        "few rows": "gemv",
        "halves": "matrix_gemm",
        "attention of halves": "matrix_attention",
        "convolution": "winograd",
        "depthwise": "depthwise",
    }
    # Of recurrent layers, the kernel of single steps has the name of that of loops.
    names, programs = [*kernels.values(), "recurrence"], [*kernels, "recurrence"]
    settings = {
        "TORCH_DML_MATRIX_UNITS": "emulate",
        "TORCH_DML_WINOGRAD": "always",
        "TORCH_DML_RECURRENCE": "loop",
    }
    # Matrix units pass their test first.
    compiled, _ = folder.works("", *programs, **settings)
    assert [name for name in names if not any(kernel.startswith(name) for kernel in compiled)] == []
    faults = f"{in_every_form(*kernels.values())}; refuses-optimised recurrence"
    compiled, refused = folder.works(faults, *programs, **settings)
    assert [name for name in kernels.values() if any(kernel.startswith(name) for kernel in compiled)] == []
    assert [name for name in names if not any(f" {name}" in line for line in refused)] == []


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("fft", ["fft_16", "fft_10", "fft_8x8", "fft_16x8"]),
        ("long fft", ["fft_16", "fft_8"]),
        ("fft of primes", ["fft_31", "fft_16", "fft_8"]),
        ("short sort", ["sort_tile"]),
        ("short sort", ["sort_tile", "sort_row"]),
        ("positions", ["sort_row"]),
        ("selected", ["select_row"]),
        ("selected", ["select_row", "sort_row", "sort_tile"]),
    ],
)
def test_smaller_plans_take_the_place_of_refused_transforms_and_sorts(
    folder: Folder, program: str, names: list[str]
) -> None:
    healthy, _ = folder.works("", program)
    assert any(kernel.startswith(tuple(names)) for kernel in healthy), healthy
    again = Folder(folder.path / "again")
    compiled, refused = again.works(in_every_form(*names), program)
    assert refused and not again.on_cpu(), again.on_cpu()
    assert not any(kernel.startswith(tuple(names)) for kernel in compiled)


@pytest.mark.parametrize(
    ("program", "names", "operators"),
    [
        ("fft", ["fft"], ["aten::_fft_c2r", "aten::_fft_r2c"]),
        ("positions", ["sort", "radix"], ["aten::sort.stable"]),
        ("elementwise", ["atan2", "mul"], ["aten::atan2.out", "aten::mul_.Tensor"]),
        ("chain", ["exp", "fused"], ["aten::exp"]),
        ("data dependent", ["mask_visit", "masked_fill", "unique"], []),
        ("training", ["relu", "max_pool", "normalize", "threshold", "update"], []),
        ("attention step", ["attention"], []),
        ("attention step", ["attention Key", "attention Query"], []),
        ("recurrence", ["recurrence"], []),
        ("recurrent step", ["recurrence"], []),
        ("classes", ["cross_entropy"], []),
    ],
)
def test_what_is_refused_in_every_form_runs_on_the_cpu(
    folder: Folder, program: str, names: list[str], operators: list[str]
) -> None:
    _, refused = folder.works(in_every_form(*names), program)
    assert refused
    warned = folder.on_cpu()
    assert len(warned) == len(set(warned)), "each operator once"
    assert set(operators) <= set(warned), warned


def test_callables_with_operators_on_the_cpu_run_without_graphs(folder: Folder) -> None:
    folder.works(in_every_form("tanh"), "graphed")
    assert folder.on_cpu() == ["aten::tanh", "aten::tanh_backward"]
    assert "the callables run without graphs" in folder.error


def test_a_capture_says_what_the_cpu_has_to_run(folder: Folder) -> None:
    results, _, _ = folder.run(in_every_form("tanh"), "captured")
    assert "a graph is being captured, and aten::tanh, which the CPU has to run (kernel tanh" in results["captured"]


def test_a_driver_that_compiles_nothing(folder: Folder) -> None:
    programs = (
        "elementwise",
        "chain",
        "product",
        "data dependent",
        "selected",
        "fft",
        "long sort",
        "softmax",
        "training",
    )
    compiled, refused = folder.works("known; refuses", *programs)
    assert not compiled and refused
    assert {"aten::mul.Tensor", "aten::mm", "aten::exp"} <= set(folder.on_cpu()), folder.on_cpu()


def test_a_driver_that_optimises_nothing(folder: Folder) -> None:
    programs = ("product", "few rows", "attention", "softmax", "sort")
    _, refused = folder.works("refuses-optimised", *programs)
    assert len(refused) == len(folder.notes()) and set(folder.notes()) == {"unoptimised"}
    _, refused = folder.works("refuses-optimised", *programs)
    new = len(refused)
    assert len(folder.notes()) >= new, "smaller tiles"
    _, refused = folder.works("refuses-optimised", *programs)
    assert not refused, "each is asked for once"


def test_compilations_that_end_the_process_happen_twice(folder: Folder, gemm: str) -> None:
    # Kernels that other threads compile when a process ends are noted, too, and compiled later.
    for noted in [set(), {"unfinished 1"}]:
        folder.run(f"dies {gemm}", "product")
        assert folder.code != 0 and folder.journals() == 1
        assert set(folder.notes()) == noted
    folder.works(f"dies {gemm}", "product")
    assert "two processes ended while the driver compiled kernel" in folder.error
    assert set(folder.notes()) - {"compiled"} == {"unoptimised"} and folder.journals() == 0
    folder.works(f"dies {gemm}", "product")
    assert "WARN" not in folder.error


def test_a_process_that_ends_once_changes_nothing(folder: Folder, gemm: str) -> None:
    folder.run(f"dies {gemm}", "product")
    assert folder.journals() == 1
    compiled, _ = folder.works("", "product")
    assert gemm in compiled
    assert folder.notes() == ["compiled"] and folder.journals() == 0


@pytest.mark.parametrize(("word", "answered"), [("answers", True), ("dies", False), ("rubbish", False)])
def test_matrix_shapes_are_asked_for_in_a_child_process_once(folder: Folder, word: str, answered: bool) -> None:
    warning = "matrix units are not used: the query of their shapes ended its process, or does not end"
    folder.works(f"matrices {word}", "halves")
    assert (warning in folder.error) != answered
    (file,) = (folder.path / "cache").glob("matrices-*.bin")
    kept = file.read_bytes()
    assert kept[64:].startswith(b"matrix shapes\n" if answered else b"no answer")
    folder.works("matrices dies" if answered else "matrices answers", "halves")
    assert file.read_bytes() == kept and "WARN" not in folder.error, "nothing is asked again"


def test_a_child_process_that_hangs_is_not_waited_for(folder: Folder) -> None:
    folder.works("matrices hangs", "softmax", TORCH_DML_TIMEOUT_S="2")
    (file,) = (folder.path / "cache").glob("matrices-*.bin")
    assert file.read_bytes()[64:] == b"no answer"
