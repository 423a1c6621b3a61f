"""Plots as SVG, with logarithmic vertical axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 860, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 160, 14, 34
COLOURS = ("#c0392b", "#2471a3", "#7d8c93", "#b7950b")
_LEAST = 1e-12


def plot(
    series: Mapping[str, Sequence[float]],
    abscissa: str,
    labels: Sequence[str],
    *,
    lines: bool,
    marked: Sequence[int] = (),
) -> str:
    """One point of each series for each label; zeros are at the lower edge, infinities at the upper
    edge.
    """
    finite = [value for values in series.values() for value in values if _LEAST < value < math.inf]
    low = math.floor(math.log10(min(finite, default=1e-8)))
    high = max(low + 1, math.ceil(math.log10(max(finite, default=1e-7))))
    count = max(len(labels), 1)

    def x(index: int) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (index + 0.5) / count

    def y(value: float) -> float:
        power = low if value <= _LEAST else high if not math.isfinite(value) else math.log10(value)
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (high - min(max(power, low), high)) / (high - low)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">']
    for power in range(low, high + 1, max(1, (high - low) // 8)):
        at = y(10.0**power)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(abscissa)}</text>')
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        at = _TOP + 14 + 18 * number
        parts.append(f'<circle cx="{WIDTH - _RIGHT + 16}" cy="{at - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - _RIGHT + 26}" y="{at}">{escape(name)}</text>')
        if lines:
            path = " ".join(f"{x(index):.1f},{y(value):.1f}" for index, value in enumerate(values))
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for index, value in enumerate(values):
            title = f"<title>{escape(labels[index])}: {escape(name)} {value:.3g}</title>"
            size = 5 if number == 0 and index in marked else 2.2
            parts.append(f'<circle cx="{x(index):.1f}" cy="{y(value):.1f}" r="{size}" fill="{colour}">{title}</circle>')
    return "".join([*parts, "</svg>"])
