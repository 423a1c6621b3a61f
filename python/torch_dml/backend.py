"""The PyTorch device type of the GPUs in this process: "dml", or "cuda", in place of CUDA.

It is decided when torch_dml is first imported: by TORCH_DML_AS_CUDA (1, or `force` where CUDA
itself is usable), which `python -m torch_dml run` sets, or by `import torch_dml.cuda`.
"""

from __future__ import annotations

import sys

from torch_dml import environment


def _imported_for_cuda() -> bool:
    # `import torch_dml.cuda` imports torch_dml first. It is recognised by its frame, which is
    # further up on the stack.
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load" and frame.f_locals.get("name") == "torch_dml.cuda":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


_wish = environment.get("TORCH_DML_AS_CUDA")

FORCED: bool = _wish == "force"
AS_CUDA: bool = FORCED or _wish == "1" or (_wish is None and _imported_for_cuda())
DEVICE: str = "cuda" if AS_CUDA else "dml"
# c10::DeviceType
DEVICE_TYPE: int = 1 if AS_CUDA else 20
