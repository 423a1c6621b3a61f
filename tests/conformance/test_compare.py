"""torch_dml.compare: faults that are planted in operators are found and named, and there are no
findings in correct models.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_dml
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_dml.cli import main
from torch_dml.compare import compare, judging, watch
from torch_dml.compare.lanes import Lane, Shadows

from tests.support.processes import run_python

Where = Callable[[tuple[Any, ...]], bool]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The tensors are small: more threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Planted(TorchDispatchMode):
    """Changes one result of an operator on the device, if `where` of its arguments is true."""

    def __init__(self, operator: str, where: Where, *, output: int = 0, whole: bool = False, relative: float = 1e-3):
        super().__init__()
        self.operator, self.where, self.output, self.whole, self.relative = operator, where, output, whole, relative
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func._schema.name != f"aten::{self.operator}" or not self.where(args):
            return out
        found = out if isinstance(out, torch.Tensor) else out[self.output]
        if found.device.type != "dml":
            return out
        self.calls += 1
        flat = found.detach().view(-1)
        place = slice(None) if self.whole else int(flat.abs().argmax())
        flat[place] *= 1 + self.relative * self.change()
        return out

    def change(self) -> float:
        return 1.0


class Nondeterministic(Planted):
    """Changes the result differently each time."""

    def change(self) -> float:
        return float(self.calls)


class Block(nn.Module):
    """torchvision's BasicBlock."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (out + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet18(nn.Module):
    """torchvision's resnet18 with an eighth of its channels: the same 62 modules, in less time."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [(8, 8, 1), (8, 16, 2), (16, 32, 2), (32, 64, 2)]
        for number, (channels, out, stride) in enumerate(sizes, start=1):
            setattr(self, f"layer{number}", nn.Sequential(Block(channels, out, stride), Block(out, out, 1)))
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class TinyTransformer(nn.Module):
    """Two layers, with dropout in them."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True), 2, enable_nested_tensor=False
        )
        self.head = nn.Linear(16, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1), device=tokens.device)
        return self.head(self.layers(self.embedding(tokens), mask)).flatten(0, 1)


def resnet(**options: Any) -> torch_dml.compare.Report:
    torch.manual_seed(0)
    inputs, targets = torch.randn(2, 3, 32, 32), torch.tensor([1, 7])
    return compare(ResNet18(), inputs, nn.functional.cross_entropy, torch.optim.SGD, targets=targets, **options)


def transformer(**options: Any) -> torch_dml.compare.Report:
    torch.manual_seed(0)
    tokens = torch.randint(20, (2, 7))
    return compare(
        TinyTransformer(),
        tokens,
        nn.functional.cross_entropy,
        torch.optim.AdamW,
        targets=torch.randint(20, (14,)),
        **options,
    )


def test_a_healthy_resnet():
    report = resnet()
    assert report.verdict == "none", report.to_dict()["verdict"]
    assert report.healthy and report.runs_alike
    compared = [call for call in report.calls if call.errors]
    assert len(compared) == len(report.calls) > 150
    assert {call.phase for call in compared} >= {"forward", "backward", "step"}
    assert {one.name for one in report.modules} >= {"layer3.0.downsample.1", "(model)", "layer1.0.conv1.weight"}
    owners = {(call.module, call.phase) for call in compared if call.operator.startswith("aten.convolution")}
    assert ("layer4.1.conv2", "forward") in owners and ("layer4.1.conv2", "backward") in owners


def test_a_healthy_transformer_with_dropout():
    report = transformer(steps=2)
    assert report.verdict == "none", report.verdict
    assert report.runs_alike and len(report.drift) == 2
    # What attention drops is also the same in all runs.
    assert not [call.note for call in report.calls if call.note] and not report.notes
    output = next(one for one in report.modules if one.name == "(model)")
    assert all(error.relative < 1e-5 for error in output.errors.values())


def test_a_fault_in_one_convolution_of_a_resnet(tmp_path: Path):
    def where(args: tuple[Any, ...]) -> bool:
        return args[1].shape == (32, 16, 3, 3)

    with Planted("convolution", where):
        report = resnet(folder=tmp_path)
    assert report.finding is not None and not report.healthy
    call = report.finding.call
    assert (call.operator, call.module, call.phase) == ("aten.convolution.default", "layer3.0.conv1", "forward")
    assert report.standing_out == [call] and call.repeats
    assert report.finding.wrong.elements == 1
    relative = abs(report.finding.wrong.value / report.finding.wrong.exact - 1)
    assert relative == pytest.approx(1e-3, rel=1e-2)
    assert [one.text for one in report.finding.inputs] == ["f32[2, 16, 4, 4]", "f32[32, 16, 3, 3]"]
    assert report.finding.inputs[0].minimum == 0 and report.finding.inputs[0].zero > 0
    # Without the fault, the script has no finding.
    assert report.finding.script is not None
    script = Path(report.finding.script)
    saved = torch.load(script.with_suffix(".pt"), weights_only=True)
    assert [one.shape for one in saved] == [(2, 16, 4, 4), (32, 16, 3, 3)]
    done = run_python(str(script))
    assert done.returncode == 0, done.stderr
    assert "largest relative error" in done.stdout and "again: True" in done.stdout


def test_a_fault_in_a_gradient_of_a_resnet():
    def where(args: tuple[Any, ...]) -> bool:
        return args[2].shape == (64, 32, 3, 3)

    with Planted("convolution_backward", where, output=1):
        report = resnet(repeat=False, accumulated=False)
    assert report.finding is not None
    call = report.finding.call
    assert (call.operator, call.module) == ("aten.convolution_backward.default", "layer4.0.conv1")
    assert call.phase == "backward" and report.finding.wrong.output == 1
    assert report.standing_out == [call]


@pytest.mark.parametrize(
    ("operator", "phase"),
    [("gelu", "forward"), ("native_layer_norm_backward", "backward")],
    ids=["forward", "backward"],
)
def test_faults_in_a_transformer(operator: str, phase: str):
    if operator == "gelu":
        operator, where = "addmm", lambda args: args[2].shape == (16, 32)
    else:
        where = lambda args: args[1].shape == (2, 7, 16)  # noqa: E731
    with Planted(operator, where, whole=True):
        report = transformer(repeat=False, accumulated=False)
    assert report.finding is not None
    call = report.finding.call
    module = "layers.layers.0.linear1" if phase == "forward" else "layers.layers.1.norm2"
    assert (call.operator, call.module, call.phase) == (f"aten.{operator}.default", module, phase)
    assert {one.operator for one in report.standing_out} == {call.operator}
    assert "aten." + operator in report.verdict


def test_what_does_not_repeat():
    with Nondeterministic("relu", lambda args: args[0].shape == (2, 7, 32), relative=1e-7, whole=True):
        report = transformer(accumulated=False)
    assert report.unlike is not None and not report.healthy
    assert (report.unlike.operator, report.unlike.module) == ("aten.relu.default", "layers.layers.0")
    assert report.runs_alike is False and "step 1" in report.runs_detail


class Chaotic(nn.Module):
    """A recurrence that amplifies any change."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)
        nn.init.normal_(self.inner.weight, std=1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = self.inner(x).tanh()
        return x


def chaotic() -> torch_dml.compare.Report:
    torch.manual_seed(0)
    sgd = torch.optim.SGD
    return compare(Chaotic(), torch.randn(4, 16), None, lambda weights: sgd(weights, lr=0.1), steps=4, repeat=False)


def test_drift_that_chaos_explains():
    report = chaotic()
    assert report.verdict == "none"
    first, last = report.drift[0].distances["dml"], report.drift[-1].distances["dml"]
    assert last > 10 * first  # There is drift.
    assert report.drift[-1].excess < report.drift_allowed


def test_drift_of_a_fault():
    with Planted("tanh_backward", lambda args: True, whole=True):
        report = chaotic()
    assert report.finding is not None and report.finding.call.operator == "aten.tanh_backward.default"
    assert report.drift_unexplained is not None and report.drift_unexplained.furthest.startswith("inner.")


def test_a_fault_that_is_smaller_than_cancelling_terms_is_not_one():
    # The sum of these consists of rounding errors only.
    values = torch.randn(1, 1000)
    model = nn.Linear(1000, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.cat([torch.ones(500), -torch.ones(500)])[None])
    report = compare(model, torch.cat([values[:, :500]] * 2, 1))
    assert report.verdict == "none"


def test_terms_of_one_operator_that_cancel():
    # A tolerance from the terms' changes must not vanish where they cancel, as happens for some of
    # this many elements.
    torch.manual_seed(0)
    start, end = torch.randn(2, 20000)
    end = start * -9 * (1 + torch.randn(20000) * 1e-3)
    wide = start.double().lerp(end.double(), 0.1)
    operator = torch.ops.aten.lerp.Scalar

    def rounded(argument: int, number: int) -> list[torch.Tensor | None]:
        generator = torch.Generator().manual_seed(number)
        values = [start.double(), end.double()]
        values[argument] *= 1 + (torch.rand(20000, generator=generator) - 0.5).sign().double() * 2.0**-24
        return [values[0].lerp(values[1], 0.1)]

    cpu = [start.lerp(end, 0.1)]
    other = [start + (end - start) * 0.1]  # Another order of roundings, equally accurate.
    assert judging.judge(operator, (start, end, 0.1), {}, other, cpu, [wide], rounded) is None
    other[0][77] += 1e-3 * start[77]
    wrong = judging.judge(operator, (start, end, 0.1), {}, other, cpu, [wide], rounded)
    assert wrong is not None and wrong.index == [77] and wrong.elements == 1


def test_errors_in_units():
    exact = torch.tensor([1.0, 3.0, 0.0, torch.inf, torch.nan], dtype=torch.float64)
    assert judging.error(exact, exact.float()) == judging.Error(0.0, 0.0)
    one = torch.nextafter(torch.tensor(3.0), torch.tensor(4.0))
    error = judging.error(torch.tensor([3.0], dtype=torch.float64), one[None])
    assert error.ulp == pytest.approx(1.0) and error.relative == pytest.approx(2.0**-22 / 3)
    assert judging.error(exact[:1], torch.tensor([torch.nan])).ulp == float("inf")
    # Numbers beyond float16's range are infinite in float16, which is correct.
    assert judging.error(torch.tensor([1e6], dtype=torch.float64), torch.tensor([torch.inf]).half()).ulp == 0


def test_shadows_follow_views_and_forget_what_has_ended():
    shadows = Shadows(Lane("float64", torch.device("cpu"), exact=True), set())
    x = torch.arange(6.0, device="dml").view(2, 3)
    shadows.of(x)[0, 1] = 0.1
    assert shadows.of(x[:, 1])[0] == 0.1 and shadows.of(x.t()).shape == (3, 2)
    del x
    for _ in range(40):  # Storages at addresses that were used before.
        assert shadows.of(torch.ones(6, device="dml")).sum() == 6


def test_what_cannot_be_compared():
    with pytest.raises(ValueError, match="no parameters"):
        compare(nn.ReLU(), torch.ones(2))
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="need an optimizer"):
        compare(model, torch.ones(2), steps=2)
    with pytest.raises(ValueError, match="inputs are on meta"):
        compare(model, torch.ones(2, device="meta"))
    with pytest.raises(ValueError, match="call it once"):
        compare(nn.LazyLinear(2), torch.ones(2))
    model.weight = nn.Parameter(torch.empty(1, device="meta").expand(1 << 40, 2))
    with pytest.raises(MemoryError, match="--operators-only"):
        compare(model, torch.ones(2))


def test_calls_with_many_elements_run_uncompared():
    report = compare(nn.Linear(4, 4), torch.ones(8, 4), max_elements=40)
    assert [call.operator for call in report.calls if call.note.startswith("more than 40")]
    assert report.verdict == "none"


def test_an_optimizer_that_has_made_steps():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    before = model.weight.clone()
    report = torch_dml.compare(model, torch.ones(1, 3), lambda out: out.sum(), optimizer, 2)
    assert report.verdict == "none" and torch.equal(model.weight, before)
    assert watch(model) is model


SCRIPT = """
import sys
import torch
import torch_dml
frozen = torch.nn.Linear(4, 4).to("dml").requires_grad_(False)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)).to(sys.argv[1])
if "watch" in sys.argv:
    from torch_dml.compare import watch
    watch(frozen)
if "unlike" in sys.argv:
    model[0].weight.data += torch.tensor(torch.seed() % 1000)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x = frozen(torch.randn(3, 4, device="dml")).to(sys.argv[1])
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step)
"""


def script(folder: Path, *arguments: str) -> tuple[int, Path]:
    path = folder / "script.py"
    path.write_text(SCRIPT)
    page = folder / "page.html"
    before = list(sys.argv)
    status = main(["compare", "-o", str(page), "--json", str(folder / "all.json"), str(path), *arguments])
    assert sys.argv == before
    return status, page


def test_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    status, page = script(tmp_path, "dml")
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert printed.out == "step 0\n"  # Its second step is its last, and is not printed twice.
    assert "stands out: none" in printed.err and "SGD changes" in printed.err
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["model"] == "Sequential" and found["steps"] == 2 and found["healthy"] and found["runs_alike"]
    text = page.read_text()
    assert text.count("<svg") == 3 and "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_script_that_names_its_model_and_one_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert script(tmp_path, "dml", "watch")[0] == 0
    assert "torch_dml.compare.watch" in capsys.readouterr().err
    assert script(tmp_path, "cpu")[0] == 1
    assert "is on cpu, so nothing of it runs on dml" in capsys.readouterr().err


def test_a_script_that_is_not_the_same_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    script(tmp_path, "dml", "unlike")
    assert "does not begin alike in two runs" in " ".join(capsys.readouterr().err.split())
