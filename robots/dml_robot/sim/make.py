"""`make`: creates a simulator."""

from __future__ import annotations

import torch

from .. import checks
from ..errors import MissingDependencyError, SettingsError
from ..task import ReachTask
from .arms import Arms
from .batched import BatchedArms

SIMULATORS = ("batched", "mujoco")


def make(
    sim: str,
    envs: int,
    device: torch.device | str = "cpu",
    seed: int = 0,
    *,
    as_torch: torch.device | str | None = None,
    task: ReachTask | None = None,
    threads: int | None = None,
) -> Arms:
    """Return a simulator of `envs` arms.

    Args:
        sim: `"batched"`, in torch on `device`, or `"mujoco"`, on the CPU's cores.
        envs: number of arms.
        device: of the batched simulator.
        seed: of first poses and targets, at least 0.
        as_torch: a device for input and output tensors of either simulator. If None, MuJoCo's are
            arrays.
        task: the arms' task.
        threads: of MuJoCo; if None, the number of processors that this process may use.

    Raises:
        SettingsError: for an unknown simulator, an argument out of range, or tensors on another
            device than the arms.
        DeviceError: if the device is missing.
        MissingDependencyError: if MuJoCo is requested and not installed.
    """
    if sim not in SIMULATORS:
        raise SettingsError(f"no simulator is called {sim!r}; there are {' and '.join(SIMULATORS)}")
    envs, seed = checks.whole("arms", envs, 1), checks.whole("the seed", seed, 0, checks.MAX_SEED)
    threads = None if threads is None else checks.whole("threads", threads, 1)
    task = task or ReachTask()
    if sim == "batched":
        arms = BatchedArms(envs, checks.device(device), seed, task)
        if as_torch is not None and checks.device(as_torch).type != arms.device.type:
            raise SettingsError(f"the batched simulator is on {arms.device}; its tensors cannot be on {as_torch}")
        return arms
    try:
        from .mujoco import MujocoArms
    except ModuleNotFoundError as error:
        raise MissingDependencyError("MuJoCo is not installed: pip install mujoco") from error
    from .as_torch import AsTorch

    simulated = MujocoArms(envs, seed, task, threads)
    return simulated if as_torch is None else AsTorch(simulated, checks.device(as_torch))
