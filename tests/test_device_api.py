"""The module torch.dml, and what bad input raises."""

from __future__ import annotations

import pytest
import torch


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


def test_properties():
    properties = torch.dml.get_device_properties(0)
    assert properties.name == torch.dml.get_device_name() == torch.dml.get_device_name("dml:0")
    assert properties.total_memory > 0
    assert torch.dml.get_device_capability() >= (1, 2)
    assert torch.dml.is_bf16_supported()
    assert torch.float16 in torch.dml.get_amp_supported_dtype()


# ---- Bad input


@pytest.mark.smoke
def test_wrong_shapes_name_the_shapes():
    with pytest.raises(RuntimeError, match=r"(?s)(3.*4|4.*3)"):
        torch.ones(3, device="dml") + torch.ones(4, device="dml")
    with pytest.raises(RuntimeError, match=r"(?s)2.*3.*4.*5"):
        torch.ones(2, 3, device="dml") @ torch.ones(4, 5, device="dml")


def same_exception(function) -> None:
    """The device raises what the CPU raises."""
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
    # The device is none the worse for it.
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


@pytest.mark.skipif(torch.dml.get_device_properties(0).f64, reason="this adapter has float64")
def test_float64_where_there_is_none():
    with pytest.raises(Exception, match="float64"):
        torch.ones(2, device="dml", dtype=torch.float64) + 1
