"""DLPack: exchange of tensors with other libraries."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

from tests.support.memory import allocated


def test_the_device_is_named():
    assert torch.ones(2, device="dml").__dlpack_device__() == (DLDeviceType.kDLExtDev, 0)
    assert torch.ones(2, device="dml:1").__dlpack_device__() == (DLDeviceType.kDLExtDev, 1)
    assert torch.ones(2).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    assert torch.nn.Parameter(torch.ones(2, device="dml")).__dlpack_device__()[0] == DLDeviceType.kDLExtDev


@pytest.mark.parametrize("device", ["dml:0", "dml:1"])
def test_between_tensors_of_the_device(device):
    x = torch.arange(12.0, device=device).view(3, 4).t()
    for y in (torch.from_dlpack(x), from_dlpack(to_dlpack(x)), from_dlpack(x)):
        assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    y[0, 0] = 9
    assert x[0, 0].item() == 9
    copied = torch.from_dlpack(x, copy=True)
    assert copied.device == x.device and copied.data_ptr() != x.data_ptr()


def test_to_the_cpu_and_back():
    x = torch.arange(4.0, device="dml")
    host = torch.from_dlpack(x, device="cpu")
    assert host.device.type == "cpu" and host.tolist() == [0, 1, 2, 3]
    assert numpy.from_dlpack(x.cpu()).tolist() == [0, 1, 2, 3]
    array = numpy.arange(4, dtype=numpy.float32)
    back = torch.from_dlpack(array, device="dml")
    assert back.is_dml and back.tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(array).dml().is_dml


def test_numpy_does_not_know_the_device():
    with pytest.raises((RuntimeError, BufferError, ValueError)):
        numpy.from_dlpack(torch.ones(2, device="dml"))


def test_what_dlpack_cannot_say():
    with pytest.raises(BufferError, match="gradient"):
        torch.from_dlpack(torch.ones(2, device="dml", requires_grad=True))
    with pytest.raises(BufferError, match="conjugate"):
        torch.from_dlpack(torch.ones(2, dtype=torch.complex64).to("dml").conj())


def test_the_exporter_keeps_the_memory():
    before = allocated()
    y = torch.from_dlpack(torch.arange(300.0, device="dml"))
    torch.ones(300, device="dml").add_(1)
    assert y[299].item() == 299
    del y
    assert torch.dml.memory_allocated() == before
