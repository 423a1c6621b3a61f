"""The drop-in for Microsoft's torch-directml."""

from __future__ import annotations

import pytest
import torch
import torch_directml

pytestmark = pytest.mark.smoke


def test_devices():
    count = torch_directml.device_count()
    assert torch_directml.is_available() and count == torch.dml.device_count() > 0
    assert torch_directml.default_device() == 0
    assert repr(torch_directml.device()) == "device(type='dml', index=0)"
    assert torch_directml.device(count - 1) == torch.device("dml", count - 1)
    assert torch_directml.device(0) == torch_directml.device(torch_directml.default_device())


@pytest.mark.parametrize("wrong", [-1, 99])
def test_device_out_of_range(wrong: int):
    count = torch_directml.device_count()
    with pytest.raises(Exception) as error:
        torch_directml.device(wrong)
    expected = f"Invalid device_id argument supplied {wrong}. device_id must be in range [0, {count})."
    assert str(error.value) == expected
    assert type(error.value) is Exception


def test_names():
    for index in range(torch_directml.device_count()):
        assert torch_directml.device_name(index) == torch.dml.get_device_name(index) != ""
    assert torch_directml.device_name(-1) == ""
    assert torch_directml.device_name(torch_directml.device_count()) == ""


def test_float64():
    supported = torch_directml.has_float64_support(0)
    assert supported is torch_directml.has_float64_support()
    assert supported == torch.dml.get_device_properties(0).f64
    with pytest.raises(Exception, match="Invalid device_id"):
        torch_directml.has_float64_support(99)


def test_memory():
    total = torch.dml.get_device_properties(0).total_memory
    tiles = torch_directml.gpu_memory(0)
    assert len(tiles) == -(-total // 2**20)
    assert all(0.0 <= tile <= 1.0 for tile in tiles)
    before = sum(tiles)
    kept = torch.empty(8 << 20, dtype=torch.uint8, device=torch_directml.device())
    assert sum(torch_directml.gpu_memory()) == pytest.approx(before + 8, abs=0.1)
    assert sum(torch_directml.gpu_memory(mb_per_tile=4)) * 4 == pytest.approx(before + 8, abs=0.1)
    del kept
    with pytest.raises(ValueError):
        torch_directml.gpu_memory(0, 0)


def test_tiled_resources():
    assert torch_directml.disable_tiled_resources(True) is None


def test_a_script_written_for_directml():
    device = torch_directml.device()
    model = torch.nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.rand(8, 3).to(device), torch.rand(8, 1, device=device)
    first = None
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        first = first or loss.item()
    assert loss.item() < first
    assert x.device.type == "dml" and x.cpu().device.type == "cpu"


@pytest.mark.parametrize("name", ["privateuseone", "privateuseone:0"])
def test_pytorchs_name_of_its_device(name: str):
    assert torch.device(name) == torch.device(name.replace("privateuseone", "dml"))
    assert torch.ones(2).to(name).device == torch_directml.device()
    with torch.autocast("privateuseone", dtype=torch.float16):
        assert (torch.ones(2, 2, device=name) @ torch.ones(2, 2, device=name)).dtype == torch.float16


def test_what_scripts_worked_around():
    device = torch_directml.device()
    with torch.inference_mode():
        assert torch.nn.Linear(2, 2).to(device)(torch.ones(1, 2, device=device)).shape == (1, 2)
    drawn = [torch.randn(3, device=device, generator=torch.Generator(device).manual_seed(1)) for _ in range(2)]
    assert torch.equal(*drawn)
    model = torch.nn.LSTM(3, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    model(torch.ones(2, 1, 3, device=device))[0].sum().backward()
    optimizer.step()
    assert torch.ones(2).pin_memory().to(device, non_blocking=True).is_dml
