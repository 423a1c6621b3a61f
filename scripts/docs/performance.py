"""Generates docs/performance.md with its plots, and README's figures, from
docs/data/performance/*.json.

Each file is the output of `python -m torch_dml bench SUITES --json FILE`, optionally with a `note`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from marked import replace
from plot import bars

TITLES = {
    "models": "Training steps of whole networks",
    "train": "Training steps of small networks",
    "graph": "Graphs of small networks",
    "compile": "torch.compile",
    "ops": "Operators",
    "rows": "Rows, random numbers, sorting and lists of tensors",
    "matmul": "Matrix products",
    "linear": "Matrix products of real networks",
    "attention": "Attention",
    "conv": "Convolutions of ResNet-50",
    "fft": "Fourier transforms of complex64",
    "linalg": "Linear algebra in float32",
    "sparse": "Sparse tensors in float32",
}
HEAD = """# Performance

Current figures, each with the GPU, the date and the command that measured it. *Speed* is relative
to PyTorch's eager mode on CUDA on the same GPU in the same run, without TF32: 1.0 is equal, 2.0 is
twice as fast, 0.5 is half as fast. Written by `python scripts/docs` from the JSON files in
[docs/data/performance](data/performance), which `python -m torch_dml bench` writes; do not edit.

- Only NVIDIA's H100 and H200 were measured so far. What to expect of other GPUs:
  [rooflines](design/rooflines.md).
- The time of small operators is the host's. Hosts of this kind differ by a third in speed, so such
  figures compare within one run only.
- How every figure was measured, earlier figures, and experiments that failed:
  [the notebook](notebook/2026-11.md).
- Measure your own GPU with `python -m torch_dml bench`; the suites and options are in
  [the command line's reference](reference/command-line.md#bench).
"""
# The rows that README shows: a name, and the row's name for each precision.
NETWORKS = (
    ("ResNet-50, batch 32", "float32", "mixed with float16"),
    ("MobileNet-v3-large, batch 32", "float32", "mixed with float16"),
    ("ConvNeXt-T, batch 16", "float32", "mixed with bfloat16"),
    ("ViT-B/16, batch 32", "float32", "mixed with bfloat16"),
    ("GPT of 124M, 8x1024", "float32", "mixed with bfloat16"),
)
README = {
    "README.md": ("training step", "float32", "mixed precision", "Speed relative to CUDA on the same {gpu}, {date}:"),
    "README.zh.md": ("训练步", "float32", "混合精度", "相对于同一块 {gpu} 上 CUDA 的速度（{date}）："),  # noqa: RUF001
}


def files(root: Path) -> dict[Path, str]:
    """Return the page, its plots, and both READMEs."""
    paths = sorted((root / "docs" / "data" / "performance").glob("*.json"))
    reports = {path.stem: json.loads(path.read_text("utf-8")) for path in paths}
    order = list(TITLES)
    names = sorted(reports, key=lambda name: (min(map(order.index, reports[name]["suites"])), name))
    found = {root / "docs" / "performance.md": "\n".join([HEAD, *(_section(name, reports[name]) for name in names)])}
    for name in names:
        found[root / "docs" / "images" / f"performance-{name}.svg"] = bars(_speeds(reports[name]))
    for page, words in README.items():
        text = (root / page).read_text("utf-8")
        found[root / page] = replace(text, "performance", _readme(reports["models"], *words))
    return found


def _section(name: str, report: dict[str, Any]) -> str:
    suites = list(report["suites"])
    title = ", ".join(TITLES[suite] for suite in suites)
    if name not in suites:
        title += f": {name.removeprefix(f'{suites[0]}-').replace('-', ' ')}"
    devices = " ".join(f"--device {device}" for device in report["devices"])
    lines = [
        f"## {title}\n",
        f"- GPU: {report['devices']['dml']}",
        f"- date: {report['date'][:10]}, torch {report['torch']}",
        f"- command: `python -m torch_dml bench {' '.join(suites)} {devices}`",
    ]
    lines += [f"- {report['note'].rstrip('.')}." for _ in [0] if "note" in report]
    lines += [f"\n![{title}: speed relative to CUDA](images/performance-{name}.svg)\n"]
    rows = [row for suite in suites for row in report["suites"][suite]]
    if rows:
        lines += ["| what | unit | dml | CUDA | speed |\n|---|---|---:|---:|---:|"]
        lines += [_row(row) for row in rows]
    means = [mean for suite in suites for mean in report["means"][suite]["cuda"]]
    if means:
        lines += ["| group | ratios | geometric mean of the speed |\n|---|---:|---:|"]
        lines += [f"| {mean['group']} | {mean['count']} | {mean['ratio']:.2f} |" for mean in means]
    return "\n".join(lines) + "\n"


def _row(row: dict[str, Any]) -> str:
    ratio = row["speedup"].get("cuda")
    cells = [_figure(row["values"].get(device)) for device in ("dml", "cuda")]
    return f"| {row['name']} | {row['unit']} | {' | '.join(cells)} | {'' if ratio is None else f'{ratio:.2f}'} |"


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _speeds(report: dict[str, Any]) -> dict[str, float]:
    speeds = {
        row["name"].removesuffix(": one step"): row["speedup"]["cuda"]
        for rows in report["suites"].values()
        for row in rows
        if "cuda" in row["speedup"]
    }
    return speeds or {
        f"{mean['group']}, geometric mean": mean["ratio"]
        for means in report["means"].values()
        for mean in means["cuda"]
    }


def _readme(report: dict[str, Any], step: str, single: str, mixed: str, sentence: str) -> str:
    speeds = {row["name"]: row["speedup"]["cuda"] for row in report["suites"]["models"] if row["speedup"]}
    gpu = report["devices"]["dml"].split(",")[0]
    lines = [
        sentence.format(gpu=gpu, date=report["date"][:10]),
        "",
        f"| {step} | {single} | {mixed} |\n|---|---:|---:|",
    ]
    for name, *kinds in NETWORKS:
        cells = [f"{speeds[f'{name}, {kind}: one step']:.2f}" for kind in kinds]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
