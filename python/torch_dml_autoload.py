"""The entry point that `import torch` calls: makes the device "dml" available without a second
import.

A process has one accelerator for `torch.accelerator`. If torch can use an accelerator of its own,
nothing changes; `import torch_dml`, or TORCH_DML_AUTOLOAD=1, loads the device in that case too.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from types import ModuleType


def autoload() -> None:
    """Load torch_dml unless that would interfere with another accelerator; fail only if the device
    is to replace CUDA and cannot.
    """
    if (place := _setting("TORCH_DML_AS_CUDA")) in {"1", "force"}:
        return take_cudas_place(place == "force")
    if "torch_dml.backend" in sys.modules:
        return  # `import torch_dml` imported torch, and continues after it
    try:
        wish = _setting("TORCH_DML_AUTOLOAD")
        if wish in {"0", "false", "no", "off"}:
            return
        torch = sys.modules["torch"]
        if wish not in {"1", "true", "yes", "on"} and has_own_accelerator(torch):
            return
        import torch_dml  # noqa: F401
    except Exception as error:
        warnings.warn(
            f'torch-dml did not load, the device "dml" is not available: {error} '
            "(`python -m torch_dml doctor` tells more; TORCH_DML_AUTOLOAD=0 silences this)",
            RuntimeWarning,
            stacklevel=2,
        )


def _setting(name: str) -> str:
    """Return a variable's value, as torch_dml.environment does: torch_dml may not be imported
    yet.
    """
    return os.environ.get(name, "").strip().lower()


def take_cudas_place(force: bool) -> None:
    """Load torch_dml as CUDA. A GPU that torch can use itself is not replaced, with a warning,
    unless `force`.
    """
    if not force and has_own_accelerator(sys.modules["torch"]):
        warnings.warn(
            "TORCH_DML_AS_CUDA=1 is ignored: PyTorch can use a GPU of its own in this process "
            "(TORCH_DML_AS_CUDA=force takes its place all the same)",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    import torch_dml

    torch_dml.load()


def has_own_accelerator(torch: ModuleType) -> bool:
    """Return whether this torch has a GPU of its own to run on, or another PrivateUse1 backend.

    It neither initialises CUDA, which would break processes that are forked later, nor takes more
    than a few milliseconds.
    """
    if torch._C._get_privateuse1_backend_name() not in {"privateuseone", "dml"}:
        return True
    if torch.version.cuda is not None:
        return nvidia_gpus() > 0
    if torch.version.hip is not None:
        return os.path.exists("/dev/kfd") or sys.platform == "win32"
    if getattr(torch.version, "xpu", None) is not None:
        return bool(torch.xpu.is_available())
    return False


def nvidia_gpus() -> int:
    """Return how many GPUs NVIDIA's driver has for this process, 0 if there is no driver."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and (not visible.strip() or visible.strip().startswith("-1")):
        return 0
    try:
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0:
            return 0
        count = ctypes.c_uint(0)
        failed = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        nvml.nvmlShutdown()
    except (OSError, AttributeError):
        return 0
    return 0 if failed else count.value
