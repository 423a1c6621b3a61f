"""Inductor's registration of the device."""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from torch_dml.backend import DEVICE
from torch_dml.inductor.errors import MissingKernelError

# Settings of Inductor for graphs of the device.
SETTINGS: dict[str, Any] = {
    # Random operators are called, with the device's own generator.
    "fallback_random": True,
    # Each operator rounds its result to its dtype, as it does alone.
    "emulate_precision_casts": True,
}

# What modes ask Inductor for, and what this device does otherwise: the engine tunes products
# itself, and capture.py captures programs.
REFUSED: dict[str, Any] = {
    "max_autotune": False,
    "max_autotune_gemm": False,
    "max_autotune_pointwise": False,
    "coordinate_descent_tuning": False,
    "triton.cudagraphs": False,
}


@functools.cache
def register() -> None:
    """Make Inductor compile for the device. It is imported by this: once, at the first
    `torch.compile`.
    """
    from torch._inductor.codegen.common import register_backend_for_device, register_device_op_overrides
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    from torch_dml.inductor import functions, lowerings, roundings
    from torch_dml.inductor.scheduling import DmlOpOverrides, DmlScheduling

    register_backend_for_device(DEVICE, DmlScheduling, PythonWrapperCodegen)
    register_device_op_overrides(DEVICE, DmlOpOverrides())
    _need_no_triton()
    torch.compiler.config.cache_key_tag += f" torch_dml {_version()}"
    functions.install()
    lowerings.install()
    roundings.install()


@contextmanager
def _only_gpu() -> Iterator[None]:
    """Let Inductor take this device for the process's only kind of GPU: beside one of CUDA it
    raises an error (torch 2.11) or may choose CUDA.
    """
    from torch._inductor import utils

    before = list(utils.GPU_TYPES)
    utils.GPU_TYPES[:] = [DEVICE]
    utils.get_gpu_type.cache_clear()
    try:
        yield
    finally:
        utils.GPU_TYPES[:] = before
        utils.get_gpu_type.cache_clear()


def _version() -> str:
    """Return a digest of what writes kernels: programs that others wrote are not reused."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in (folder.parent / "metas.py", *sorted(folder.rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def compile_graph(graph: torch.fx.GraphModule, inputs: Any, settings: dict[str, Any]) -> Callable[..., Any]:
    """Compile a graph of the device. Forward or backward graphs for which there is no kernel run
    operator by operator, with a warning.
    """
    register()
    from torch._functorch.aot_autograd import make_boxed_func
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    from torch_dml.inductor import decompositions
    from torch_dml.inductor.capture import captured
    from torch_dml.inductor.epilogues import Epilogues

    captures = settings.get("triton.cudagraphs", torch._inductor.config.triton.cudagraphs)

    def compile_or_run(graph: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
        visible = graph.graph.output_node().meta.get("user_visible_output_idxs")
        try:
            with _only_gpu():
                program = compile_fx_inner(graph, inputs, **options)
            return captured(program, inputs, visible, options) if captures else program
        except Exception as error:
            reason = _missing(error)
            if reason is None:
                raise
        warnings.warn(
            f"torch-dml cannot compile a graph yet, whose operators run one by one: {reason}", UserWarning, stacklevel=2
        )
        return make_boxed_func(graph.forward)

    before = settings.get("post_grad_custom_pre_pass", torch._inductor.config.post_grad_custom_pre_pass)
    chosen = {**SETTINGS, **settings, **REFUSED, "post_grad_custom_pre_pass": Epilogues(before)}
    with torch._inductor.config.patch(chosen):
        table = decompositions.table()
    # Autograd's cache of programs knows nothing of captures; Inductor's own remains.
    uncached: Any = {"enable_autograd_cache": False} if captures else {}
    with torch._functorch.config.patch(uncached), _only_gpu():
        return compile_fx(  # type: ignore[return-value]
            graph, inputs, inner_compile=compile_or_run, config_patches=chosen, decompositions=table
        )


def _missing(error: BaseException | None) -> str | None:
    """Return what an error says is not implemented for the device."""
    while error is not None:
        if isinstance(error, MissingKernelError):
            return str(error)
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return None


def _need_no_triton() -> None:
    """Let the scheduler compile for this device where there is no Triton, which it asks all GPUs
    for.
    """
    from torch._inductor.codegen.common import get_scheduling_for_device
    from torch._inductor.scheduler import Scheduler

    create = Scheduler.create_backend

    @functools.wraps(create)
    def create_backend(self: Any, device: Any) -> Any:
        if device.type != DEVICE:
            return create(self, device)
        return get_scheduling_for_device(DEVICE)(self)  # type: ignore[misc]

    Scheduler.create_backend = create_backend  # type: ignore[method-assign]
