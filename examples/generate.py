"""
Text generation: the time per token on each device, and whether the devices generate the same text.

A GPT-2 or a Llama of transformers, made on the spot with random weights, continues a prompt
greedily, one sequence with a key-value cache, as a chat program does. Every device generates the
same number of tokens in float32 and float16; the table has the median of several rounds. In float32
the tokens must equal the CPU's: at the first difference the CPU's two best tokens must have nearly
the same score. The exit status is 1 if they do not, or if an operator ran on the CPU because it has
no kernel.

With `--graph` every device but the CPU has a second row: the step of one token is captured once,
with a cache of fixed size, and then replayed (docs/guide/graphs.md). Such small models are bound by
the host, and a replay needs little host time.

    python examples/generate.py                              # every device of this machine
    python examples/generate.py --graph
    python examples/generate.py --model llama --size large --device dml,cuda --json speed.json
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from devices import choose, describe, no_fallbacks, synchronize

try:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from transformers import (
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedModel,
        StaticCache,
    )
except ImportError as error:
    sys.exit(f"{error.name} is missing: pip install transformers rich")

PROMPT = 16
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
# vocabulary, width, width of the MLP, layers, heads; the large ones are GPT-2's 124M and a Llama of
# 162M.
SIZES = {
    "gpt2": {"tiny": (256, 64, 256, 2, 2), "small": (8192, 256, 1024, 4, 4), "large": (50257, 768, 3072, 12, 12)},
    "llama": {"tiny": (256, 64, 192, 2, 2), "small": (8192, 256, 768, 4, 4), "large": (32000, 768, 3072, 12, 12)},
}


@dataclass
class Speed:
    """Results of one device in one dtype. Times are medians, in ms."""

    device: str
    name: str
    dtype: str
    first_token_ms: float
    token_ms: float
    tokens: list[int]

    @property
    def tokens_per_s(self) -> float:
        """Return the speed after the first token."""
        return 1e3 / self.token_ms


def make_model(family: str, size: str) -> PreTrainedModel:
    """Return a model with random weights that never ends its text."""
    vocabulary, width, inner, layers, heads = SIZES[family][size]
    common = {
        "vocab_size": vocabulary,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        # With weights as small as for training the model would repeat one token.
        "initializer_range": 2 / width**0.5,
        "eos_token_id": None,
        "bos_token_id": None,
        "pad_token_id": None,
    }
    if family == "gpt2":
        return GPT2LMHeadModel(GPT2Config(n_embd=width, n_inner=inner, **common)).eval()
    return LlamaForCausalLM(LlamaConfig(hidden_size=width, intermediate_size=inner, **common)).eval()


class Eager:
    """Continues a prompt with transformers' `generate`."""

    def __init__(self, model: PreTrainedModel, prompt: torch.Tensor) -> None:
        """Take a prompt `[1, length]` on the model's device."""
        self._model, self._prompt = model, prompt

    def __call__(self, steps: int) -> list[int]:
        """Return `steps` new tokens."""
        found: torch.Tensor = self._model.generate(
            self._prompt,
            attention_mask=torch.ones_like(self._prompt),
            max_new_tokens=steps,
            do_sample=False,
            use_cache=True,
        )
        return found[0, self._prompt.shape[1] :].tolist()


class Captured:
    """The same, with the step of one token captured and replayed. Each token is read back before
    the next step starts.
    """

    def __init__(self, model: PreTrainedModel, prompt: torch.Tensor, most: int) -> None:
        """Take a prompt `[1, length]` on the model's device, for at most `most` new tokens."""
        self._model, self._prompt = model, prompt
        self._cache = StaticCache(config=model.config, max_cache_len=prompt.shape[1] + most)
        self._token = self._next(prompt)
        module = torch.get_device_module(prompt.device)
        for _ in range(2):  # Objects made at first use must exist before the capture.
            self._token.copy_(self._next(self._token))
        self._graph = module.CUDAGraph() if prompt.device.type == "cuda" else module.Graph()
        with module.graph(self._graph):
            self._token.copy_(self._next(self._token))

    @torch.no_grad()
    def _next(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._model(input_ids=tokens, past_key_values=self._cache, use_cache=True).logits
        return logits[:, -1].argmax(-1, keepdim=True)

    def __call__(self, steps: int) -> list[int]:
        """Return `steps` new tokens."""
        self._cache.reset()
        self._token.copy_(self._next(self._prompt))
        found = [int(self._token.item())]
        for _ in range(steps - 1):
            self._graph.replay()
            found.append(int(self._token.item()))
        return found


@dataclass
class Runner:
    """A generator on one device in one dtype, and the times of its rounds in ms."""

    name: str
    write: Eager | Captured
    device: torch.device
    steps: int
    first: list[float] = field(default_factory=list)
    each: list[float] = field(default_factory=list)

    def round(self) -> None:
        """Time one token, and all of them: the difference is the time of the others."""
        one, every = self._timed(1), self._timed(self.steps)
        self.first.append(one)
        self.each.append((every - one) / (self.steps - 1))

    def _timed(self, steps: int) -> float:
        gc.collect()
        synchronize(self.device)
        started = time.perf_counter()
        self.write(steps)
        return (time.perf_counter() - started) * 1e3


def runners_of(
    model: PreTrainedModel, prompt: torch.Tensor, device: torch.device, options: argparse.Namespace
) -> list[Runner]:
    """Return a device's generators: `generate`, and replays of a graph if requested."""
    prompt = prompt.to(device)
    found = [Runner(str(device), Eager(model, prompt), device, options.steps)]
    if options.graph and device.type != "cpu":
        found.append(Runner(f"{device}, graph", Captured(model, prompt, options.steps), device, options.steps))
    return found


def measure(
    model: PreTrainedModel, prompt: torch.Tensor, places: list[torch.device], options: argparse.Namespace
) -> list[Speed]:
    """Return the speeds in the order of the dtypes. The devices take turns, so that changes of the
    machine's load affect all of them.
    """
    speeds = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        count = sum(1 + (options.graph and place.type != "cpu") for place in places)
        task = progress.add_task("", total=len(options.dtype) * (len(places) + count * options.repeats))
        for dtype in options.dtype:
            runners, said = [], []
            for device in places:
                progress.update(task, description=f"{device} {dtype}: warm-up")
                for runner in runners_of(copy_of(model, device, DTYPES[dtype]), prompt, device, options):
                    said.append(runner.write(options.steps))  # also compiles all kernels
                    runners.append(runner)
                progress.advance(task)
            for _ in range(options.repeats):
                for runner in runners:
                    progress.update(task, description=f"{runner.name} {dtype}")
                    runner.round()
                    progress.advance(task)
            for runner, tokens in zip(runners, said, strict=True):
                first, each = statistics.median(runner.first), statistics.median(runner.each)
                speeds.append(Speed(runner.name, describe(runner.device), dtype, first, each, tokens))
    return speeds


def copy_of(model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> PreTrainedModel:
    """Return a copy of the model on another device or in another dtype."""
    other = type(model)(model.config)
    other.load_state_dict(model.state_dict())
    return other.to(device, dtype).eval()


def first_difference(expected: list[int], found: list[int]) -> int | None:
    """Return the index of the first difference of two texts, or None."""
    return next((i for i, (one, other) in enumerate(zip(expected, found, strict=True)) if one != other), None)


def judge(model: PreTrainedModel, prompt: torch.Tensor, expected: list[int], speed: Speed) -> str:
    """Return why a float32 text is wrong, or an empty text if it is right. `expected` is the CPU's
    text; `model` is on the CPU.
    """
    place = first_difference(expected, speed.tokens)
    if place is None:
        return ""
    text = torch.cat([prompt, torch.tensor([expected[:place]], dtype=torch.long)], dim=1)
    with torch.no_grad():
        logits = model(text).logits[0, -1]
    gap = (logits[expected[place]] - logits[speed.tokens[place]]).item() / logits.abs().max().item()
    print(f"{speed.device} parts from the CPU at token {place}, where its choice is worse by {gap:.1e} of the largest")
    return "" if gap < 1e-4 else f"{speed.device} says something else than the CPU"


def table_of(speeds: list[Speed], reference: list[int], fastest: str) -> Table:
    """Return the table; ratios are to the device `fastest`, in the same dtype."""
    table = Table()
    base = {speed.dtype: speed.token_ms for speed in speeds if speed.device == fastest}
    titles = ["device", "dtype", "first token ms", "ms a token", "tokens/s", f"of {fastest}'s time", "as the CPU"]
    for title in titles:
        table.add_column(title, justify="left" if title in ("device", "dtype") else "right")
    for speed in speeds:
        place = first_difference(reference, speed.tokens)
        table.add_row(
            speed.device,
            speed.dtype,
            f"{speed.first_token_ms:.2f}",
            f"{speed.token_ms:.3f}",
            f"{speed.tokens_per_s:,.1f}",
            f"{speed.token_ms / base[speed.dtype]:.2f}",
            "all" if place is None else f"first {place}",
        )
    return table


def places_of(text: str) -> list[torch.device]:
    """Return devices by their names, separated by commas; "auto" means all of this machine."""
    if text != "auto":
        return [choose(name) for name in text.split(",")]
    found = [torch.device("cpu")]
    for name in ("cuda", "dml"):
        try:
            found.append(choose(name))
        except argparse.ArgumentTypeError:
            continue
    return found


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=places_of, default="auto", metavar="A,B", help="cpu, dml, cuda (default: all)")
    parser.add_argument("--model", choices=SIZES, default="gpt2", help="(default: %(default)s)")
    parser.add_argument("--size", choices=SIZES["gpt2"], default="small", help="(default: %(default)s)")
    parser.add_argument(
        "--dtype", type=lambda text: text.split(","), default="float32,float16", help="(default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=64, metavar="N", help="tokens (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="rounds (default: %(default)s)")
    parser.add_argument("--graph", action="store_true", help="replay a captured step too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    if options.steps < 2 or options.repeats < 1:
        parser.error("--steps is 2 at least, --repeats 1")
    if unknown := set(options.dtype) - set(DTYPES):
        parser.error(f"--dtype: {', '.join(sorted(unknown))}; there are {', '.join(DTYPES)}")
    return options


def main() -> int:
    """Measure, compare, and return the exit status."""
    options, console = arguments(), Console()
    torch.manual_seed(options.seed)
    model = make_model(options.model, options.size)
    prompt = torch.randint(1, model.config.vocab_size, (1, PROMPT))
    count = sum(parameter.numel() for parameter in model.parameters())
    console.print(f"{options.model} {options.size}: {count / 1e6:.1f} million parameters, torch {torch.__version__}")
    places: list[torch.device] = options.device
    for device in places:
        console.print(f"{device}: {describe(device)}", highlight=False)
    reference = Eager(model, prompt)(options.steps)
    speeds = measure(model, prompt, places, options)
    fastest = next((str(device) for device in places if device.type == "cuda"), str(places[0]))
    console.print(table_of(speeds, reference, fastest))
    faults = [judge(model, prompt, reference, speed) for speed in speeds if speed.dtype == "float32"]
    for fault in filter(None, faults):
        print(fault, file=sys.stderr)
    native = all([no_fallbacks(device) for device in places])
    if options.json is not None:
        figures = {"model": options.model, "size": options.size, "parameters": count, "torch": torch.__version__}
        options.json.write_text(json.dumps({**figures, "speeds": [asdict(speed) for speed in speeds]}, indent=1))
    return 0 if native and not any(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
