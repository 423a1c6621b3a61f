"""The device in place of CUDA: `import torch_dml.cuda`, before anything uses a device, lets code
written for CUDA run unchanged.

The GPUs are then "cuda:0", "cuda:1" and so on, for PyTorch itself and for every library: tensors
are `is_cuda`, and `torch.cuda` is about them. Nothing of CUDA itself is used.
`python -m torch_dml run SCRIPT` does the same for a script that does not import this, and
TORCH_DML_AS_CUDA=1 for a whole process tree. docs/guide/from-cuda.md has the details.

Importing it raises ImportError if a CUDA device is usable (TORCH_DML_AS_CUDA=force replaces it
nevertheless), and if the device is already "dml" in this process.
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
    """Return whether the device is in place of CUDA in this process."""
    return loader.is_loaded()
