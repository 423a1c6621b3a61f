"""Where backward passes run: in the thread that calls `backward`, as those of CPU tensors do."""

from __future__ import annotations

import torch

from torch_dml import environment
from torch_dml.backend import AS_CUDA


def run_in_calling_thread() -> None:
    """Have backward passes of the current thread run in it, from now on.

    PyTorch has a thread for the backward passes of each device of an accelerator, so that several
    devices get work at once. Going to that thread and back costs a small model a quarter of its
    step, and gains dml nothing: operators only enqueue. Where several CUDA devices are usable, or
    with TORCH_DML_AUTOGRAD_THREADS=1, things stay as they are;
    `torch.autograd.set_multithreading_enabled` decides for a thread at any time.
    """
    # In CUDA's place there is no other, and counting would start the driver.
    alone = AS_CUDA or torch.cuda.device_count() <= 1
    if alone and environment.get("TORCH_DML_AUTOGRAD_THREADS") != "1":
        torch.autograd.set_multithreading_enabled(False)
