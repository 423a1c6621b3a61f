"""The examples, and the commands in README.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.environment import ROOT
from tests.support.processes import run_python


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["linear_regression", "perceptron", "recurrence"])
def test_example_agrees_with_the_cpu(name: str):
    done = run_python(f"examples/{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fallbacks to the CPU: 0" in done.stdout
    assert "largest relative difference of the final weights" in done.stdout


def test_disagreement_is_an_error():
    done = run_python("examples/linear_regression.py", "--tolerance", "-1")
    assert done.returncode == 1
    assert "differ by more than" in done.stderr


def test_unknown_device_is_named():
    done = run_python("examples/perceptron.py", "--device", "dml:99")
    assert done.returncode == 2
    assert "no device dml:99 here" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_generation_is_timed_and_the_same_everywhere(model: str, tmp_path: Path):
    pytest.importorskip("transformers")
    file = tmp_path / "speeds.json"
    options = f"--device cpu,dml --model {model} --size tiny --steps 6 --repeats 3 --graph --json {file}".split()
    done = run_python("examples/generate.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fallbacks to the CPU: 0" in done.stdout
    speeds = json.loads(file.read_text(encoding="utf-8"))["speeds"]
    assert [(one["device"], one["dtype"]) for one in speeds] == [
        (device, dtype) for dtype in ("float32", "float16") for device in ("cpu", "dml", "dml, graph")
    ]
    assert all(one["token_ms"] > 0 and len(one["tokens"]) == 6 for one in speeds)
    assert speeds[0]["tokens"] == speeds[1]["tokens"] == speeds[2]["tokens"] and len(set(speeds[0]["tokens"])) > 1


def test_adapter_is_trained_saved_and_merged(tmp_path: Path):
    pytest.importorskip("peft")
    options = f"--device dml --size tiny --steps 12 --batch-size 4 --length 16 --output {tmp_path}".split()
    done = run_python("examples/finetune_lora.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr  # the loss fell, and the merged model is the trained one
    assert "fallbacks to the CPU: 0" in done.stdout
    for file in ("base/model.safetensors", "adapter/adapter_model.safetensors", "merged/model.safetensors"):
        assert (tmp_path / file).is_file()


def test_memory_of_training_is_predicted():
    pytest.importorskip("peft")
    done = run_python("examples/finetune_lora.py", "--device", "dml", "--memory", "tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fallbacks to the CPU: 0" in done.stdout
    assert "the largest of these that fits into 8 GiB: tiny" in done.stdout
    error = re.search(r"tokens: ([+-][\d.]+)% of what was measured", done.stdout)
    assert error is not None and abs(float(error[1])) < 5


@pytest.mark.slow
def test_detector_learns(tmp_path: Path):
    pytest.importorskip("torchvision")
    picture = tmp_path / "shapes.png"
    options = f"--device dml --steps 12 --batch-size 2 --pictures 2 --output {picture}".split()
    done = run_python("examples/detect.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fallbacks to the CPU: 0" in done.stdout
    losses = re.search(r"loss: ([\d.]+) at first, ([\d.]+) at last", done.stdout)
    assert losses is not None and float(losses[2]) < float(losses[1])
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "library"), [("detect", "torchvision"), ("finetune_lora", "peft"), ("generate", "transformers")]
)
def test_missing_library_is_named(name: str, library: str):
    code = (
        f"import runpy, sys; sys.modules[{library!r}] = None; sys.path.insert(0, 'examples'); "
        f"runpy.run_path('examples/{name}.py', run_name='__main__')"
    )
    done = run_python("-c", code)
    assert done.returncode == 1
    assert re.fullmatch(r"\w+(\.\w+)* is missing: pip install .*\n", done.stderr), done.stderr


def readme_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("code", readme_blocks("python"))
def test_readme_python(code: str):
    done = run_python("-c", code, TORCH_DML_AUTOLOAD="1")  # also beside a CUDA device
    assert done.returncode == 0, done.stderr


def test_readme_commands_exist():
    text = "\n".join(readme_blocks("sh"))
    targets = set(re.findall(r"^make (\w+)", text, re.M))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target
    for command in set(re.findall(r"^python -m torch_dml (\w+)", text, re.M)):
        assert run_python("-m", "torch_dml", command, "--help").returncode == 0
    for file in set(re.findall(r"^python (\S+\.py)", text, re.M)):
        assert (ROOT / file).is_file()
