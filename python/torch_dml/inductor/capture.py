"""Capture of compiled programs, for mode="reduce-overhead": a program's call becomes the replay of
a graph.

docs/design/compile.md says what is captured when, and where inputs and results lie.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._inductor.cudagraph_utils import log_cudagraph_skip_and_bump_counter
from torch._inductor.output_code import CompiledFxGraph
from torch.multiprocessing.reductions import StorageWeakRef

from torch_dml import device, engine
from torch_dml.backend import DEVICE
from torch_dml.graphs import Graph, GraphPool

_Program = Callable[[list[Any]], Sequence[Any]]
# Makes an output of a call, which may be one of the call's inputs or lie in its memory.
_Maker = Callable[[list[Any]], Any]

# As many graphs replay calls with the same inputs, where results of earlier calls are still used.
MOST_AT_ONCE = 4
# As many calls are remembered that came once.
MOST_SEEN = 256

_references = torch._C._storage_Use_Count  # type: ignore[attr-defined]


def captured(program: Any, inputs: Sequence[Any], visible: Collection[int] | None, options: dict[str, Any]) -> Any:
    """Return what replays a compiled program, or the program where it cannot be captured.

    The user sees the results at the indices `visible`, or all for None. `options` are those that
    Inductor compiles with.
    """
    if not isinstance(program, CompiledFxGraph):
        return program
    settings = torch._inductor.config.triton
    symbolic = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and _is_symbolic(x)]
    others = sorted(set(program.device_types) - {DEVICE, "meta"})
    reason = None
    if others:
        reason = f"tensors on {', '.join(others)}"
    elif len(program.device_idxs) != 1:
        reason = f"{len(program.device_idxs)} devices"
    elif any(not isinstance(x, Tensor | int | torch.SymInt) for x in inputs):
        reason = "inputs that are neither tensors nor integers"
    elif settings.cudagraph_skip_dynamic_graphs and (symbolic or any(isinstance(x, torch.SymInt) for x in inputs)):
        reason = "symbolic sizes, with cudagraph_skip_dynamic_graphs"
    if reason is not None:
        _tell(reason)
        return program
    backward = bool(options.get("is_backward"))
    return CapturedProgram(
        program,
        next(iter(program.device_idxs)),
        static={*(options.get("static_input_idxs") or ()), *program.mutated_input_idxs},
        symbolic=symbolic,
        visible=() if backward else visible,
        backward=backward,
    )


def _is_symbolic(tensor: Tensor) -> bool:
    return any(isinstance(n, torch.SymInt) for n in (*tensor.shape, *tensor.stride()))


def _tell(reason: str) -> None:
    log_cudagraph_skip_and_bump_counter(f"skipping cudagraphs due to {reason}")


class Results:
    """Tensors that replays of one graph hand out where they lie."""

    def __init__(self, number: int, tensors: Sequence[Tensor]) -> None:
        """`number` counts the captures. None of the tensors has been handed out yet."""
        self.number = number
        self._tensors = tensors
        self._storages = list({tensor.untyped_storage()._cdata for tensor in tensors})
        self._unused = [_references(storage) for storage in self._storages]

    def in_use(self) -> bool:
        """Return whether there are others that refer to their memory."""
        return any(_references(storage) > n for storage, n in zip(self._storages, self._unused, strict=True))


class Memory:
    """What the captured programs of one device share: the memory of their graphs.

    Forward graphs, which are those of inference too, have a pool, and backward graphs another one:
    gradients are kept while forward graphs run.
    """

    def __init__(self, index: int) -> None:
        """Make pools on the device with this index."""
        self.lock = threading.RLock()
        self.programs: weakref.WeakSet[CapturedProgram] = weakref.WeakSet()
        self.addresses: set[int] = set()
        self._index = index
        self._pools = GraphPool(index), GraphPool(index)
        self._in_use: tuple[list[Results], list[Results]] = ([], [])
        self._numbers = itertools.count()

    def pool(self, backward: bool) -> GraphPool:
        """Return the pool of forward or of backward graphs."""
        return self._pools[backward]

    def reset(self) -> None:
        """Drop the captures of all programs, and their memory that is not used otherwise."""
        with self.lock:
            for program in list(self.programs):
                program.forget()
            self._pools = GraphPool(self._index), GraphPool(self._index)
            self._in_use = ([], [])

    def results(self, tensors: Sequence[Tensor]) -> Results:
        """Return the results of a graph that has just been captured."""
        results = Results(next(self._numbers), tensors)
        addresses = {tensor.data_ptr() for tensor in tensors} - {0}
        self.addresses |= addresses
        weakref.finalize(results, self.addresses.difference_update, addresses).atexit = False
        return results

    def may_replay(self, results: Results, backward: bool) -> bool:
        """Return whether a replay overwrites nothing that is used. It may overwrite its own
        results, and those of later captures, which may lie in its intermediate memory.
        """
        in_use = self._in_use[backward]
        in_use[:] = [other for other in in_use if other.in_use()]
        return all(other.number < results.number for other in in_use)

    def hand_out(self, results: Results, backward: bool) -> None:
        """Note that results are used from now on."""
        in_use = self._in_use[backward]
        if results not in in_use:
            in_use.append(results)


_memories: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
_memories_lock = threading.Lock()


def reset() -> None:
    """Drop all captures, as `torch._dynamo.reset()` does. Dynamo itself may keep programs after
    it.
    """
    for memory in list(_memories.values()):
        memory.reset()


def _memory_of(index: int) -> Memory:
    with _memories_lock:
        memory = _memories.get(index)
        if memory is None:
            memory = _memories[index] = Memory(index)
        return memory


class Capture:
    """A call of a program as a graph."""

    def __init__(self, inputs: list[Any], kept: Collection[int], persistent: list[StorageWeakRef]) -> None:
        """Prepare a capture that uses the inputs at the indices `kept` where they lie, and others
        in memory of its own. `persistent` refers to memory without which there will be no such call
        again.
        """
        self._persistent = persistent
        self._copied = [i for i, x in enumerate(inputs) if _is_here(x) and i not in kept]
        self._inputs = list(inputs)
        self._targets: list[Tensor] = []
        self._expanded: list[list[int]] = []
        self._graph = Graph()
        self._makers: list[_Maker] = []
        self._lent: list[Tensor] = []
        self.results: Results | None = None

    def begin(self, pool: GraphPool) -> bool:
        """Begin to capture on the current device; return False if another thread does."""
        try:
            self._graph.capture_begin(pool)
        except RuntimeError as error:
            if "a device captures one at a time" not in str(error):
                raise
            return False
        return True

    def capture(self, program: _Program, visible: Collection[int] | None) -> None:
        """Capture the program, and end the capture also if there is an error."""
        try:
            for i in self._copied:
                x = self._inputs[i]
                if _overlaps(x):
                    raise RuntimeError("an input whose elements share memory")
                self._inputs[i] = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
            outputs = program(list(self._inputs))
            self._makers = [self._maker(x, visible is None or i in visible) for i, x in enumerate(outputs)]
            self._expanded = [_expanded(self._inputs[i]) for i in self._copied]
            self._targets = [_once(_borrowed(self._inputs[i]), _expanded(self._inputs[i])) for i in self._copied]
            # Inputs are written before a replay, and their memory may be a later capture's. So may
            # that of outputs, but what is freed in a capture is not written.
            self._inputs = []
            self._graph.capture_end()
        except BaseException:
            self._graph.reset()
            raise

    def number_results(self, memory: Memory) -> None:
        """Count the capture, after which results are handed out. There are no other references to
        them now.
        """
        self.results = memory.results(self._lent)

    def is_of_the_past(self) -> bool:
        """Return whether memory has been freed that such a call needs."""
        return any(reference.expired() for reference in self._persistent)

    def replay(self, inputs: list[Any]) -> list[Any]:
        """Carry out a call."""
        if self._copied:
            given = [_once(inputs[i], dims) for i, dims in zip(self._copied, self._expanded, strict=True)]
            torch._foreach_copy_(self._targets, given)
        self._graph.replay()
        outputs = [make(inputs) for make in self._makers]
        inputs.clear()
        return outputs

    def _maker(self, x: Any, is_visible: bool) -> _Maker:
        """Return how to make a replay's output, where the captured program's was `x`."""
        if not isinstance(x, Tensor):
            return lambda _: x
        if not _is_here(x):
            raise RuntimeError(f"an output on {x.device.type}")
        shape, stride, storage = x.shape, x.stride(), x.untyped_storage()._cdata
        for i, given in enumerate(self._inputs):
            if not isinstance(given, Tensor) or i in self._copied:
                continue
            if x is given:
                return lambda inputs, i=i: inputs[i]
            if given.untyped_storage()._cdata == storage:
                if x.dtype != given.dtype:
                    raise RuntimeError("an output that is an input of another dtype")
                return functools.partial(_part, i, shape, stride, int(x.storage_offset() - given.storage_offset()))
        if not is_visible or _overlaps(x):
            self._lent.append(x)
            return lambda _: x.data
        expanded = _expanded(x)
        source = _once(_borrowed(x), expanded)

        def copy(_: list[Any]) -> Tensor:
            made = torch.empty_strided(shape, stride, dtype=source.dtype, device=source.device)
            _once(made, expanded).copy_(source)
            return made

        return copy


def _part(i: int, shape: Sequence[int], stride: Sequence[int], distance: int, inputs: list[Any]) -> Tensor:
    """Return a tensor in the memory of an input."""
    x: Tensor = inputs[i]
    return x.as_strided(shape, stride, x.storage_offset() + distance).data


def _is_here(x: Any) -> bool:
    return isinstance(x, Tensor) and x.device.type == DEVICE


def _borrowed(x: Tensor) -> Tensor:
    """Return a tensor that does not keep its memory: later captures may have it."""
    storage = x.untyped_storage()
    address = storage.data_ptr()
    # Torch takes a signed number, and drivers have addresses with the highest bit.
    signed = address - (1 << 64) if address >> 63 else address
    place = torch._C._construct_storage_from_data_pointer(signed, x.device, storage.nbytes())  # type: ignore[attr-defined]
    return torch.empty(0, dtype=x.dtype, device=x.device).set_(place, x.storage_offset(), x.shape, x.stride())


def _expanded(tensor: Tensor) -> list[int]:
    """Return the dimensions whose elements are one element."""
    return [d for d, (n, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)) if step == 0 and n > 1]


def _once(tensor: Tensor, expanded: list[int]) -> Tensor:
    """Return a tensor without the repetitions in expanded dimensions."""
    for d in expanded:
        tensor = tensor.narrow(d, 0, 1)
    return tensor


def _overlaps(tensor: Tensor) -> bool:
    """Return whether elements may share memory other than in expanded dimensions."""
    end = 1
    for step, n in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if n > 1 and step > 0:
            if step < end:
                return True
            end = step * n
    return False


class CapturedProgram:
    """A compiled program whose calls are replays, from the second or third one with the same memory
    and sizes.
    """

    def __init__(
        self,
        program: _Program,
        index: int,
        *,
        static: set[int],
        symbolic: Sequence[int],
        visible: Collection[int] | None,
        backward: bool,
    ) -> None:
        """`static` are the indices of inputs that do not move or are written to; `symbolic` are
        those of tensors whose sizes differ from call to call.
        """
        # The list of inputs is the program's to clear. Dynamo's wrappers copy attributes of
        # instances.
        self._boxed_call = True
        self._program = program
        self._index = index
        self._static, self._symbolic, self._visible = static, set(symbolic), visible
        self._backward = backward
        self._memory = _memory_of(index)
        self._memory.programs.add(self)
        self._seen: dict[Any, list[StorageWeakRef]] = {}
        self._captures: dict[Any, list[Capture]] = {}
        self._sizes: set[Any] = set()
        self._most_sizes = torch._inductor.config.triton.cudagraph_dynamic_shape_warn_limit
        self._most_captures = torch._inductor.config.triton.cudagraph_unexpected_rerecord_limit
        self._told: set[str] = set()
        self._cannot_be_captured = False

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        """Replay the program, or run it."""
        if not self._cannot_be_captured and not engine.is_capturing(self._index):
            with torch.no_grad(), self._memory.lock:
                capture = self._find(inputs)
                if capture is not None and capture.results is not None:
                    self._memory.hand_out(capture.results, self._backward)
                    return capture.replay(inputs)
        return self._program(inputs)

    def forget(self) -> None:
        """Drop all captures. Later calls are captured anew."""
        self._captures.clear()
        self._seen.clear()
        self._sizes.clear()

    def _find(self, inputs: list[Any]) -> Capture | None:
        """Return the capture that replays a call, a new one if need be; None if the call is to
        run.
        """
        kept: list[int] = []
        places: list[Any] = [torch.is_inference_mode_enabled()]
        sizes: list[Any] = []
        for i, x in enumerate(inputs):
            if not isinstance(x, Tensor):
                sizes.append(x)
                continue
            address = x.data_ptr()
            if i in self._static or address in self._memory.addresses:
                kept.append(i)
                places.append((i, address))
            if i in self._symbolic:
                sizes.append((x.shape, x.stride()))
        sizes_of_call = tuple(sizes)
        key = (*places, sizes_of_call)
        for capture in self._captures.get(key, ()):
            if capture.results is not None and self._memory.may_replay(capture.results, self._backward):
                return capture
        persistent = self._came_before(key, inputs, kept)
        if persistent is None or not self._has_room(key, sizes_of_call):
            return None
        capture = self._capture(inputs, kept, persistent)
        if capture is not None:
            self._captures.setdefault(key, []).append(capture)
            self._sizes.add(sizes_of_call)
        return capture

    def _came_before(self, key: Any, inputs: list[Any], kept: list[int]) -> list[StorageWeakRef] | None:
        """Return references to the memory that a call does not copy, if such a call was run before
        and the memory has been in use since: it was not allocated for one call.
        """
        seen = self._seen.get(key)
        if seen is not None and not any(reference.expired() for reference in seen):
            return seen
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen[key] = [StorageWeakRef(inputs[i].untyped_storage()) for i in kept]
        return None

    def _has_room(self, key: Any, sizes: Any) -> bool:
        """Return whether there may be one more capture, after those were dropped that will not be
        replayed again.
        """
        for k, ones in list(self._captures.items()):
            self._captures[k] = [one for one in ones if not one.is_of_the_past()]
            if not self._captures[k]:
                del self._captures[k]
        if len(self._captures.get(key, ())) >= MOST_AT_ONCE:
            return False
        if sizes not in self._sizes and self._most_sizes is not None and len(self._sizes) >= self._most_sizes:
            self._tell_once(
                f"more than {self._most_sizes} sets of sizes, beyond which a program runs kernel by kernel; "
                "torch._inductor.config.triton.cudagraph_dynamic_shape_warn_limit is their number"
            )
            return False
        if sum(map(len, self._captures.values())) >= self._most_captures:
            self._tell_once(f"{self._most_captures} captures of a program, for sizes and addresses of inputs")
            return False
        return True

    def _capture(self, inputs: list[Any], kept: list[int], persistent: list[StorageWeakRef]) -> Capture | None:
        capture = Capture(inputs, kept, persistent)
        with device.device(self._index):
            if not capture.begin(self._memory.pool(self._backward)):
                return None
            try:
                capture.capture(self._program, self._visible)
            except RuntimeError as error:
                # Nothing of it has run. If the program is at fault, its run raises the error again.
                self._cannot_be_captured = True
                self._captures.clear()
                self._tell_once(str(error))
                return None
        capture.number_results(self._memory)
        return capture

    def _tell_once(self, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            _tell(reason)
