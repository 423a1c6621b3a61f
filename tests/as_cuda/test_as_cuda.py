"""The device in place of CUDA: unchanged programs for CUDA, compared with the CPU; and when CUDA
may be replaced.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.as_cuda.programs import PROGRAMS
from tests.support.environment import needs_timestamps
from tests.support.processes import run_python

SCRIPT = Path(__file__).with_name("programs.py")


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a new Python without settings for replacing CUDA, on a machine without usable CUDA
    devices.
    """
    return run_python(*arguments, **{"TORCH_DML_AS_CUDA": "", "CUDA_VISIBLE_DEVICES": "", **environment})


def outcome(*arguments: str, **environment: str) -> dict[str, Any]:
    done = python("-W", "ignore", *arguments, str(SCRIPT), **environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    found["stderr"] = done.stderr
    return found


@pytest.fixture(scope="module")
def on_cpu() -> dict[str, Any]:
    return outcome(TORCH_DEVICE_BACKEND_AUTOLOAD="0")


@pytest.fixture(scope="module")
def redirected() -> dict[str, Any]:
    return outcome("-m", "torch_dml", "run")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_on_the_cpu(name: str, on_cpu: dict[str, Any], redirected: dict[str, Any]) -> None:
    assert "error" not in on_cpu[name], on_cpu[name]["error"]
    assert "error" not in redirected[name], redirected[name]["error"]
    expected, found = on_cpu[name]["result"], redirected[name]["result"]
    if expected is None or isinstance(expected[0], str):
        assert found == expected
    else:
        torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=2e-5, atol=2e-5)


def test_programs_ran_on_the_device_alone(on_cpu: dict[str, Any], redirected: dict[str, Any]) -> None:
    assert (on_cpu["device"], redirected["device"]) == ("cpu", "cuda")
    assert redirected["fallbacks"] == {}
    assert redirected["stderr"].count(f"torch-dml stands in for CUDA: cuda:0 is {torch.dml.get_device_name(0)}") == 1


@needs_timestamps
def test_torch_profiler_has_the_kernels_times() -> None:
    code = """
import torch_dml.cuda, torch
from torch.profiler import ProfilerActivity, profile
x = torch.randn(64, 64, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as new:
    (x @ x).relu().cpu()
kernels = {e.name for e in new.events() if e.device_type == torch.autograd.DeviceType.CUDA}
assert any(name.startswith("dml::gemm") for name in kernels) and "dml::relu" in kernels, kernels
with torch.autograd.profiler.profile(use_device="cuda") as old:
    (x @ x).relu().cpu()
for profiler in new, old:
    times = {e.key: e.self_device_time_total for e in profiler.key_averages()}
    assert times["aten::mm"] > 0 and times["aten::relu"] > 0, times
"""
    done = python("-W", "ignore", "-c", code)
    assert done.returncode == 0, done.stderr
    assert "CUPTI" not in done.stderr and "WARN" not in done.stderr, done.stderr


def test_import_before_torch_takes_the_place() -> None:
    code = """
import torch_dml.cuda
import torch
print(torch_dml.cuda.is_active(), torch.ones(2, device="cuda").add(1).tolist(), torch.ones(1).cuda().device)
"""
    done = python("-c", code)
    assert done.stdout.split("\n")[0] == "True [2.0, 2.0] cuda:0", done.stderr


@pytest.mark.parametrize("first", ["import torch_dml", "import torch_dml; import torch"])
def test_import_after_the_device_is_dml_raises(first: str) -> None:
    done = python("-c", f"{first}\nimport torch_dml.cuda")
    assert done.returncode == 1
    assert 'ImportError: the device is "dml" in this process already' in done.stderr


USABLE = """
import torch_dml_autoload
torch_dml_autoload.nvidia_gpus = lambda: 1
"""


def test_a_usable_gpu_keeps_its_place() -> None:
    run = "import torch_dml.cli.run as r; r.nvidia_gpus = lambda: 1; r.run('x.py', [], module=False, force=False)"
    done = python("-c", f"import sys; sys.argv = ['-m']\n{run}")
    assert "a CUDA device is usable here" in done.stderr and done.returncode == 1
    done = python("-c", f"{USABLE}\nimport torch_dml.cuda", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    if torch.version.cuda is not None:
        assert "torch-dml does not take CUDA's place" in done.stderr and done.returncode == 1
        done = python(
            "-c", f"{USABLE}\nimport torch; print(torch.cuda.__dict__.get('CUDAGraph'))", TORCH_DML_AS_CUDA="1"
        )
        assert "TORCH_DML_AS_CUDA=1 is ignored" in done.stderr and "torch_dml" not in done.stdout


def test_it_is_taken_by_force() -> None:
    done = python("-c", f"{USABLE}\nimport torch; print(torch.ones(1, device='cuda'))", TORCH_DML_AS_CUDA="force")
    assert done.stdout.strip() == "tensor([1.], device='cuda:0')", done.stderr


def test_a_checkpoint_of_dml_is_read(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    torch.save({"weights": torch.arange(3.0, device="dml")}, file)
    code = f"import torch; print(torch.load({str(file)!r})['weights'])"
    done = python("-c", code, TORCH_DML_AS_CUDA="1")
    assert done.stdout.strip() == "tensor([0., 1., 2.], device='cuda:0')", done.stderr


def test_what_needs_cuda_itself_says_so() -> None:
    code = """
import torch
for call in (torch.cuda.cudart, torch._C._cuda_getCurrentBlasHandle, torch.cuda.ExternalStream):
    try:
        call()
    except NotImplementedError as error:
        print(error)
"""
    done = python("-c", code, TORCH_DML_AS_CUDA="1")
    assert done.stdout.count("needs NVIDIA's CUDA itself") == 3, done.stderr


def test_errors_speak_of_cuda() -> None:
    """Libraries search for these words."""
    code = """
import torch
x = torch.ones(2, device="cuda")
for call in (lambda: torch.empty(1 << 50, device="cuda"), lambda: torch.addmm(x, torch.ones(2, 2), x.expand(2, 2))):
    try:
        call()
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
    memory, devices = python("-c", code, TORCH_DML_AS_CUDA="1").stdout.strip().splitlines()
    assert memory.startswith("OutOfMemoryError CUDA out of memory. Tried to allocate 4194304.00 GiB.")
    assert "found at least two devices, cuda:0 and cpu!" in devices


def test_run_passes_arguments_flags_and_the_exit_status(tmp_path: Path) -> None:
    script = tmp_path / "a script.py"
    script.write_text("import sys\nprint(sys.argv[1:], sys.flags.optimize, __name__)\nsys.exit(7)\n")
    done = python("-O", "-m", "torch_dml", "run", str(script), "--force", "x y")
    assert (done.returncode, done.stdout.strip()) == (7, "['--force', 'x y'] 1 __main__")
    done = python("-m", "torch_dml", "run", "-m", "this")
    assert done.returncode == 0 and "Zen of Python" in done.stdout
    done = python("-m", "torch_dml", "run", "x.py", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 1 and "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in done.stderr


def test_what_wheels_without_cuda_lack_is_supplied() -> None:
    code = """
import torch
for name in [name for name in dir(torch._C) if name.startswith("_cuda_")]:
    delattr(torch._C, name)
torch._C._has_cuda = False
import torch_dml.cuda
from torch._C import _cuda_getCurrentRawStream as stream
model = torch.nn.Linear(3, 3).cuda()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 3, device="cuda")).sum().backward()
optimizer.step()
print(torch.backends.cuda.is_built(), torch.cuda.FloatTensor([2.0]).tolist(), torch.dml.fallbacks())
print(stream is torch._C._cuda_getCurrentRawStream, hasattr(torch._C, "_something_else"))
try:
    stream(0)
except NotImplementedError as error:
    print(error)
"""
    done = python("-W", "ignore", "-c", code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["True [2.0] {}", "True False"]
    assert lines[2].startswith("torch._C._cuda_getCurrentRawStream needs NVIDIA's CUDA itself")


def test_worker_processes_have_it_too(tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text("""
import torch
import torch.multiprocessing as mp
from multiprocessing.reduction import ForkingPickler

def work(rank, out):
    out.put((rank, (torch.ones(3, device="cuda") * rank).cpu().tolist()))

if __name__ == "__main__":
    context = mp.get_context("spawn")
    out = context.SimpleQueue()
    workers = [context.Process(target=work, args=(rank, out)) for rank in (1, 2)]
    for worker in workers:
        worker.start()
    print(sorted(out.get() for _ in workers))
    for worker in workers:
        worker.join()
    try:
        ForkingPickler.dumps(torch.ones(1, device="cuda"))
    except RuntimeError as error:
        print(error)
""")
    done = python("-m", "torch_dml", "run", str(script))
    assert done.stdout.startswith("[(1, [1.0, 1.0, 1.0]), (2, [2.0, 2.0, 2.0])]"), done.stderr
    assert "cannot be shared with another process" in done.stdout
    assert done.stderr.count("stands in for CUDA") == 1
