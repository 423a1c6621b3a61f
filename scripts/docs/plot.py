"""Draws bar charts as SVG, in the colours of the reader's scheme."""

from __future__ import annotations

import math
from html import escape

WIDTH, LABEL, RIGHT, ROW, TOP = 760, 330, 60, 20, 26
# The axis is logarithmic: bars of factors 2 and 1/2 are equally long.
LEAST, MOST = 1 / 4, 8.0
TICKS = (0.25, 0.5, 1, 2, 4, 8)
STYLE = """text{font:12px system-ui,sans-serif;fill:#333}.axis{fill:#777}.tick{stroke:#ddd}.one{stroke:#777}
.faster{fill:#2a9d6f}.slower{fill:#5b8def}
@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{fill:#999}.tick{stroke:#444}.one{stroke:#999}}"""


def bars(speeds: dict[str, float]) -> str:
    """Return a chart with a bar for each speed: to the right of 1.0 if faster, to the left if
    slower.
    """
    height = TOP + ROW * len(speeds) + 6
    title = "Speed relative to CUDA, on a logarithmic axis; 1 is equal."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<title>{title}</title>\n<style>{STYLE}</style>",
    ]
    for tick in TICKS:
        x = _x(tick)
        kind = "one" if tick == 1 else "tick"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height}"/>')
        parts.append(f'<text class="axis" x="{x:.1f}" y="14" text-anchor="middle">{tick:g}x</text>')
    for number, (name, speed) in enumerate(speeds.items()):
        y = TOP + ROW * number
        low, high = sorted((_x(1), _x(speed)))
        kind = "faster" if speed >= 1 else "slower"
        parts.append(f'<text x="{LABEL - 8}" y="{y + 12}" text-anchor="end">{escape(_short(name))}</text>')
        parts.append(f'<rect class="{kind}" x="{low:.1f}" y="{y + 2}" width="{high - low:.1f}" height="13"/>')
        parts.append(f'<text x="{high + 5:.1f}" y="{y + 12}">{speed:.2f}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _x(speed: float) -> float:
    share = math.log(min(max(speed, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LABEL + share * (WIDTH - RIGHT - LABEL)


def _short(name: str) -> str:
    return name if len(name) <= 52 else f"{name[:51]}…"
