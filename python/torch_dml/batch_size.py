"""The largest batch that fits into a device's memory, found by experiment."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from torch_dml import device as devices
from torch_dml import memory
from torch_dml.backend import DEVICE
from torch_dml.device import DeviceLike


def auto_batch_size(
    step: Callable[[int], object],
    *,
    start: int = 1,
    maximum: int = 1 << 20,
    headroom: float = 0.05,
    device: DeviceLike = None,
) -> int:
    """Return the largest batch size, from `start` to `maximum`, with which `step(size)` fits into a
    device's memory.

    `step` has to do what will be done with each batch: for training forward, backward and the
    optimizer's step. It runs about 2 log2(result) times: the size is doubled until one does not
    fit, and then found by bisection. A size does not fit if it runs out of memory, or if it uses
    more than was free before minus `headroom` (a fraction of it), which drivers that move memory to
    the host would allow. The memory of each trial is released before the next.

    Raises torch.OutOfMemoryError if not even `start` fits, and anything else that `step` raises.
    """
    if not 1 <= start <= maximum:
        raise ValueError(f"expected 1 <= start <= maximum, but got start={start} and maximum={maximum}")
    if not 0 <= headroom < 1:
        raise ValueError(f"headroom is a fraction from 0 to 1, but got {headroom}")
    index = devices.index_of(device)
    _clean_up()
    free, _ = memory.mem_get_info(index)
    budget = (free + memory.memory_reserved(index)) * (1 - headroom)

    if not _fits(step, start, index, budget):
        raise torch.OutOfMemoryError(
            f"a batch of {start} does not fit into the {budget / 2**20:.0f} MiB that are free on {DEVICE}:{index}"
        )
    fits, too_large = start, maximum + 1
    while too_large - fits > 1:
        size = min(2 * fits, maximum) if too_large > maximum else (fits + too_large) // 2
        if _fits(step, size, index, budget):
            fits = size
        else:
            too_large = size
    return fits


def _fits(step: Callable[[int], object], size: int, index: int, budget: float) -> bool:
    memory.reset_peak_memory_stats(index)
    try:
        step(size)
        devices.synchronize(index)
        return memory.max_memory_reserved(index) <= budget
    except torch.OutOfMemoryError:
        return False
    finally:
        _clean_up()


def _clean_up() -> None:
    # An error's traceback references the tensors in its frames.
    gc.collect()
    memory.empty_cache()
