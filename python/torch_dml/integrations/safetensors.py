"""safetensors: files are opened and loaded with `device="dml"`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from torch_dml.backend import DEVICE
from torch_dml.integrations.patching import put, when_imported

TESTED = ("0.5", "1")


def apply(module: ModuleType) -> None:
    """Let `safe_open`, and with it `load_file` and `load_model`, accept the device."""
    original = module.safe_open

    class safe_open:
        """safetensors' own, except for this device: it reads on the CPU, and copies each tensor
        when it is requested.
        """

        def __new__(cls, filename: Any, framework: str, device: Any = "cpu", **options: Any) -> Any:
            if str(device).partition(":")[0] != DEVICE:
                return original(filename, framework, device, **options)
            return _FileOnDevice(original(filename, framework, "cpu", **options), torch.device(device))

    put(module, "safe_open", safe_open)
    when_imported("safetensors.torch", lambda torch_module: put(torch_module, "safe_open", safe_open))


class _OnDevice:
    """A handle of safetensors; other attributes are those of the original handle."""

    def __init__(self, handle: Any, device: torch.device) -> None:
        self._handle, self._device = handle, device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)


class _FileOnDevice(_OnDevice):
    def __enter__(self) -> _FileOnDevice:
        self._handle.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._handle.__exit__(*error)

    def get_tensor(self, name: str) -> torch.Tensor:
        """Return a tensor of the file."""
        tensor: torch.Tensor = self._handle.get_tensor(name)
        return tensor.to(self._device)

    def get_tensors(self) -> dict[str, torch.Tensor]:
        """Return all tensors of the file."""
        return {name: self.get_tensor(name) for name in self._handle.keys()}  # noqa: SIM118

    def get_slice(self, name: str) -> _SliceOnDevice:
        """Return a tensor of the file that is read when it is indexed."""
        return _SliceOnDevice(self._handle.get_slice(name), self._device)


class _SliceOnDevice(_OnDevice):
    def __getitem__(self, index: Any) -> torch.Tensor:
        tensor: torch.Tensor = self._handle[index]
        return tensor.to(self._device)
