"""torch_dml.integrations with the real libraries: the device is found without any code for it, and
works.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_dml import device as devices
from torch_dml import environment, integrations
from torch_dml.integrations import patching

from tests.support.processes import run_python

# Code that sets `found` to the device that a library chooses. The first line imports torch.
FINDS = {
    "accelerate": "from accelerate import Accelerator\nfound = Accelerator().device",
    "lightning": "from lightning import Trainer\nfound = Trainer(logger=False).strategy.root_device",
    "safetensors": """
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
import sys, torch
save_file({"x": torch.ones(2)}, sys.argv[1] + "/x.safetensors")
try:
    found = load_file(sys.argv[1] + "/x.safetensors", device=str(torch.accelerator.current_accelerator()))["x"].device
except (SafetensorError, RuntimeError):
    found = torch.device("cpu")
""",
    "stable_baselines3": """
from stable_baselines3.common.utils import get_device
import dataclasses, sys
devices = sys.modules["torch_dml.device"]
known = devices.get_device_properties
devices.get_device_properties = lambda index: dataclasses.replace(known(index), kind="discrete", software=False)
found = get_device("auto")
""",
    "torch_geometric": "import torch_geometric\nfound = torch_geometric.device('auto')",
    "transformers": "from transformers import TrainingArguments\nfound = TrainingArguments('unused').device",
    "ultralytics": "from ultralytics.utils.torch_utils import select_device\nfound = select_device('')",
}


MODES = {
    "found": {},
    "off": {"TORCH_DML_INTEGRATIONS": ",".join(f"-{name}" for name in FINDS)},
    "cuda": {"TORCH_DML_AS_CUDA": "1"},
    "no device": {"VK_DRIVER_FILES": os.devnull, "VK_ICD_FILENAMES": os.devnull},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Return the device that a library finds in a process in which `import torch` loads the device,
    as after an installation.
    """
    folder = tmp_path_factory.mktemp("installed")
    information = folder / "torch_dml_autoload_of_tests-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-dml-autoload-of-tests\nVersion: 0\n")
    (information / "entry_points.txt").write_text("[torch.backends]\ntorch_dml = torch_dml_autoload:autoload\n")

    @functools.cache
    def run(mode: str) -> Any:
        path = os.pathsep.join([str(folder), *filter(None, sys.path)])
        settings = {"PYTHONPATH": path, "YOLO_CONFIG_DIR": str(folder), "HF_HUB_OFFLINE": "1", "YOLO_OFFLINE": "1"}
        parts = [
            f"{code}\nresult[{name!r}] = found.type"
            for name, code in FINDS.items()
            if importlib.util.find_spec(name) is not None
        ]
        end = "import json, torch_dml\nprint(json.dumps([result, torch_dml.integrations.active()]))"
        code = "\n".join(["result = {}", *parts, end])
        return run_python("-W", "ignore", "-c", code, str(folder), **settings, **MODES[mode], CUDA_VISIBLE_DEVICES="")

    def result(mode: str) -> Any:
        done = run(mode)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return result


def test_each_library_is_here() -> None:
    assert set(FINDS) == set(environment.INTEGRATIONS)


@pytest.mark.parametrize("name", FINDS)
def test_the_device_is_found_without_importing_ours(name: str, program: Callable[[str], Any]) -> None:
    pytest.importorskip(name)
    found, active = program("found")
    assert found[name] == "dml" and name in active


@pytest.mark.parametrize("name", FINDS)
def test_off_by_name(name: str, program: Callable[[str], Any]) -> None:
    pytest.importorskip(name)
    found, active = program("off")
    assert found[name] == "cpu" and name not in active


@pytest.mark.parametrize("name", FINDS)
def test_the_cpu_is_found_where_there_is_no_device(name: str, program: Callable[[str], Any]) -> None:
    pytest.importorskip(name)
    found, active = program("no device")
    assert found[name] == "cpu" and name in active


@pytest.mark.parametrize("name", FINDS)
def test_nothing_is_changed_where_the_device_is_cuda(name: str, program: Callable[[str], Any]) -> None:
    pytest.importorskip(name)
    found, active = program("cuda")
    assert found[name] == "cuda" and not active


@pytest.mark.parametrize("name", FINDS)
def test_another_version_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip(name)
    before = integrations.active()
    integration = importlib.import_module(f"torch_dml.integrations.{name}")
    monkeypatch.setattr(integration, "TESTED", ("90", "91"))
    monkeypatch.setattr(integration, "apply", lambda module: pytest.fail("applied"))
    with pytest.warns(RuntimeWarning, match=f"{name} {module.__version__} as it is: it was tried with 90 up to"):
        integrations._integrate(name, module)
    assert integrations.active() == before


def data() -> TensorDataset:
    numbers = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(16, 4, generator=numbers), torch.randint(0, 2, (16,), generator=numbers))


def network(dropout: float = 0.0) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 2))


@pytest.fixture
def accelerate() -> Iterator[Any]:
    module = pytest.importorskip("accelerate")

    def forget() -> None:
        module.state.AcceleratorState._reset_state(reset_partial_state=True)
        module.state.GradientState._reset_state()

    forget()
    yield module
    forget()


def losses_by_accelerate(accelerator: Any) -> list[float]:
    model, batches = network(), DataLoader(data(), 4)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    found = []
    for x, y in batches:
        loss = F.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        found.append(accelerator.gather(loss.detach()).item())
    return found


@pytest.mark.parametrize("precision", ["no", "fp16", "bf16"])
def test_accelerate_trains_as_on_the_cpu(accelerate: Any, precision: str) -> None:
    accelerator = accelerate.Accelerator(mixed_precision=precision)
    assert accelerator.device == torch.device("dml")
    assert (accelerator.scaler is not None and accelerator.scaler.is_enabled()) == (precision == "fp16")
    found = losses_by_accelerate(accelerator)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    on_cpu = accelerate.Accelerator(cpu=True)
    assert on_cpu.device.type == "cpu"
    assert found == pytest.approx(losses_by_accelerate(on_cpu), abs=1e-5 if precision == "no" else 1e-2)


def test_accelerate_saves_the_devices_random_numbers(accelerate: Any, tmp_path: Path) -> None:
    accelerator = accelerate.Accelerator()
    accelerator.save_state(tmp_path)
    first = torch.rand(3, device="dml")
    assert not torch.equal(torch.rand(3, device="dml"), first)
    accelerator.load_state(tmp_path)
    assert torch.equal(torch.rand(3, device="dml"), first)


def test_accelerate_maps_models_to_the_device(accelerate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    modeling = accelerate.utils.modeling
    memory = modeling.get_max_memory()
    assert [key for key in memory if key != "cpu"] == list(range(torch.dml.device_count()))
    assert all(memory.values()) and modeling.get_max_memory({0: "1GB"}) == {0: 10**9}
    known = devices.get_device_properties
    kinds = ["discrete", "integrated"]
    monkeypatch.setattr(devices, "get_device_properties", lambda i: dataclasses.replace(known(i), kind=kinds[i]))
    assert list(modeling.get_max_memory()) == [0, "cpu"]
    assert accelerate.infer_auto_device_map(network()) == {"": 0}
    model = accelerate.dispatch_model(network(), {"0": 0, "1": 0, "2": 0, "3": "cpu"}, main_device=0)
    assert model(torch.ones(2, 4)).shape == (2, 2) and model[0].weight.device.type == "dml"


def test_accelerate_notices_that_memory_is_out(accelerate: Any) -> None:
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(1 << 48, device="dml")
    assert accelerate.utils.memory.should_reduce_batch_size(error.value)
    accelerate.utils.release_memory()


@pytest.fixture
def transformers(accelerate: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return pytest.importorskip("transformers")


def tiny_llama(transformers: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=32, attention_dropout=0.1, **sizes))


@pytest.mark.parametrize("options", [{}, {"bf16": True}, {"fp16": True}, {"use_cpu": True}], ids=str)
def test_a_trainer_resumes_from_its_checkpoint(transformers: Any, options: dict[str, bool], tmp_path: Path) -> None:
    numbers = torch.Generator().manual_seed(1)
    rows = [torch.randint(0, 32, (8,), generator=numbers) for _ in range(8)]

    def train(**resume: Any) -> list[float]:
        arguments = transformers.TrainingArguments(
            tmp_path,
            max_steps=2,
            save_steps=1,
            per_device_train_batch_size=4,
            report_to=[],
            disable_tqdm=True,
            **options,
        )
        expected = ("cpu", 0) if "use_cpu" in options else ("dml", 1)
        assert (arguments.device.type, arguments.n_gpu) == expected
        trainer = transformers.Trainer(
            tiny_llama(transformers), arguments, train_dataset=[{"input_ids": row, "labels": row} for row in rows]
        )
        trainer.train(**resume)
        assert trainer.model.device.type == expected[0]
        return [float(parameter.detach().double().sum()) for parameter in trainer.model.parameters()]

    found = train()
    # With dropout's random numbers of the second step.
    assert train(resume_from_checkpoint=str(tmp_path / "checkpoint-1")) == found


def test_pipelines_and_device_maps_find_the_device(transformers: Any, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({f"w{index}": index for index in range(32)}, unk_token="w0")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), unk_token="w0")
    tiny_llama(transformers).save_pretrained(tmp_path)
    said = {}
    for choice in ({}, {"device": 0}, {"device": "dml"}, {"device": -1}):
        pipe = transformers.pipeline("text-generation", model=str(tmp_path), tokenizer=tokenizer, **choice)
        assert pipe.model.device.type == ("cpu" if choice == {"device": -1} else "dml")
        said[str(choice)] = pipe("w1", max_new_tokens=4, do_sample=False)[0]["generated_text"]
    assert len(set(said.values())) == 1, said
    for place in ("auto", 0, "dml"):
        model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map=place)
        assert {parameter.device.type for parameter in model.parameters()} == {"dml"}
        assert transformers.pipeline("text-generation", model=model, tokenizer=tokenizer).device.type == "dml"
    assert transformers.utils.get_available_devices() >= {"cpu", "dml"}


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "goes on"])
@pytest.mark.parametrize("options", [{}, {"return_dict_in_generate": True, "output_logits": True}], ids=str)
def test_generation_does_not_wait_for_the_end_of_the_text(
    transformers: Any, options: dict[str, Any], ends: bool
) -> None:
    model = tiny_llama(transformers).eval()
    for parameter in model.parameters():
        parameter.data *= 10  # otherwise it would generate one word for ever
    prompt = torch.tensor([[5, 9, 3], [7, 1, 30]])

    def generate(device: str, **end: Any) -> Any:
        ids = prompt.to(device)
        return model.to(device).generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=8,
            do_sample=False,
            pad_token_id=0,
            **end,
            **options,
        )

    def ids(found: Any) -> torch.Tensor:
        return found.sequences if options else found

    end = {"eos_token_id": ids(generate("cpu"))[:, 6].tolist() if ends else None}
    expected, found = generate("cpu", **end), generate("dml", **end)
    assert ids(found).tolist() == ids(expected).tolist() and (ids(found).shape[1] < 11) == ends
    if options:
        assert len(found.logits) == len(expected.logits)
        assert found.past_key_values.get_seq_length() == expected.past_key_values.get_seq_length()
    check = transformers.generation.utils.DeferredStopCheck
    assert check.is_supported(torch.device("dml"), None, False, is_assistant=False)
    assert not check.is_supported(torch.device("cpu"), None, False, is_assistant=False)


@pytest.mark.parametrize("off", ["transformers", "accelerate"])
def test_a_trainer_and_accelerate_agree_where_one_is_off(
    transformers: Any, accelerate: Any, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, arguments = accelerate.PartialState, transformers.TrainingArguments
    if off == "transformers":
        inner = vars(arguments)["_setup_devices"].func.__wrapped__
        monkeypatch.setattr(patching, "_changed", patching._changed - {inner})
    else:
        monkeypatch.setattr(state, "default_device", property(lambda self: torch.device("cpu")))
    assert (arguments("unused").device.type, state().device.type) == ("cpu", "cpu")


PRECISIONS = ["32-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true", "64-true"]
DTYPES = {"16": torch.float16, "bf16": torch.bfloat16, "32": torch.float32, "64": torch.float64}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_lightning_trains_and_resumes(precision: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Model(lightning.LightningModule):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network(dropout=0.5)

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            out = self.network(batch[0])
            assert (out.device.type, out.dtype) == ("dml", DTYPES[precision.split("-")[0]])
            return F.cross_entropy(out, batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    def trainer(accelerator: str, epochs: int) -> Any:
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        return lightning.Trainer(
            accelerator=accelerator, precision=precision, max_epochs=epochs, default_root_dir=tmp_path, **quiet
        )

    first = trainer("auto", 1)
    assert type(first.accelerator).__name__ == "DMLAccelerator" and first.num_devices == 1
    scaler = getattr(first.precision_plugin, "scaler", None)
    assert (scaler is not None and scaler.is_enabled()) == (precision == "16-mixed")
    first.fit(Model(), DataLoader(data(), 8))
    path = first.checkpoint_callback.best_model_path
    second = trainer("gpu", 2)
    second.fit(Model(), DataLoader(data(), 8), ckpt_path=path)
    assert second.current_epoch == 2 and math.isfinite(sum(p.double().sum() for p in second.model.parameters()))
    loaded = Model.load_from_checkpoint(path, weights_only=False)
    assert torch.equal(loaded.network[0].weight.cpu().float(), first.model.network[0].weight.cpu().float())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("accelerator", ["auto", "gpu", "dml"])
def test_fabric_trains_and_loads(accelerator: str, precision: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    fabric = lightning.Fabric(accelerator=accelerator, precision=precision)
    model = network()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
    for x, y in fabric.setup_dataloaders(DataLoader(data(), 8)):
        assert x.device.type == "dml"
        fabric.backward(F.cross_entropy(model(x), y))
        optimizer.step()
        optimizer.zero_grad()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    fabric.save(tmp_path / "state.ckpt", {"model": model, "optimizer": optimizer})
    nn.init.zeros_(model.module[0].weight)
    fabric.load(tmp_path / "state.ckpt", {"model": model, "optimizer": optimizer})
    assert all(map(torch.equal, model.parameters(), before))


def test_lightning_takes_devices_and_the_strategy_by_name() -> None:
    lightning = pytest.importorskip("lightning")
    chosen = lightning.Trainer(strategy="dml", devices=[1], logger=False)
    assert chosen.strategy.root_device == torch.device("dml", 1) and chosen.num_devices == 1
    assert lightning.Fabric(devices="1,").device == torch.device("dml", 1)
    assert lightning.Fabric(strategy="dml").device == torch.device("dml", 0)
    parse = type(chosen.accelerator).parse_devices
    assert (parse(2), parse("2"), parse(-1), parse([1])) == ([0, 1], [0, 1], [0, 1], [1])
    for wrong in ([2], 3, [0, 0], []):
        with pytest.raises(ValueError, match="there are 2 dml devices"):
            parse(wrong)
    with pytest.raises(ValueError, match="runs on one device"):
        lightning.Trainer(strategy="dml", devices=2, logger=False)
    assert lightning.Trainer(accelerator="cpu", logger=False).strategy.root_device.type == "cpu"


def test_lightning_keeps_the_devices_random_numbers_and_notices_that_memory_is_out() -> None:
    lightning = pytest.importorskip("lightning")
    torch.manual_seed(3)
    first = torch.rand(3, device="dml")
    torch.manual_seed(3)
    with lightning.pytorch.utilities.seed.isolate_rng():
        torch.rand(7, device="dml")
    assert torch.equal(torch.rand(3, device="dml"), first)
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(1 << 48, device="dml")
    assert lightning.pytorch.utilities.memory.is_oom_error(error.value)
    assert not lightning.pytorch.utilities.memory.is_oom_error(RuntimeError("another"))


def test_the_lightning_packages_by_themselves_find_the_device() -> None:
    package = pytest.importorskip("pytorch_lightning")
    trainer = package.Trainer(accelerator="auto", precision="16-mixed", logger=False)
    assert trainer.strategy.root_device == torch.device("dml", 0) and trainer.precision_plugin.scaler.is_enabled()
    assert pytest.importorskip("lightning_fabric").Fabric(accelerator="gpu").device.type == "dml"


@pytest.mark.parametrize("kind", ["discrete", "integrated", "virtual", "software"])
def test_auto_of_stable_baselines3_is_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = pytest.importorskip("stable_baselines3")
    known = dataclasses.replace(devices.get_device_properties(0), kind=kind, software=kind == "software")
    monkeypatch.setattr(devices, "get_device_properties", lambda index: known)
    agent = package.A2C("MlpPolicy", "CartPole-v1", n_steps=4, seed=0)
    assert agent.device.type == ("cpu" if kind == "software" else "dml") == agent.policy.device.type
    agent.learn(8).save(tmp_path / "agent.zip")
    assert package.A2C.load(tmp_path / "agent.zip").device.type == agent.device.type
    assert package.common.utils.get_device("dml").type == "dml"
    assert package.common.utils.get_device("cuda").type == "cpu"


def test_torch_geometric_prefetches_to_the_device() -> None:
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.loader import PrefetchLoader

    graphs = [Data(x=torch.full((3, 2), float(i)), edge_index=torch.tensor([[0, 1], [1, 2]])) for i in range(4)]
    for place in (None, "dml", torch.device("dml", 1), "cpu"):
        loader = PrefetchLoader(GraphLoader(graphs, batch_size=2), device=place)
        batches = list(loader)
        kind = "cpu" if place == "cpu" else "dml"
        assert {batch.x.device.type for batch in batches} == {kind}
        assert [batch.x.sum().item() for batch in batches] == [6.0, 30.0]
        assert (loader.device_helper.stream is not None) == (kind == "dml")


def test_safetensors_are_loaded_onto_the_device(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    from safetensors.torch import load_file, load_model, save_file, save_model

    tensors = {"a": torch.randn(3, 4), "b": torch.arange(3).bfloat16(), "empty": torch.empty(0)}
    on_device = {name: tensor.to("dml") for name, tensor in tensors.items()}
    save_file(on_device, tmp_path / "x.safetensors", {"key": "value"})
    for place in ("dml", "dml:1", "cpu"):
        loaded = load_file(tmp_path / "x.safetensors", device=place)
        assert {str(tensor.device) for tensor in loaded.values()} == {str(torch.ones(1, device=place).device)}
        assert all(torch.equal(loaded[name].cpu(), tensor) for name, tensor in tensors.items())
    with safetensors.safe_open(tmp_path / "x.safetensors", framework="pt", device="dml") as file:
        assert set(file.keys()) == set(tensors) and file.metadata() == {"key": "value"}
        part = file.get_slice("a")
        assert part.get_shape() == [3, 4] and torch.equal(part[:, 1:], on_device["a"][:, 1:])
        assert torch.equal(file.get_tensor("b"), on_device["b"])
    model = network().to("dml")
    save_model(model, str(tmp_path / "model.safetensors"))
    assert load_model(model, tmp_path / "model.safetensors", device="dml") == (set(), [])
    with pytest.raises(safetensors.SafetensorError):
        load_file(tmp_path / "x.safetensors", device="nothing")


@pytest.fixture
def ultralytics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("YOLO_OFFLINE", "1")
    # It sets cuDNN's flags. torch.testing forbids that in this process, after another test imported
    # its internals.
    monkeypatch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
    return pytest.importorskip("ultralytics")


def test_ultralytics_selects_the_device(ultralytics: Any) -> None:
    from ultralytics.utils.torch_utils import select_device

    for place, index in {"dml": 0, "dml:1": 1, 1: 1, "0": 0, "": 0, torch.device("dml", 1): 1}.items():
        assert select_device(place, verbose=False) == torch.device("dml", index), place
        torch.dml.set_device(0)
    assert select_device("cpu", verbose=False).type == "cpu"
    for wrong in ("dml:2", "7", "cuda"):
        with pytest.raises(ValueError, match="Invalid DML 'device="):
            select_device(wrong)


def test_ultralytics_trains_with_a_scaler_that_works(ultralytics: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for index in range(2):
        drawn = image.new("RGB", (64, 64))
        drawn.paste((255, 255, 255), (16, 16, 32 + index, 32))
        drawn.save(tmp_path / "images" / f"{index}.png")
        (tmp_path / "labels" / f"{index}.txt").write_text("0 0.375 0.375 0.25 0.25\n")
    (tmp_path / "data.yaml").write_text(f"path: {tmp_path}\ntrain: images\nval: images\nnames: [box]\n")
    layers = "[[-1, 1, Conv, [8, 3, 2]], [-1, 1, Conv, [16, 3, 2]], [-1, 1, Conv, [16, 3, 2]]]"
    (tmp_path / "tiny.yaml").write_text(f"nc: 1\nbackbone: {layers}\nhead: [[[2], 1, Detect, [nc]]]\n")
    seen = []

    def remember(trainer: Any) -> None:
        seen.append((trainer.device, trainer.amp, trainer.scaler.is_enabled(), trainer.scaler.get_scale()))

    model = ultralytics.YOLO(tmp_path / "tiny.yaml", verbose=False)
    model.add_callback("on_train_batch_end", remember)
    quiet = {"val": False, "plots": False, "verbose": False, "save": False, "project": str(tmp_path)}
    model.train(data=tmp_path / "data.yaml", epochs=1, imgsz=64, batch=2, workers=0, device="dml", **quiet)
    assert seen[0][:3] == (torch.device("dml", 0), True, True) and seen[0][3] > 1
    found = model.predict(torch.zeros(1, 3, 64, 64), device="dml", conf=1.0, verbose=False)
    assert found[0].boxes.data.device.type == "dml"
