"""Random numbers: the default generators of the devices."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torch_dml import engine
from torch_dml.backend import DEVICE
from torch_dml.device import DeviceLike, device_count, index_of

# A state is the seed and offset of Philox, as for CUDA.
_STATE = struct.Struct("<QQ")
_MASK = 2**64 - 1


def manual_seed(seed: int) -> None:
    """Seed the current device's generator. Does nothing if there is no device."""
    if device_count() > 0:
        engine.call("dml_generator_seed", 0, index_of(None), int(seed) & _MASK)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices. No device is started: one that is not in use yet starts
    with this seed.
    """
    engine.library().dml_generator_seed_all(int(seed) & _MASK)


def seed() -> int:
    """Seed the current device's generator with a random number and return it."""
    drawn = secrets.randbits(63)
    manual_seed(drawn)
    return drawn


def seed_all() -> int:
    """Seed the generators of all devices with one random number and return it."""
    drawn = secrets.randbits(63)
    manual_seed_all(drawn)
    return drawn


def initial_seed(device: DeviceLike = None) -> int:
    """Return the seed of a device's generator."""
    return engine.generator_state(index_of(device))[0]


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    """Return the state of a device's generator as 16 bytes on the CPU."""
    state = _STATE.pack(*engine.generator_state(index_of(device)))
    return torch.tensor(list(state), dtype=torch.uint8, device="cpu")


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    """Set the state of a device's generator to one that `get_rng_state` returned."""
    if new_state.dtype != torch.uint8 or new_state.device.type != "cpu":
        raise TypeError("expected a torch.ByteTensor on the CPU")
    if new_state.numel() != _STATE.size:
        raise RuntimeError(f"the state of a generator is {_STATE.size} bytes, but got {new_state.numel()}")
    seed, offset = _STATE.unpack(bytes(new_state.tolist()))
    engine.call("dml_generator_set", 0, index_of(device), seed, offset)


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Set the states of all devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


class DefaultGenerator:
    """A device's default generator, with the methods of torch.Generator.

    torch before 2.15 does not expose the object itself. Where a `generator=` argument is meant to
    be the default one, leave it out.
    """

    def __init__(self, index: int) -> None:
        """`index` is the device's index."""
        self._index = index

    @property
    def device(self) -> torch.device:
        """The generator's device."""
        return torch.device(DEVICE, self._index)

    def manual_seed(self, seed: int) -> DefaultGenerator:
        """Seed the generator and return it."""
        engine.call("dml_generator_seed", 0, self._index, int(seed) & _MASK)
        return self

    def seed(self) -> int:
        """Seed the generator with a random number and return that number."""
        drawn = secrets.randbits(63)
        self.manual_seed(drawn)
        return drawn

    def initial_seed(self) -> int:
        """Return its seed."""
        return initial_seed(self._index)

    def get_state(self) -> torch.Tensor:
        """Return its state as 16 bytes on the CPU."""
        return get_rng_state(self._index)

    def set_state(self, state: torch.Tensor) -> None:
        """Set its state to one that `get_state` returned."""
        set_rng_state(state, self._index)


class _DefaultGenerators(Sequence[Any]):
    """One generator for each device, created on access: importing torch must not start a driver."""

    def __len__(self) -> int:
        return device_count()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"no device {DEVICE}:{index}: there are {count}")
        index %= count
        native = getattr(torch._C, "_accelerator_getDefaultGenerator", None)
        return native(index) if native is not None else DefaultGenerator(index)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))


default_generators = _DefaultGenerators()
