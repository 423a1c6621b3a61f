"""Shared by the examples: devices by name, their readable names, memory, and operators that fell
back to the CPU.
"""

from __future__ import annotations

import argparse
import sys

import torch


def choose(name: str) -> torch.device:
    """Return a device by its name, "auto" for the one that PyTorch finds; raises argparse's
    error.
    """
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        if name.partition(":")[0] == "dml":
            import torch_dml  # noqa: F401  # registers "dml" next to CUDA; otherwise `import torch` has done so
        device = torch.device(name)
        torch.empty(0, device=device)
    except (ImportError, RuntimeError, AssertionError) as error:  # PyTorch without CUDA raises AssertionError
        raise argparse.ArgumentTypeError(f"no device {name} here: {str(error).splitlines()[0]}") from error
    return device


def describe(device: torch.device) -> str:
    """Return a readable name of the device."""
    if device.type == "cpu":
        return f"{torch.get_num_threads()} threads"
    return str(torch.get_device_module(device).get_device_name(device))


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished its work; does nothing for the CPU."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def peak_memory(device: torch.device) -> int | None:
    """Return the peak of tensors' bytes since the last `reset_peak_memory`; None on the CPU."""
    return None if device.type == "cpu" else int(torch.get_device_module(device).max_memory_allocated(device))


def reset_peak_memory(device: torch.device) -> None:
    """Reset the peak to the memory in use now."""
    if device.type != "cpu":
        torch.get_device_module(device).reset_peak_memory_stats(device)


def no_fallbacks(device: torch.device) -> bool:
    """Print how many operators ran on the CPU because they have no kernel; return whether none
    did.
    """
    if device.type != "dml":
        return True
    import torch_dml

    found = torch_dml.fallbacks()
    print(f"fallbacks to the CPU: {sum(found.values())}")
    for name, count in found.items():
        print(f"  {name}: {count}", file=sys.stderr)
    return not found
