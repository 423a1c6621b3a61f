"""ultralytics: `device="dml"`, `device=0` and the device by default; training in mixed precision
with its gradient scaler.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch_dml.integrations.patching import take_cuda_branch, when_imported

TESTED = ("8.4.190", "9")


def apply(module: ModuleType) -> None:
    """Let ultralytics find the device on a machine without CUDA. Its modules are imported when they
    are used.
    """
    when_imported("ultralytics.utils.torch_utils", _torch_utils)
    when_imported("ultralytics.utils.checks", _checks)
    when_imported("ultralytics.utils.ops", _ops)
    when_imported("ultralytics.engine.trainer", _trainer)


def _torch_utils(module: Any) -> None:
    for function in (module.parse_device, module.select_device, module.get_gpu_info, module.autocast):
        take_cuda_branch(function)


def _checks(module: Any) -> None:
    take_cuda_branch(module.check_amp)


def _ops(module: Any) -> None:
    take_cuda_branch(module.Profile.__init__)  # times end when the device has finished


def _trainer(module: Any) -> None:
    take_cuda_branch(module.BaseTrainer._setup_train)
    take_cuda_branch(module.BaseTrainer.build_optimizer)
