"""`make`: the one way to a simulator."""

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
    """A simulator of `envs` arms.

    Args:
        sim: `"batched"`, in torch on `device`, or `"mujoco"`, on the CPU's cores.
        envs: how many arms.
        device: of the batched simulator.
        seed: of first poses and targets, from 0 on.
        as_torch: a device on which tensors go in and come out, whichever simulator it is. If None, MuJoCo's are arrays.
        task: what the arms are to do.
        threads: of MuJoCo; as many as this process may use processors if None.

    Raises:
        SettingsError: for an unknown simulator, an argument out of range, or tensors on another device than the arms.
        DeviceError: if the device is not there.
        MissingDependencyError: if MuJoCo is asked for and not installed.
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
