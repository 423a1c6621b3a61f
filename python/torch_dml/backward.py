"""The thread of backward passes: the one that calls `backward`, as for CPU tensors."""

from __future__ import annotations

import torch

from torch_dml import environment
from torch_dml.backend import AS_CUDA


def run_in_calling_thread() -> None:
    """Let backward passes of the current thread run in it, from now on.

    PyTorch has one thread for the backward passes of each device of an accelerator, so that several
    devices get work in parallel. Switching to that thread and back costs a small model a quarter of
    its step, and is of no use to dml, whose operators only enqueue. Where several CUDA devices are
    usable, or with TORCH_DML_AUTOGRAD_THREADS=1, nothing changes;
    `torch.autograd.set_multithreading_enabled` decides for a thread at any time.
    """
    # In place of CUDA there are no CUDA devices, and counting them would start the driver.
    alone = AS_CUDA or torch.cuda.device_count() <= 1
    if alone and environment.get("TORCH_DML_AUTOGRAD_THREADS") != "1":
        torch.autograd.set_multithreading_enabled(False)
