"""torch_dml.PolicyRunner: it gives the model's own results, for all kinds of observations and
calls.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
import torch_dml
from torch import nn
from torch_dml import PolicyRunner

from tests.support.processes import run_python


class Policy(nn.Module):
    """A policy over a dictionary of observations, with two results."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.normal = nn.Linear(6, 32), nn.BatchNorm1d(32)
        self.action, self.value = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, observation: dict[str, torch.Tensor]) -> dict[str, Any]:
        hidden = self.normal(torch.tanh(self.body(torch.cat([observation["joints"], observation["target"]], 1))))
        return {"action": self.action(hidden), "value": self.value(hidden).squeeze(1), "name": "policy"}


def make() -> Policy:
    torch.manual_seed(3)
    return Policy()


def observations(count: int) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(count)
    return {"joints": numbers.standard_normal((count, 4)), "target": numbers.standard_normal((count, 2), np.float32)}


def expected(model: nn.Module, batch: dict[str, np.ndarray]) -> dict[str, Any]:
    with torch.no_grad():
        return model.eval()({name: torch.as_tensor(array).float() for name, array in batch.items()})


def check(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found["name"] == "policy"
    for name in ("action", "value"):
        assert isinstance(found[name], (np.ndarray, np.generic))
        np.testing.assert_allclose(found[name], wanted[name].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_batches(graphs: bool, count: int) -> None:
    model = make()
    fallbacks = torch_dml.fallback_count()
    with PolicyRunner(model, graphs=graphs) as runner:
        assert runner.device == torch.device("dml", 0)
        kept = []
        for shift in range(5):
            batch = {name: array + shift for name, array in observations(count).items()}
            kept.append((runner(batch), expected(model, batch)))
        for found, wanted in kept:  # Results belong to the caller: later calls do not overwrite them.
            check(found, wanted)
        captured = [shape._graph is not None for shape in runner._shapes.values()]
        assert captured == [graphs]
    assert torch_dml.fallback_count() == fallbacks
    assert next(model.parameters()).device.type == "cpu"


def test_one_observation_of_tensors() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
    with PolicyRunner(model) as runner:
        for index in range(5):
            row = torch.full((5,), index / 4.0)
            found = runner.predict(row)
            assert isinstance(found, torch.Tensor) and found.device.type == "cpu"
            torch.testing.assert_close(found, model(row).detach())


def test_what_cannot_be_captured_runs_all_the_same() -> None:
    class Reads(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.sum().item() > 0 else -x

    with PolicyRunner(Reads()) as runner:
        for value in (1.0, -1.0, 2.0, -2.0, 3.0, -3.0):
            x = torch.full((2, 3), value)
            assert torch.equal(runner(x), x * 2 if value > 0 else -x)


def test_threads_that_submit_get_their_own_results() -> None:
    model = make()
    batch = observations(40)
    wanted = expected(model, batch)
    with PolicyRunner(model, max_batch=16, max_wait=0.01) as runner:
        sizes = []
        run = runner._run
        runner._run = lambda tree: sizes.append(len(tree["joints"])) or run(tree)  # type: ignore[method-assign]
        found: dict[int, Any] = {}

        def ask(first: int) -> None:
            for row in range(first, first + 10):
                one = {name: array[row] for name, array in batch.items()}
                found[row] = runner.submit(one).result(60)

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(0, 40, 10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for row in range(40):
            check(found[row], {name: value[row] if name != "name" else value for name, value in wanted.items()})
        assert all(size & (size - 1) == 0 and size <= 16 for size in sizes) and len(sizes) < 40
        futures = [runner.submit({"joints": np.zeros(4), "target": np.zeros(2)}) for _ in range(5)]
    assert all(future.done() for future in futures)
    with pytest.raises(RuntimeError, match="closed"):
        runner.submit(batch)


def test_bad_observations_reach_who_submitted_them() -> None:
    with PolicyRunner(nn.Linear(3, 2), max_wait=0.05) as runner:
        good, bad, worse = runner.submit(torch.ones(3)), runner.submit(torch.ones(4)), runner.submit([1.0, 2.0, 3.0])
        assert good.result(60).shape == (2,)
        with pytest.raises(RuntimeError, match=r"shapes|size"):
            bad.result(60)
        with pytest.raises(TypeError, match="arrays and tensors, but got float"):
            worse.result(60)
        with pytest.raises(TypeError, match="got str"):
            runner("left")
    with pytest.raises(TypeError, match="expected a module"):
        PolicyRunner(3)
    with pytest.raises(ValueError, match="max_batch"):
        PolicyRunner(nn.Linear(1, 1), max_batch=0)


def test_refresh_takes_new_weights_into_captured_graphs() -> None:
    model, x = nn.Linear(4, 2), torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    with PolicyRunner(model) as runner:
        for _ in range(4):
            before = runner(x)
        with torch.no_grad():
            model.weight.mul_(2)
        assert torch.equal(runner(x), before)
        runner.refresh()
        torch.testing.assert_close(runner(x), model(x).detach())


def test_many_shapes_keep_few_buffers() -> None:
    with PolicyRunner(nn.Linear(2, 2)) as runner:
        for count in range(1, 40):
            assert runner(torch.ones(count, 2)).shape == (count, 2)
        assert len(runner._shapes) <= 16


def test_goes_on_on_the_cpu_after_the_device_is_lost() -> None:
    code = """
import warnings, torch, torch_dml
from torch import nn
from torch_dml import engine
warnings.simplefilter("error")
model, x = nn.Linear(4, 2), torch.ones(3, 4)
wanted = model(x).detach()
runner = torch_dml.PolicyRunner(model)
for _ in range(4):
    torch.testing.assert_close(runner(x), wanted)
engine.call("dml_simulate_loss", 0)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        torch.testing.assert_close(runner(x), wanted)
        torch.testing.assert_close(runner.submit(x[0]).result(60), wanted[0])
print([str(one.message)[:50] for one in seen], runner.device)
with torch.no_grad():
    model.bias.add_(1)
runner.refresh()
torch.testing.assert_close(runner(x), wanted + 1)
runner.close()
"""
    done = run_python("-c", code, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['PolicyRunner goes on on the CPU, since dml:0 fails'] cpu"


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_a_policy_of_stable_baselines(algorithm: str) -> None:
    library = pytest.importorskip("stable_baselines3")
    gymnasium = pytest.importorskip("gymnasium")
    model = getattr(library, algorithm)("MlpPolicy", gymnasium.make("Pendulum-v1"), device="cpu", seed=1)
    observations = np.random.default_rng(1).standard_normal((6, 3), np.float32)
    for given in (model, model.policy):
        with PolicyRunner(given) as runner:
            for _ in range(4):
                wanted, _ = model.predict(observations, deterministic=True)
                np.testing.assert_allclose(runner(observations), wanted, rtol=1e-5, atol=1e-5)
                single, _ = model.predict(observations[0], deterministic=True)
                np.testing.assert_allclose(runner.predict(observations[0]), single, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(runner.submit(observations[0]).result(60), single, rtol=1e-5, atol=1e-5)
