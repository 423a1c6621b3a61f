"""
How much memory training a Llama with LoRA takes, measured on small pieces of it, and which models
fit into 8 GiB.

A device's peak memory while it trains n layers on t tokens is a + b n + c t + d n t: base weights,
the adapter and Adam's state are proportional to the layers; what the forward pass saves for the
backward pass is proportional to the tokens, partly in each layer. So two steps with 1 and 2 layers
of the model's real width and vocabulary, on 32 and 64 tokens, give a, b, c and d. A fifth
measurement, 3 layers on 96 tokens, tests the prediction. Models that do not fit on the device are
measured too, on any device on which three of their layers fit.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from transformers import LlamaConfig, Trainer

# Makes a Trainer for two steps of a model on one row with the given number of tokens.
Make = Callable[[LlamaConfig, int], Trainer]

BUDGET = 8 * 2**30
LAYERS, TOKENS = (1, 2), (32, 64)
CHECK = (3, 96)


@dataclass(frozen=True)
class Footprint:
    """Bytes on the device: of the frozen weights; of adapter and optimizer after a step; the
    peak.
    """

    base: int
    state: int
    peak: int
    base_parameters: int
    adapter_parameters: int


def measure(make: Make, config: LlamaConfig, layers: int, tokens: int, device: torch.device) -> Footprint:
    """Train `layers` layers of a model for two steps on rows of `tokens` tokens."""
    memory = torch.get_device_module(device)
    gc.collect()
    memory.empty_cache()
    before = memory.memory_allocated(device)
    config = copy.deepcopy(config)
    config.num_hidden_layers = layers
    trainer = make(config, tokens)
    gc.collect()
    loaded = memory.memory_allocated(device) - before
    memory.empty_cache()
    memory.reset_peak_memory_stats(device)
    trainer.train()
    memory.synchronize(device)
    parameters = list(trainer.model.parameters())
    adapter = [parameter for parameter in parameters if parameter.requires_grad]
    base = loaded - sum(parameter.nbytes for parameter in adapter)
    return Footprint(
        base,
        memory.memory_allocated(device) - before - base,
        memory.max_memory_allocated(device) - before,
        sum(parameter.numel() for parameter in parameters if not parameter.requires_grad),
        sum(parameter.numel() for parameter in adapter),
    )


def along(values: list[float], ends: tuple[int, int], at: int) -> float:
    """Return the value at `at` of the line through two values at `ends`."""
    return values[0] + (values[1] - values[0]) * (at - ends[0]) / (ends[1] - ends[0])


@dataclass(frozen=True)
class Prediction:
    """The measurements of one model, by layers and tokens."""

    measured: dict[tuple[int, int], Footprint]

    def at(self, figure: str, layers: int, tokens: int) -> float:
        """Return a figure of Footprint at other layers and tokens."""
        by_tokens = [along([getattr(self.measured[n, t], figure) for n in LAYERS], LAYERS, layers) for t in TOKENS]
        return along(by_tokens, TOKENS, tokens)

    @property
    def error(self) -> float:
        """Return the relative error of the prediction for CHECK."""
        return self.at("peak", *CHECK) / self.measured[CHECK].peak - 1


def report(configs: dict[str, LlamaConfig], make: Make, tokens: int, device: torch.device) -> None:
    """Measure the models and print the memory they need for the given number of tokens per step,
    and the largest that fits.
    """
    places = [(layers, count) for layers in LAYERS for count in TOKENS] + [CHECK]
    predictions: dict[str, Prediction] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(configs) * len(places))
        for name, config in configs.items():
            measured = {}
            for layers, count in places:
                progress.update(task, description=f"{name}: {layers} layers, {count} tokens")
                measured[layers, count] = measure(make, config, layers, count, device)
                progress.advance(task)
            predictions[name] = Prediction(measured)
    for name, found in predictions.items():
        print(describe(name, found, configs[name].num_hidden_layers, tokens))
    Console().print(table_of(configs, predictions, tokens))
    fits = [
        (found.at("base_parameters", configs[name].num_hidden_layers, tokens), name)
        for name, found in predictions.items()
        if found.at("peak", configs[name].num_hidden_layers, tokens) <= BUDGET
    ]
    largest = f"{max(fits)[1]}, {max(fits)[0] / 1e9:.2f} billion parameters" if fits else "none"
    print(f"the largest of these that fits into {BUDGET / 2**30:.0f} GiB: {largest}")


def describe(name: str, found: Prediction, layers: int, tokens: int) -> str:
    """Return the memory per parameter and per token."""
    base, state, parameters, adapter, peak, more = (
        found.at(figure, layers, count)
        for figure, count in (
            ("base", tokens),
            ("state", tokens),
            ("base_parameters", tokens),
            ("adapter_parameters", tokens),
            ("peak", tokens),
            ("peak", tokens + 1),
        )
    )
    return (
        f"{name}: {base / parameters:.2f} bytes a frozen parameter, {state / adapter:.2f} one of the "
        f"{adapter / 1e6:.1f} million of the adapter, {(more - peak) / 2**10:,.0f} KiB a token; predicted for "
        f"{CHECK[0]} layers and {CHECK[1]} tokens: {found.error:+.1%} of what was measured"
    )


def table_of(configs: dict[str, LlamaConfig], predictions: dict[str, Prediction], tokens: int) -> Table:
    """Return a row for each model, in GiB."""
    table = Table(title=f"GiB, {tokens} tokens a step", title_justify="left")
    table.add_column("model")
    for title in ("base", "adapter and Adam", "the rest", "peak", f"fits into {BUDGET / 2**30:.0f}"):
        table.add_column(title, justify="right")
    for name, found in predictions.items():
        layers = configs[name].num_hidden_layers
        base, state, peak = (found.at(figure, layers, tokens) for figure in ("base", "state", "peak"))
        parts = (base, state, peak - base - state, peak)
        table.add_row(name, *(f"{part / 2**30:.3f}" for part in parts), "yes" if peak <= BUDGET else "no")
    return table
