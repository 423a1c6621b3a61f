"""tf_cnn_benchmarks, whose source tree TF_CNN_BENCHMARKS names: the repository
tensorflow/benchmarks, or its folder scripts/tf_cnn_benchmarks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TREE = os.environ.get("TF_CNN_BENCHMARKS", "")

# Loads the plugin as the installed distribution does, then runs the script.
PROGRAM = """
import os, runpy, sys
import tensorflow as tf
from tensorflow.python.framework import load_library
if not tf.config.list_physical_devices("GPU"):
    load_library.load_pluggable_device_library(os.environ["TENSORFLOW_DML_LIBRARY"])
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _script() -> Path:
    folders = [Path(TREE), Path(TREE) / "scripts" / "tf_cnn_benchmarks"]
    return next(folder / "tf_cnn_benchmarks.py" for folder in folders if (folder / "tf_cnn_benchmarks.py").exists())


def _losses(*options: str) -> list[float]:
    arguments = ["--model=trivial", "--batch_size=4", "--num_batches=3", "--num_warmup_batches=0", "--display_every=1"]
    environment = os.environ | {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-c", PROGRAM, str(_script()), *arguments, "--tf_random_seed=3", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [float(loss) for loss in re.findall(r"^\d+\timages/sec: .*\t([\d.naif]+)$", done.stdout, re.M)]


@pytest.mark.skipif(not TREE, reason="TF_CNN_BENCHMARKS names no source tree of tensorflow/benchmarks")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_trivial_model(layout: str) -> None:
    """At the script's own learning rate the first step is so long that rounding errors decide the
    next loss.
    """
    slow = "--init_learning_rate=1e-6"
    losses = _losses("--device=gpu", "--num_gpus=1", f"--data_format={layout}", slow)
    on_the_cpu = _losses("--device=cpu", f"--data_format={layout}", slow)
    assert len(losses) == 3
    assert losses == pytest.approx(on_the_cpu, rel=1e-3)
