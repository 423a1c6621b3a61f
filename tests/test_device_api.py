"""The module torch.dml, and what bad input raises."""

from __future__ import annotations

import copy

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


@pytest.mark.smoke
def test_random_state():
    torch.manual_seed(7)
    assert torch.dml.initial_seed() == 7
    first = torch.rand(5, device="dml")
    state = torch.dml.get_rng_state()
    second = torch.rand(5, device="dml")
    torch.dml.set_rng_state(state)
    assert same(torch.rand(5, device="dml"), second)
    torch.dml.manual_seed(7)
    assert same(torch.rand(5, device="dml"), first)
    torch.dml.manual_seed_all(7)
    assert same(torch.rand(5, device="dml"), first)
    with torch.random.fork_rng(devices=[0], device_type="dml"):
        torch.dml.manual_seed(1)
        torch.rand(5, device="dml")
    assert same(torch.rand(5, device="dml"), second)
    assert torch.dml.seed() == torch.dml.initial_seed()
    assert torch.dml.seed_all() == torch.dml.initial_seed()


def test_random_state_refuses_nonsense():
    with pytest.raises(TypeError):
        torch.dml.set_rng_state(torch.zeros(16))
    with pytest.raises(RuntimeError, match="16"):
        torch.dml.set_rng_state(torch.zeros(5, dtype=torch.uint8))


def test_default_generators():
    generators = torch.dml.default_generators
    assert len(generators) == torch.dml.device_count()
    generators[0].manual_seed(3)
    assert torch.dml.initial_seed(0) == generators[0].initial_seed() == 3
    state = generators[0].get_state()
    a = torch.rand(3, device="dml")
    generators[-1].set_state(state)
    assert len(generators) > 1 or same(torch.rand(3, device="dml"), a)
    with pytest.raises(IndexError):
        generators[99]


def test_generators_of_ones_own():
    mine = torch.Generator("dml").manual_seed(5)
    torch.manual_seed(1)
    expected = torch.rand(3, device="dml")
    torch.manual_seed(1)
    numbers = torch.rand(3, device="dml", generator=mine)
    assert same(torch.rand(3, device="dml"), expected)
    mine.manual_seed(5)
    assert same(torch.rand(3, device="dml", generator=mine), numbers)


@pytest.mark.smoke
def test_memory_figures():
    mib = 1 << 20
    torch.dml.empty_cache()
    before = torch.dml.memory_allocated()
    torch.dml.reset_peak_memory_stats()
    kept = torch.empty(4 * mib, dtype=torch.uint8, device="dml")
    assert torch.dml.memory_allocated() == before + 4 * mib
    assert torch.dml.memory_reserved() >= torch.dml.memory_allocated()
    del kept
    assert torch.dml.memory_allocated() == before
    assert torch.dml.max_memory_allocated() >= before + 4 * mib
    free, total = torch.dml.mem_get_info()
    assert 0 < free <= total
    stats = torch.dml.memory_stats()
    assert stats["allocated_bytes.all.current"] == before
    assert torch.accelerator.memory_allocated() == before
    assert "Allocated" in torch.dml.memory_summary()
    with pytest.raises(ValueError):
        torch.dml.set_per_process_memory_fraction(2.0)


@pytest.mark.smoke
def test_streams_and_events():
    stream = torch.dml.current_stream()
    assert stream.device == torch.device("dml", 0)
    start, end = torch.dml.Event(enable_timing=True), torch.dml.Event(enable_timing=True)
    start.record()
    x = torch.ones(1000, device="dml")
    for _ in range(10):
        x = x + 1
    end.record()
    end.synchronize()
    assert end.query()
    assert isinstance(end, torch.dml.Event) and not isinstance(torch.dml.Stream(), torch.dml.Event)
    assert start.elapsed_time(end) >= 0
    with torch.dml.stream(torch.dml.Stream()), torch.dml.stream(None):
        y = x + 1
    torch.dml.synchronize()
    torch.dml.synchronize("dml:0")
    assert torch.dml.default_stream().query()
    assert y[0].item() == 12


def test_deepcopy_and_state_dict():
    model = torch.nn.Linear(3, 2).to("dml")
    twin = copy.deepcopy(model)
    assert twin.weight.is_dml and same(twin.weight, model.weight)
    assert twin.weight.data_ptr() != model.weight.data_ptr()
    host = torch.nn.Linear(3, 2)
    host.load_state_dict(model.state_dict())
    assert same(host.weight, model.weight.cpu())


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


@pytest.mark.smoke
def test_out_of_memory():
    _, total = torch.dml.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(1 << 46, dtype=torch.uint8, device="dml")
    assert "GiB" in str(error.value) or "TiB" in str(error.value)
    # A share of the memory, because a software adapter has all that the system can promise.
    torch.dml.set_per_process_memory_fraction(0.25)
    try:
        kept = []
        with pytest.raises(torch.OutOfMemoryError):
            for _ in range(16):
                kept.append(torch.empty(total // 16, dtype=torch.uint8, device="dml"))
        assert len(kept) <= 4
        kept.clear()
        assert torch.ones(1000, device="dml").sum().item() == 1000
        assert torch.empty(total // 16, dtype=torch.uint8, device="dml").is_dml
    finally:
        torch.dml.set_per_process_memory_fraction(1.0)
