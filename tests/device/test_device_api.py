"""The module torch.dml, and errors of invalid arguments."""

from __future__ import annotations

import pytest
import torch
from torch_dml import engine

from tests.support.names import words
from tests.support.processes import run_python


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.detach().cpu(), b.detach().cpu())


@pytest.mark.smoke
def test_names_of_devices():
    assert repr(torch.device("dml", 0)) == "device(type='dml', index=0)"
    assert torch.device("dml:1").index == 1
    assert torch.zeros(1, device="dml").device == torch.device("dml", 0)
    assert torch.get_device_module("dml") is torch.dml
    assert torch.accelerator.current_accelerator() == torch.device("dml")
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == torch.dml.device_count()


@pytest.mark.smoke
def test_methods_of_tensors_and_modules():
    x = torch.ones(2).dml()
    assert x.is_dml and not torch.ones(2).is_dml
    assert x.cpu().device.type == "cpu"
    layer = torch.nn.Linear(2, 2).dml()
    assert all(parameter.is_dml for parameter in layer.parameters())


def test_current_device():
    assert torch.dml.is_available() and torch.dml.is_initialized()
    assert torch.dml.current_device() == 0
    torch.dml.set_device(0)
    torch.dml.set_device("dml:0")
    torch.dml.set_device(-1)
    with torch.dml.device(0), torch.dml.device("dml"), torch.dml.device(None):
        assert torch.dml.current_device() == 0
    with torch.dml.device_of(torch.ones(1)), torch.dml.device_of(torch.ones(1, device="dml")):
        assert torch.dml.current_device() == 0
    with pytest.raises(RuntimeError, match="99"):
        torch.dml.set_device(99)
    with pytest.raises(ValueError, match="cpu"):
        torch.dml.set_device("cpu")


def test_older_tensor_types():
    x = torch.dml.FloatTensor(2, 3)
    assert x.is_dml and x.shape == (2, 3) and x.type() == "torch.dml.FloatTensor"
    assert torch.dml.LongTensor([1, 2]).tolist() == [1, 2] and torch.dml.HalfTensor().numel() == 0
    assert isinstance(x, torch.dml.FloatTensor) and not isinstance(x, torch.dml.LongTensor)
    assert not isinstance(torch.ones(2), torch.dml.FloatTensor)
    assert torch.ones(2).type("torch.dml.IntTensor").dtype == torch.int32
    with torch.dml.device(1):
        assert torch.dml.ByteTensor(3).get_device() == 1


def test_names_of_cuda_that_are_here():
    """The names of torch.cuda that programs use and that apply to other devices."""
    for name in torch.dml.__all__:
        assert hasattr(torch.dml, name), name
    wanted = (
        "Event Stream StreamContext can_device_access_peer current_device current_stream default_generators "
        "default_stream device device_count device_memory_used device_of empty_cache get_device_capability "
        "get_device_name get_device_properties get_per_process_memory_fraction get_rng_state get_rng_state_all "
        "host_memory_stats init initial_seed ipc_collect is_available is_bf16_supported "
        "is_current_stream_capturing is_initialized manual_seed manual_seed_all max_memory_allocated "
        "max_memory_reserved mem_get_info memory memory_allocated memory_reserved memory_snapshot memory_stats "
        "memory_stats_as_nested_dict memory_summary random reset_accumulated_host_memory_stats "
        "reset_accumulated_memory_stats reset_peak_host_memory_stats reset_peak_memory_stats seed seed_all "
        "set_device set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream stream streams "
        "synchronize"
    )
    for name in words(wanted):
        assert hasattr(torch.dml, name) and hasattr(torch.cuda, name), name


def test_properties():
    properties = torch.dml.get_device_properties(0)
    assert properties.name == torch.dml.get_device_name() == torch.dml.get_device_name("dml:0")
    assert properties.total_memory > 0
    assert torch.dml.get_device_capability() >= (1, 2)
    assert torch.dml.is_bf16_supported()
    assert torch.float16 in torch.dml.get_amp_supported_dtype()
    if properties.subnormals:
        assert (torch.tensor(1e-40, device="dml") * 1).item() > 0


# ---- Invalid arguments


@pytest.mark.smoke
def test_wrong_shapes_name_the_shapes():
    with pytest.raises(RuntimeError, match=r"(?s)(3.*4|4.*3)"):
        torch.ones(3, device="dml") + torch.ones(4, device="dml")
    with pytest.raises(RuntimeError, match=r"(?s)2.*3.*4.*5"):
        torch.ones(2, 3, device="dml") @ torch.ones(4, 5, device="dml")


def same_exception(function) -> None:
    """The device raises the CPU's exception."""
    with pytest.raises(Exception) as expected:
        function(torch.device("cpu"))
    with pytest.raises(Exception) as actual:
        function(torch.device("dml"))
    assert type(actual.value) is type(expected.value), (actual.value, expected.value)


@pytest.mark.allow_fallback  # the CPU may be the one that refuses
@pytest.mark.parametrize(
    "function",
    [
        lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
        lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
        lambda d: torch.mm(torch.ones(2, 3, device=d), torch.ones(3, device=d)),
        lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d, dtype=torch.int64)),
        lambda d: torch.ones(3, device=d).sum(5),
        lambda d: torch.ones(3, device=d).reshape(2, 2),
        lambda d: torch.ones(3, device=d)[7],
        lambda d: torch.cat([torch.ones(2, 2, device=d), torch.ones(3, 3, device=d)]),
        lambda d: torch.ones(3, device=d, dtype=torch.int64).add_(1.5),
        lambda d: torch.ones(2, device=d).item(),
        lambda d: torch.nn.functional.conv2d(torch.ones(1, 3, 4, 4, device=d), torch.ones(2, 4, 3, 3, device=d)),
        lambda d: torch.ones(3, device=d) & torch.ones(3, device=d),
        lambda d: torch.arange(3, device=d).mean(),
    ],
)
def test_same_exception_as_the_cpu(function):
    same_exception(function)


@pytest.mark.smoke
def test_index_out_of_range_raises():
    x = torch.arange(5.0, device="dml")
    for wrong in ([7], [-6], [0, 99]):
        with pytest.raises((IndexError, RuntimeError)):
            x[torch.tensor(wrong, device="dml")].cpu()
            torch.dml.synchronize()
    # The device still works.
    assert x[torch.tensor([1, -1], device="dml")].tolist() == [1.0, 4.0]


@pytest.mark.smoke
def test_mixed_devices_are_named():
    with pytest.raises(RuntimeError) as error:
        torch.ones(3, device="dml") + torch.ones(3)
    assert "dml" in str(error.value) and "cpu" in str(error.value)
    with pytest.raises(RuntimeError) as error:
        torch.mm(torch.ones(2, 2), torch.ones(2, 2, device="dml"))
    assert "dml" in str(error.value) and "cpu" in str(error.value)


def test_a_device_that_does_not_exist():
    with pytest.raises(RuntimeError, match="99"):
        torch.ones(1, device="dml:99")


@pytest.mark.smoke
def test_what_pytorch_itself_computes_in_float64():
    """Also on adapters without float64."""
    x = torch.tensor([1.5, -0.25, 3e-3], device="dml")
    assert str(x) == f"tensor([ 1.5000, -0.2500,  0.0030], device='{x.device}')"
    weight = torch.ones(2, 2, device="dml", requires_grad=True)
    scaler, optimizer = torch.amp.GradScaler("dml", init_scale=8.0), torch.optim.SGD([weight], lr=0.5)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    scaler.step(optimizer)
    assert weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    exact = torch.tensor([0.1, -7.0], dtype=torch.float64, device="dml") / 3
    assert exact.tolist() == [0.1 / 3, -7.0 / 3]


def test_what_kernels_cost():
    before = engine.kernel_stats()
    x = torch.rand(3, 5, device="dml").erfinv().igamma(torch.ones((), device="dml"))
    assert x.shape == (3, 5) and x.isfinite().all().item()
    after = engine.kernel_stats()
    assert set(after) == {"kernels", "emit_ns", "compile_ns", "longest_ns", "wait_ns"}
    assert after["kernels"] >= 3 and all(after[name] >= before[name] for name in after)
    assert 0 < after["longest_ns"] <= after["compile_ns"]


@pytest.mark.parametrize("setting", ["", "0", "1"])
def test_a_software_adapter_warns_once_unless_it_is_wanted(setting):
    run = run_python(
        "-c", "import torch, torch_dml; x = torch.ones(2, device='dml'); (x + x).cpu()", TORCH_DML_SOFTWARE=setting
    )
    assert run.returncode == 0, run.stderr
    warned = torch.dml.get_device_properties(0).software and not setting
    assert run.stderr.count("no GPU, but the processor") == warned, run.stderr
