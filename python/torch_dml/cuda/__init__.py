"""CUDA's place: `import torch_dml.cuda`, before anything uses a device, lets code written for CUDA
run unchanged.

The GPUs are then "cuda:0", "cuda:1" and so on, for PyTorch itself and for every library: tensors
are `is_cuda`, and `torch.cuda` speaks of them. Nothing of CUDA's own is reached.
`python -m torch_dml run SCRIPT` does the same for a script that does not import this, and
TORCH_DML_AS_CUDA=1 for a whole process tree. docs/guide/from-cuda.md has the rest.

Importing it raises ImportError where a CUDA device is usable (TORCH_DML_AS_CUDA=force takes its
place all the same), and where the device is "dml" in this process already.
"""

from __future__ import annotations

from torch_dml import backend, loader

__all__ = ["is_active"]

if not backend.AS_CUDA:
    raise ImportError(
        'the device is "dml" in this process already: `import torch_dml.cuda` must come before `import torch` and '
        "`import torch_dml`, or run the program with `python -m torch_dml run` or TORCH_DML_AS_CUDA=1"
    )


def is_active() -> bool:
    """Return whether the device stands in CUDA's place in this process."""
    return loader.is_loaded()
