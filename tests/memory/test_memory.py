"""Memory: consistent statistics, limits, and running out of memory."""

from __future__ import annotations

import pytest
import torch

from tests.support.memory import allocated
from tests.support.names import words

MIB = 1 << 20


@pytest.mark.smoke
def test_memory_figures():
    mib = 1 << 20
    before = allocated()
    torch.dml.empty_cache()
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


def test_free_memory_is_without_what_is_held() -> None:
    """Also if the driver does not report free memory."""
    kept = torch.empty(32 << 20, dtype=torch.uint8, device="dml")
    free, total = torch.dml.mem_get_info()
    assert free + torch.dml.memory_reserved() <= total and torch.dml.memory_reserved() >= kept.nbytes


def check_sums() -> dict[str, int]:
    """The pools add up to the total, and the snapshot to the statistics."""
    stats = torch.dml.memory_stats()
    for key in (
        "allocation",
        "active",
        "segment",
        "allocated_bytes",
        "active_bytes",
        "reserved_bytes",
        "requested_bytes",
    ):
        for part in ("current", "allocated", "freed"):
            pools = stats[f"{key}.small_pool.{part}"] + stats[f"{key}.large_pool.{part}"]
            assert stats[f"{key}.all.{part}"] == pools, (key, part)
        for pool in ("all", "small_pool", "large_pool"):
            assert stats[f"{key}.{pool}.peak"] >= stats[f"{key}.{pool}.current"] >= 0
    for pool in ("all", "small_pool", "large_pool"):
        idle = stats[f"inactive_split_bytes.{pool}.current"]
        held = stats[f"reserved_bytes.{pool}.current"] - stats[f"allocated_bytes.{pool}.current"]
        assert 0 <= idle <= held
    assert stats["requested_bytes.all.current"] <= stats["allocated_bytes.all.current"]
    snapshot = torch.dml.memory_snapshot()
    assert sum(s["total_size"] for s in snapshot) == stats["reserved_bytes.all.current"]
    assert sum(s["allocated_size"] for s in snapshot) == stats["allocated_bytes.all.current"]
    assert sum(s["requested_size"] for s in snapshot) == stats["requested_bytes.all.current"]
    for segment in snapshot:
        address = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == address
            address += block["size"]
        assert address == segment["address"] + segment["total_size"]
    return stats


def test_figures_add_up():
    kept = []
    for step in range(200):
        kept.append(torch.empty((step * 7919) % (3 * MIB) + 1, dtype=torch.uint8, device="dml"))
        if step % 3 == 2:
            del kept[step % len(kept)]
        if step % 50 == 49:
            check_sums()
    torch.dml.synchronize()
    before = check_sums()["allocated_bytes.all.current"]
    kept.clear()
    assert check_sums()["allocated_bytes.all.current"] < before


def test_keys_are_those_of_cuda():
    stats = torch.dml.memory_stats()
    pools = [
        f"{pool}.{part}"
        for pool in ("all", "large_pool", "small_pool")
        for part in ("current", "peak", "allocated", "freed")
    ]
    for name in words(
        "allocated_bytes active active_bytes allocation inactive_split inactive_split_bytes requested_bytes"
        " reserved_bytes segment"
    ):
        assert all(f"{name}.{pool}" in stats for pool in pools)
    assert {"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "max_split_size"} <= stats.keys()
    nested = torch.dml.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == stats["allocated_bytes.all.current"]


def test_counters_reset():
    torch.ones(1000, device="dml")
    torch.dml.reset_accumulated_memory_stats()
    torch.dml.reset_peak_memory_stats()
    stats = torch.dml.memory_stats()
    assert stats["allocation.all.allocated"] == stats["allocated_bytes.all.freed"] == stats["num_ooms"] == 0
    assert torch.dml.max_memory_allocated() == torch.dml.memory_allocated()
    assert torch.dml.max_memory_reserved() == torch.dml.memory_reserved()


def test_empty_cache():
    x = torch.empty(40 * MIB, dtype=torch.uint8, device="dml")
    reserved = torch.dml.memory_reserved()
    del x
    assert torch.dml.memory_reserved() == reserved
    torch.dml.empty_cache()
    assert torch.dml.memory_reserved() <= reserved - 40 * MIB
    used = torch.dml.device_memory_used()
    assert 0 <= used <= torch.dml.mem_get_info()[1]


def test_summary():
    text = torch.dml.memory_summary()
    for word in ("Allocated", "Active", "Reserved", "Requested", "Out of memory", "peak"):
        assert word in text
    assert len(torch.dml.memory_summary(abbreviated=True)) < len(text)


def test_training_leaves_nothing_behind():
    """Create a model, train it for a step, and drop it, 1,000 times."""

    def cycle() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).to("dml")
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(4, 8, device="dml")).square().mean().backward()
        optimizer.step()

    for _ in range(10):
        cycle()
    settled, reserved = allocated(), torch.dml.memory_reserved()
    for _ in range(1000):
        cycle()
    assert allocated() == settled
    assert torch.dml.memory_reserved() == reserved


def test_memory_is_reused():
    """Freed memory is reused before the device has finished with it."""
    torch.dml.synchronize()
    torch.dml.empty_cache()
    x = torch.ones(4 * MIB, device="dml")
    for _ in range(50):
        x = x + 1
    assert x.eq(51).all().item()
    assert torch.dml.memory_reserved() < 120 * MIB


@pytest.mark.smoke
def test_out_of_memory():
    _, total = torch.dml.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(1 << 46, dtype=torch.uint8, device="dml")
    assert "GiB" in str(error.value) or "TiB" in str(error.value)
    # A part of the memory, since a software adapter reports all that the system can provide.
    part = min(total // 16, 2**30)  # Some drivers limit a single allocation to little more.
    torch.dml.set_per_process_memory_fraction(4 * part / total)
    try:
        kept = []
        with pytest.raises(torch.OutOfMemoryError):
            for _ in range(16):
                kept.append(torch.empty(part, dtype=torch.uint8, device="dml"))
        assert len(kept) <= 4
        kept.clear()
        assert torch.ones(1000, device="dml").sum().item() == 1000
        assert torch.empty(part, dtype=torch.uint8, device="dml").is_dml
    finally:
        torch.dml.set_per_process_memory_fraction(1.0)


def test_out_of_memory_says_what_and_how_much():
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(1 << 46, dtype=torch.uint8, device="dml")
    for part in ("Tried to allocate 65536.00 GiB", "Device 0", "total capacity", "is free", "in use by tensors"):
        assert part in str(error.value)
    ooms = torch.dml.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(1 << 44, device="dml")
    assert torch.dml.memory_stats()["num_ooms"] == ooms + 1


def test_training_goes_on_after_out_of_memory():
    weight = torch.ones(256, 256, device="dml", requires_grad=True)
    before = allocated()
    torch.dml.empty_cache()  # the limit is on memory from the driver

    def step(rows: int) -> None:
        (torch.ones(rows, 256, device="dml") @ weight).square().mean().backward()
        weight.grad = None

    torch.dml.set_per_process_memory_fraction(64 * MIB / torch.dml.mem_get_info()[1])
    try:
        step(64)
        with pytest.raises(torch.OutOfMemoryError, match="limits itself"):
            step(1 << 18)
        assert allocated() == before
        step(64)
        retries = torch.dml.memory_stats()["num_alloc_retries"]
        for rows in (1 << 14, 1 << 15, 3 << 13):  # memory cached for one size is released for another
            torch.empty(rows, 256, device="dml")
        assert torch.dml.memory_stats()["num_alloc_retries"] >= retries
    finally:
        torch.dml.set_per_process_memory_fraction(1.0)


def room_for(count: int) -> bool:
    """Whether there is memory for a tensor of `count` bytes, and for two of them with a reserve."""
    try:
        torch.empty(count, dtype=torch.uint8, device="dml")
    except torch.OutOfMemoryError:
        return False
    return torch.dml.mem_get_info()[0] > 3 * count


def test_what_is_too_large_for_the_driver_is_refused():
    """lavapipe allocates at most 2 GiB; the error says so and everything remains usable."""
    if room_for(5 << 30):
        pytest.skip("this adapter has room for more")
    with pytest.raises(torch.OutOfMemoryError, match="GiB"):
        torch.zeros(5 << 30, dtype=torch.uint8, device="dml")
    assert torch.ones(10, device="dml").sum().item() == 10


def test_more_than_four_gib():
    if not room_for(5 << 30):
        pytest.skip("this adapter has no room for 5 GiB")
    count = (4 << 30) // 4 + 1000  # elements of four bytes, more than 4 GiB
    x = torch.zeros(count, dtype=torch.int32, device="dml")
    x[-5:] = torch.arange(5, dtype=torch.int32, device="dml")
    x[7] = 9
    assert x[-5:].tolist() == [0, 1, 2, 3, 4] and x[7].item() == 9
    assert x.sum(dtype=torch.int64).item() == 19
    assert (x + 1)[-3:].tolist() == [3, 4, 5]
    host = x[-1000:].cpu()
    assert host[-1].item() == 4


def test_more_elements_than_32_bits_count():
    count = (1 << 31) + (1 << 30)
    if not room_for(count):
        pytest.skip("this adapter has no room for 3 GiB")
    x = torch.zeros(count, dtype=torch.int8, device="dml")
    x[-1], x[1 << 31] = 3, 2
    y = x + 1
    assert y[-1].item() == 4 and y[1 << 31].item() == 3 and y[(1 << 31) + 1].item() == 1
    assert x.sum(dtype=torch.int64).item() == 5
    assert x.view(3, 1 << 30)[2, -1].item() == 3 and x[1 << 31 :].clone()[0].item() == 2
