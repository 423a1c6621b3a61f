"""
LoRA: peft and transformers' `Trainer` teach a frozen Llama to write sentences, training a few per
cent of its parameters.

The Llama is made on the spot with random weights and reads characters, so nothing is downloaded.
The loss on unseen sentences falls; the adapter is saved, loaded again onto the base model and
merged into it, and the merged model, saved and loaded, must write the same text as the trained one.
The exit status is 1 if it does not, or if an operator ran on the CPU because it has no kernel.

    python examples/finetune_lora.py
    python examples/finetune_lora.py --size 160m --dtype bfloat16 --checkpointing

`--memory` instead measures the memory that models of known sizes need for such a training, and
prints the largest that fits into 8 GiB (the method is in lora_memory.py):

    python examples/finetune_lora.py --memory --dtype bfloat16 --checkpointing
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from pathlib import Path

import torch
from devices import choose, describe, no_fallbacks, peak_memory, reset_peak_memory
from torch import Tensor

try:
    import lora_memory
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer, TrainingArguments, set_seed
    from transformers.utils import logging
except ImportError as error:
    sys.exit(f"{error.name} is missing: pip install peft transformers accelerate")

# vocabulary, width, width of the MLP, layers, heads, key/value heads, whether the input and output
# embeddings are tied
SIZES = {
    "tiny": (64, 64, 192, 2, 4, 2, False),
    "small": (64, 256, 768, 4, 8, 4, False),
    "160m": (32000, 768, 3072, 12, 12, 12, False),
    "tinyllama-1.1b": (32000, 2048, 5632, 22, 32, 4, False),
    "llama-3.2-1b": (128256, 2048, 8192, 16, 32, 8, True),
    "llama-3.2-3b": (128256, 3072, 8192, 28, 24, 8, True),
    "llama-2-7b": (32000, 4096, 11008, 32, 32, 32, False),
}
REAL = [name for name in SIZES if name.endswith("b")]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CHARACTERS = "\n abcdefghijklmnopqrstuvwxyz."
WORDS = (
    ("a", "the", "one", "my"),
    ("small", "red", "quick", "old", "quiet", "round"),
    ("fox", "boat", "robot", "river", "child", "cloud"),
    ("sees", "finds", "follows", "hears", "paints"),
    ("a", "the", "some", "no"),
    ("bird.", "stone.", "tree.", "song.", "lamp.", "door."),
)
# The loss of the default training must fall to this fraction of its initial value.
DEFAULT_STEPS, GOAL = 200, 0.5

Rows = list[dict[str, Tensor]]


def rows(count: int, length: int, seed: int) -> Rows:
    """Return sentences as token ids, `length` per row, in Trainer's format."""
    chance = random.Random(seed)
    text = ""
    while len(text) < count * length:
        text += " ".join(chance.choice(words) for words in WORDS) + "\n"
    ids = torch.tensor([CHARACTERS.index(character) for character in text[: count * length]])
    return [{"input_ids": row, "labels": row} for row in ids.view(count, length)]


def config_of(size: str) -> LlamaConfig:
    """Return the configuration of a Llama whose random weights are large enough that its head can
    distinguish characters.
    """
    vocabulary, width, inner, layers, heads, kv_heads, tied = SIZES[size]
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=tied,
        initializer_range=2 / math.sqrt(width),
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )


def with_adapter(base: LlamaForCausalLM, rank: int) -> PeftModel:
    """Return the model with an adapter on every linear layer; all other weights are frozen."""
    return get_peft_model(base, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"))


def trainer_of(
    model: PeftModel,
    options: argparse.Namespace,
    folder: Path,
    train: Rows,
    evaluate: Rows | None = None,
    **others: object,
) -> Trainer:
    """Return a Trainer, which chooses the device itself; end the program if it chooses another
    device than requested.
    """
    if options.checkpointing:
        others["activation_checkpointing"] = True
    arguments = TrainingArguments(
        output_dir=str(folder / "trainer"),
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=options.batch_size,
        learning_rate=options.lr,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        bf16=options.dtype == "bfloat16",
        fp16=options.dtype == "float16",
        use_cpu=options.device.type == "cpu",
        seed=options.seed,
        report_to=[],
        save_strategy="no",
        **others,
    )
    if arguments.device.type != options.device.type:
        sys.exit(
            f"Trainer takes {arguments.device}, not {options.device}: beside CUDA, hide it with CUDA_VISIBLE_DEVICES= "
            "(empty) in the environment"
        )
    return Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=evaluate)


def write(model: PeftModel | LlamaForCausalLM, start: str, length: int) -> str:
    """Return the model's greedy continuation of a text."""
    ids = torch.tensor([[CHARACTERS.index(character) for character in start]], device=model.device)
    model.eval()
    found = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=length, do_sample=False, use_cache=True
    )
    return "".join(CHARACTERS[i] if i < len(CHARACTERS) else "?" for i in found[0].tolist())


@torch.no_grad()
def logits(model: PeftModel | LlamaForCausalLM, row: dict[str, Tensor]) -> Tensor:
    """Return the model's logits of one row, in float32 on the CPU."""
    found: Tensor = model.eval()(row["input_ids"][None].to(model.device)).logits
    return found.float().cpu()


def merged_again(folder: Path, dtype: torch.dtype, device: torch.device) -> LlamaForCausalLM:
    """Load base and adapter, merge them, save the result, and return it loaded again."""
    base = LlamaForCausalLM.from_pretrained(folder / "base", dtype=dtype).to(device)
    PeftModel.from_pretrained(base, folder / "adapter").merge_and_unload().save_pretrained(folder / "merged")
    return LlamaForCausalLM.from_pretrained(folder / "merged", dtype=dtype).to(device)


def finetune(options: argparse.Namespace, folder: Path) -> int:
    """Train, save, load, merge, compare; return the exit status."""
    device, dtype = options.device, DTYPES[options.dtype]
    set_seed(options.seed)
    base = LlamaForCausalLM(config_of(options.size)).to(dtype)
    base.save_pretrained(folder / "base")
    model = with_adapter(base, options.rank)
    trained, every = model.get_nb_trainable_parameters()
    print(f"{every / 1e6:.2f} million parameters, {trained / 1e6:.3f} million of them ({trained / every:.1%}) trained")

    reset_peak_memory(device)
    trainer = trainer_of(
        model,
        options,
        folder,
        rows(options.steps * options.batch_size, options.length, options.seed),
        rows(4 * options.batch_size, options.length, options.seed + 1),
        max_steps=options.steps,
        logging_steps=max(options.steps // 10, 1),
    )
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()["eval_loss"]
    print(f"loss on unseen sentences: {before:.3f} before, {after:.3f} after {options.steps} steps")
    if (peak := peak_memory(device)) is not None:
        print(f"peak memory: {peak / 2**20:,.1f} MiB")
    print("it writes:", *write(model, "the ", 80).splitlines()[:2], sep="\n  ")

    model.save_pretrained(folder / "adapter")
    sample = trainer.eval_dataset[0]
    expected = logits(model, sample)
    found = logits(merged_again(folder, dtype, device), sample)
    difference = ((found - expected).abs().max() / expected.abs().max()).item()
    print(f"merged, saved and loaded: largest difference of the logits {difference:.1e} of the largest")

    # Merged weights are rounded to the dtype in every layer.
    same = difference <= 20 * torch.finfo(dtype).eps * math.sqrt(base.config.num_hidden_layers)
    learnt = after < before * (GOAL if options.steps >= DEFAULT_STEPS else 1)
    if not same:
        print("the merged model says something else than the trained one", file=sys.stderr)
    if not learnt:
        print("the loss did not fall enough", file=sys.stderr)
    return 0 if no_fallbacks(device) and same and learnt else 1


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=choose, default="auto", help="cpu, dml, cuda (default: what PyTorch finds)")
    parser.add_argument("--size", choices=SIZES, default="small", help="of the Llama (default: %(default)s)")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of the base (default: %(default)s)")
    parser.add_argument("--rank", type=int, default=8, help="of the adapters (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N", help="rows (default: %(default)s)")
    parser.add_argument("--length", type=int, default=64, metavar="N", help="tokens a row (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=5e-3, help="learning rate (default: %(default)s)")
    parser.add_argument(
        "--checkpointing", action="store_true", help="keep less of the forward pass, and compute it twice"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, metavar="DIR", help="keep base, adapter and merged model here")
    parser.add_argument(
        "--memory",
        nargs="?",
        const=",".join(REAL),
        metavar="SIZE,SIZE",
        type=lambda text: text.split(","),
        help=f"measure memory, instead of training (without names: {', '.join(REAL)})",
    )
    options = parser.parse_args()
    if min(options.steps, options.batch_size, options.rank) < 1 or options.length < 2:
        parser.error("--steps, --batch-size and --rank are 1 at least, --length 2")
    if unknown := set(options.memory or []) - set(SIZES):
        parser.error(f"--memory: {', '.join(sorted(unknown))}; there are {', '.join(SIZES)}")
    if options.memory and options.device.type == "cpu":
        parser.error("--memory: PyTorch does not count the CPU's memory")
    return options


def measure_memory(options: argparse.Namespace, folder: Path) -> int:
    """Print the memory needs of the models that --memory names, and return the exit status."""

    def make(config: LlamaConfig, tokens: int) -> Trainer:
        with options.device:
            base = LlamaForCausalLM(config).to(DTYPES[options.dtype])
        row = torch.arange(tokens) % config.vocab_size
        data = [{"input_ids": row, "labels": row}] * 2
        one = argparse.Namespace(**{**vars(options), "batch_size": 1})
        trainer = trainer_of(with_adapter(base, options.rank), one, folder, data, max_steps=2, disable_tqdm=True)
        trainer.remove_callback(PrinterCallback)
        return trainer

    configs = {size: config_of(size) for size in options.memory}
    lora_memory.report(configs, make, options.batch_size * options.length, options.device)
    return 0 if no_fallbacks(options.device) else 1


def main() -> int:
    """Run the command line and return the exit status."""
    options = arguments()
    logging.set_verbosity_error()
    logging.disable_progress_bar()  # of loading
    print(f"{options.device}: {describe(options.device)}, torch {torch.__version__}")
    work = measure_memory if options.memory else finetune
    if options.output is not None:
        return work(options, options.output)
    with tempfile.TemporaryDirectory() as folder:
        return work(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
