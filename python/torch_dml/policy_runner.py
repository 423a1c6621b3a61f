"""Inference for one observation at a time: the loop of a robot, a game or a server of requests."""

from __future__ import annotations

import copy
import queue
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from torch_dml.backend import DEVICE
from torch_dml.device import DeviceLike, index_of
from torch_dml.graphs import Graph, graph

# A graph is captured when observations of the same shapes came this often; this is the maximum
# number of shapes with buffers.
_CALLS_BEFORE_CAPTURE = 2
_KEPT_SHAPES = 16
# Results of up to this many bytes are read directly (docs/design/memory.md, "Reading a few bytes");
# larger ones through pinned memory.
_POLLED_BYTES = 500


class PolicyRunner:
    """Runs a module, or a policy of Stable-Baselines3, on observations from the host and returns
    results on the host.

    `runner(batch)` runs observations with a batch dimension, `runner.predict(observation)` one
    without, and `runner.submit(observation)` returns a future of it and runs the observations of
    several threads as one batch, padded to a power of two. An observation is an array or a tensor,
    or a tuple, list or dictionary of them; floats are converted to the dtype of the parameters.
    Results are tensors on the CPU if the observation's first part is a tensor, else NumPy arrays.

    The runner has a copy of the model in evaluation mode; `refresh()` copies the current weights
    again. Buffers are pinned and reused. Repeated shapes are captured as a graph, unless the model
    cannot be captured. If the device is lost, the runner warns and continues on the CPU, with a
    copy of the model that exists from the start.
    """

    def __init__(
        self,
        model: Any,
        device: DeviceLike = None,
        *,
        graphs: bool = True,
        deterministic: bool = True,
        max_batch: int = 64,
        max_wait: float = 0.001,
    ) -> None:
        """Copy a model (a module, or an algorithm or policy of Stable-Baselines3) to the device,
        the current one if None.

        `deterministic` is passed to policies of Stable-Baselines3. `submit` waits at most
        `max_wait` seconds for further observations, and runs up to `max_batch` of them at once.
        """
        if max_batch < 1 or max_wait < 0:
            raise ValueError(f"expected max_batch >= 1 and max_wait >= 0, but got {max_batch} and {max_wait}")
        module = model if isinstance(model, nn.Module) else getattr(model, "policy", None)
        if not isinstance(module, nn.Module):
            raise TypeError(
                f"expected a module, or an algorithm with a policy that is one, but got {type(model).__name__}"
            )
        self._model = module
        self._host = copy.deepcopy(module).cpu().eval()
        self.device = torch.device(DEVICE, index_of(device))
        """The device that the policy runs on: the CPU after the loss of the device."""
        self._module = copy.deepcopy(self._host).to(self.device)
        self._is_policy = hasattr(module, "obs_to_tensor") and hasattr(module, "_predict")
        self._graphs, self._deterministic = graphs, deterministic
        floats = (parameter.dtype for parameter in self._host.parameters() if parameter.is_floating_point())
        self._dtype = next(floats, None)
        self._shapes: OrderedDict[Any, _Shape] = OrderedDict()
        self._lock = threading.Lock()
        self._batcher = _Batcher(self, max_batch, max_wait)

    def __call__(self, observations: Any) -> Any:
        """Return the results of a batch; a policy of Stable-Baselines3 also accepts one
        observation, as its `predict` does.
        """
        if self._is_policy:
            tensors, batched = self._host.obs_to_tensor(observations)  # type: ignore[operator]
            actions = self._actions(self._run(tensors))
            return actions if batched else actions.squeeze(axis=0)
        return self._on_host(observations, self._run(observations))

    def predict(self, observation: Any) -> Any:
        """Return the result of one observation, which has no batch dimension."""
        if self._is_policy:
            return self(observation)
        batch = pytree.tree_map(lambda leaf: _tensor(leaf)[None], observation)
        return self._on_host(observation, pytree.tree_map(lambda leaf: _row(leaf, 0), self._run(batch)))

    def submit(self, observation: Any) -> Future[Any]:
        """Return a future of the result of one observation, which is run together with those of
        other threads.
        """
        return self._batcher.submit(observation)

    def refresh(self) -> None:
        """Copy the model's current weights."""
        state = self._model.state_dict()
        with self._lock:
            self._host.load_state_dict(state)
            if self._module is not self._host:
                self._module.load_state_dict(state)

    def close(self) -> None:
        """Finish submitted observations, and release the buffers and graphs."""
        self._batcher.close()
        with self._lock:
            self._shapes.clear()

    def __enter__(self) -> PolicyRunner:
        """Return the runner, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the runner."""
        self.close()

    def _run(self, observations: Any) -> Any:
        """Run a batch on the device, or on the CPU if the device was lost; the results are new
        tensors on the CPU.
        """
        leaves, structure = pytree.tree_flatten(observations)
        tensors = [self._cast(_tensor(leaf)) for leaf in leaves]
        with self._lock, torch.no_grad():
            if self._module is not self._host:
                try:
                    return self._shape(tensors, structure).run(tensors)
                except RuntimeError as error:
                    if not _is_loss(error):
                        raise
                    self._go_to_the_cpu(error)
            found = self._forward(pytree.tree_unflatten([tensor.clone() for tensor in tensors], structure))
            return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, found)

    def _shape(self, tensors: list[Tensor], structure: Any) -> _Shape:
        key = (str(structure), tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors))
        shape = self._shapes.pop(key, None) or _Shape(self._forward, tensors, structure, self.device, self._graphs)
        self._shapes[key] = shape
        if len(self._shapes) > _KEPT_SHAPES:
            self._shapes.popitem(last=False)
        return shape

    def _forward(self, observations: Any) -> Any:
        if self._is_policy:
            return self._module._predict(observations, deterministic=self._deterministic)  # type: ignore[operator]
        return self._module(observations)

    def _cast(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._dtype) if self._dtype is not None and tensor.is_floating_point() else tensor

    def _go_to_the_cpu(self, error: RuntimeError) -> None:
        text = f"PolicyRunner goes on on the CPU, since {self.device} fails: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        self.device, self._module = torch.device("cpu"), self._host
        self._shapes.clear()

    def _actions(self, actions: Tensor) -> Any:
        """Convert a policy's output as Stable-Baselines3's `predict` does: clipped to the bounds
        and reshaped to the shape of the action space.
        """
        policy: Any = self._host
        space = policy.action_space
        found = actions.numpy().reshape((-1, *space.shape))
        if hasattr(space, "low") and policy.squash_output:
            return policy.unscale_action(found)
        return found.clip(space.low, space.high) if hasattr(space, "low") else found

    @staticmethod
    def _on_host(observations: Any, results: Any) -> Any:
        if isinstance(pytree.tree_leaves(observations)[0], Tensor):
            return results
        return pytree.tree_map(lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf, results)


class _Shape:
    """Observations with the same shapes: their buffers, and the graph."""

    def __init__(
        self,
        forward: Callable[[Any], Any],
        like: list[Tensor],
        structure: Any,
        device: torch.device,
        graphs: bool,
    ) -> None:
        self._forward, self._device, self._graphs, self._calls = forward, device, graphs, 0
        self._pinned = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in like]
        self._inputs = [torch.empty(tensor.shape, dtype=tensor.dtype, device=device) for tensor in like]
        self._observations = pytree.tree_unflatten(self._inputs, structure)
        self._graph: Graph | None = None
        self._captured: Any = None
        self._results: dict[int, Tensor] = {}

    def run(self, observations: list[Tensor]) -> Any:
        for pinned, tensor, observation in zip(self._pinned, self._inputs, observations, strict=True):
            pinned.copy_(observation)
            tensor.copy_(pinned, non_blocking=True)
        self._calls += 1
        if self._graphs and self._graph is None and self._calls > _CALLS_BEFORE_CAPTURE:
            self._capture()
        if self._graph is not None:
            self._graph.replay()
            return self._read(self._captured)
        return self._read(self._forward(self._observations))

    def _capture(self) -> None:
        captured = Graph()
        try:
            with torch.accelerator.device_index(self._device.index), graph(captured):
                self._captured = self._forward(self._observations)
            self._graph = captured
        except RuntimeError as error:
            if _is_loss(error):
                raise
            self._graphs = False  # The model cannot be captured, for example because it reads a value back.

    def _read(self, results: Any) -> Any:
        leaves, structure = pytree.tree_flatten(results)
        read: list[Any] = [
            self._begin_to_read(index, leaf) if isinstance(leaf, Tensor) else leaf for index, leaf in enumerate(leaves)
        ]
        reused = [index for index, one in enumerate(read) if one is not None and one is self._results.get(index)]
        if reused:
            torch.accelerator.synchronize(self._device)
        for index in reused:
            read[index] = read[index].clone()
        return pytree.tree_unflatten(read, structure)

    def _begin_to_read(self, index: int, leaf: Tensor) -> Tensor:
        if leaf.device.type == "cpu" or leaf.nbytes <= _POLLED_BYTES:
            return leaf.cpu()
        pinned = self._results.get(index)
        if pinned is None or pinned.shape != leaf.shape or pinned.dtype != leaf.dtype:
            pinned = self._results[index] = torch.empty(leaf.shape, dtype=leaf.dtype, pin_memory=True)
        return pinned.copy_(leaf, non_blocking=True)


class _Batcher:
    """A thread that runs observations as one batch that threads submit at about the same time."""

    def __init__(self, runner: PolicyRunner, max_batch: int, max_wait: float) -> None:
        self._runner, self._max_batch, self._max_wait = runner, max_batch, max_wait
        self._waiting: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, observation: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the PolicyRunner is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="PolicyRunner", daemon=True)
                self._thread.start()
            self._waiting.put((observation, future))
        return future

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._waiting.put(None)
            thread = self._thread
        if thread is not None:
            thread.join()

    def _loop(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            batch, until, last = [first], time.monotonic() + self._max_wait, False
            while len(batch) < self._max_batch and not last:
                try:
                    one = self._waiting.get(timeout=max(until - time.monotonic(), 0))
                except queue.Empty:
                    break
                last = one is None
                if one is not None:
                    batch.append(one)
            self._perform([one for one in batch if one[1].set_running_or_notify_cancel()])
            if last:
                return

    def _perform(self, batch: list[tuple[Any, Future[Any]]]) -> None:
        try:
            groups: dict[Any, list[tuple[Any, Future[Any]]]] = {}
            for observation, future in batch:
                leaves, structure = pytree.tree_flatten(observation)
                key = (str(structure), *((tuple(_tensor(leaf).shape), _tensor(leaf).dtype) for leaf in leaves))
                groups.setdefault(key, []).append((observation, future))
        except Exception as error:
            # Which observation failed is not known here, so each is run separately.
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            else:
                for one in batch:
                    self._perform([one])
            return
        for group in groups.values():
            self._together(group)

    def _together(self, group: list[tuple[Any, Future[Any]]]) -> None:
        try:
            # Only powers of two as batch sizes, so that there are few graphs: the last observation
            # is repeated as padding.
            observations = [observation for observation, _ in group]
            observations += observations[-1:] * ((1 << (len(group) - 1).bit_length()) - len(group))
            first = pytree.tree_leaves(observations[0])[0]
            stacked = pytree.tree_map(lambda *rows: torch.stack([_tensor(row) for row in rows]), *observations)
            if not isinstance(first, Tensor):
                stacked = pytree.tree_map(lambda leaf: leaf.numpy(), stacked)
            results = self._runner(stacked)
            for row, (_, future) in enumerate(group):
                future.set_result(pytree.tree_map(lambda leaf: _row(leaf, row), results))  # noqa: B023
        except Exception as error:
            for _, future in group:
                if not future.done():
                    future.set_exception(error)


def _tensor(leaf: Any) -> Tensor:
    if isinstance(leaf, Tensor):
        return leaf.detach()
    if hasattr(leaf, "__array__"):
        return torch.as_tensor(leaf)
    raise TypeError(f"observations are made of arrays and tensors, but got {type(leaf).__name__}")


def _row(leaf: Any, row: int) -> Any:
    return leaf[row] if hasattr(leaf, "shape") else leaf


def _is_loss(error: RuntimeError) -> bool:
    return isinstance(error, torch.AcceleratorError) and "was lost" in str(error)
