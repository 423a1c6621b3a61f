"""Export of a policy for programs without this package: ONNX and `torch.export`, each compared with
the original policy.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dml_robot.errors import MissingDependencyError, RobotError
from dml_robot.learn.checkpoint import replace
from dml_robot.policy import Policy

FORMATS = {"onnx": ".onnx", "torch": ".pt2"}
TOLERANCE = 1e-5
"""Maximum difference between an exported policy's actions and the policy's."""
_COMPARED = 256


def export(policy: Policy, path: Path, form: str) -> float:
    """Write a policy as "onnx" (an ONNX model) or "torch" (an ExportedProgram) and return the
    largest difference.

    The model takes "observation", float32 of shape (batch, 24) with any batch, and returns
    "action", (batch, 6). It is compared on random observations before the file is moved to its
    path; raise RobotError if it differs by more than `TOLERANCE` or cannot be written, and
    MissingDependencyError if the format's package is not installed.
    """
    policy = policy.to("cpu").eval()
    observations = torch.randn(_COMPARED, _inputs(policy), generator=torch.Generator().manual_seed(0))
    expected = policy.act(observations)
    data, found = _onnx(policy, observations) if form == "onnx" else _exported(policy, observations)
    difference = float((found - expected).abs().max())
    if not difference <= TOLERANCE:
        raise RobotError(f"the exported policy differs from the trained one by {difference:.2g}; nothing was written")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, data)
    except OSError as error:
        raise RobotError(f"cannot write {path}: {error.strerror or error}") from error
    return difference


def _exported(policy: Policy, observations: Tensor) -> tuple[bytes, Tensor]:
    program = torch.export.export(
        policy, (observations,), dynamic_shapes={"observation": {0: torch.export.Dim("batch")}}
    )
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    return buffer.getvalue(), torch.export.load(buffer).module()(observations)


def _onnx(policy: Policy, observations: Tensor) -> tuple[bytes, Tensor]:
    try:
        import onnx
        import onnx.reference
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("an export to ONNX needs: pip install onnx onnxscript") from error
    with _quiet():
        program = torch.onnx.export(
            policy,
            (observations,),
            dynamo=True,
            verbose=False,
            input_names=["observation"],
            output_names=["action"],
            dynamic_shapes={"observation": {0: torch.export.Dim("batch")}},
        )
    assert program is not None
    model = program.model_proto
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    # ONNX's reference implementation, which needs no runtime.
    (action,) = onnx.reference.ReferenceEvaluator(onnx.load_from_string(data)).run(
        None, {"observation": observations.numpy()}
    )
    return data, torch.from_numpy(np.asarray(action))


def _inputs(policy: Policy) -> int:
    return next(policy.parameters()).shape[1]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's messages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
