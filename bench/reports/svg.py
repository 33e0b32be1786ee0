"""Charts as SVG: lines over two logarithmic scales, and bars. Each has its own background, light or dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

COLOURS = ("#4f5bd5", "#d9480f", "#2b8a3e", "#c2255c", "#0b7285", "#946200", "#6b7280")
STYLE = """
  .ground { fill: #ffffff; stroke: #d0d4dc; } text { fill: #1c2230; font: 13px system-ui, sans-serif; }
  .title { font-weight: 600; font-size: 15px; } .grid { stroke: #e3e6ec; } .small { font-size: 11px; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1b1e27; stroke: #3a4050; } text { fill: #e8eaf0; } .grid { stroke: #323848; }
  }
"""
WIDTH = 760
LEFT, RIGHT, TOP, BOTTOM = 70, 230, 46, 46
_NEAREST = 15
"""Minimum distance of the labels at the ends of lines."""

Points = Sequence[tuple[float, float]]


def _document(height: float, title: str, body: Sequence[str]) -> str:
    inside = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{STYLE}</style>\n'
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="6"/>\n'
        f'<text class="title" x="16" y="26">{escape(title)}</text>\n{inside}\n</svg>\n'
    )


def _small(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="small" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def number(value: float) -> str:
    """Format a number briefly: 0.05, 3.4, 120, 12k, 3M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit * 0.99995:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def lines(title: str, across: str, up: str, series: Mapping[str, Points]) -> str:
    """Draw one line for each series, over two logarithmic scales."""
    height = 420
    points = [point for each in series.values() for point in each]
    if not points:
        return _document(height, title, ['<text x="16" y="60">nothing was measured</text>'])
    low_x, high_x = (chosen(point[0] for point in points) for chosen in (min, max))
    low_y, high_y = (chosen(point[1] for point in points) for chosen in (min, max))
    begin_x, end_x = floor(log10(low_x)), max(ceil(log10(high_x)), floor(log10(low_x)) + 1)
    begin_y, end_y = floor(log10(low_y)), max(ceil(log10(high_y)), floor(log10(low_y)) + 1)

    def x(value: float) -> float:
        return LEFT + (log10(value) - begin_x) / (end_x - begin_x) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return height - BOTTOM - (log10(value) - begin_y) / (end_y - begin_y) * (height - TOP - BOTTOM)

    body = []
    for power in range(begin_x, end_x + 1):
        at = x(10**power)
        body += [
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>',
            _small(at, height - BOTTOM + 16, number(10.0**power), "middle"),
        ]
    for power in range(begin_y, end_y + 1):
        at = y(10**power)
        body += [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>',
            _small(LEFT - 8, at + 4, number(10.0**power), "end"),
        ]
    body += [
        _small((LEFT + WIDTH - RIGHT) / 2, height - 10, across, "middle"),
        _small(LEFT + 6, TOP - 4, up),
    ]
    ends = []
    for place, (name, given) in enumerate(series.items()):
        if not given:
            continue
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in given)
        # More lines than colours: the second line of a colour is dashed, the third dotted.
        dashes = ("", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 4"')[place // len(COLOURS) % 3]
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"{dashes}/>')
        body += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3.5" fill="{colour}"/>' for a, b in given]
        ends.append((y(given[-1][1]), x(given[-1][0]), name, colour))
    last = float("-inf")
    earlier: dict[float, float] = {}
    for at, end, name, colour in sorted(ends):
        if end < WIDTH - RIGHT - 1:
            # The line ends before the others, so its label is placed there.
            earlier[end] = max(at, earlier.get(end, float("-inf")) + _NEAREST)
            body.append(_small(end + 10, earlier[end] + 4, name))
            continue
        last = max(at, last + _NEAREST)
        from_to = f'x1="{end + 5:.1f}" y1="{at:.1f}" x2="{WIDTH - RIGHT + 14}" y2="{last:.1f}"'
        body += [f'<line {from_to} stroke="{colour}" stroke-width="2"/>', _small(WIDTH - RIGHT + 18, last + 4, name)]
    return _document(max(height, last + 20), title, body)


def bars(title: str, unit: str, values: Mapping[str, float | str]) -> str:
    """Draw one bar per value, starting at zero; a reason instead of a value is written as text."""
    row, label = 30, 210
    numbers = [value for value in values.values() if not isinstance(value, str)]
    most = max(numbers, default=1) or 1
    body = []
    for place, (name, value) in enumerate(values.items()):
        at = TOP + place * row
        body.append(f'<text x="{label - 8}" y="{at + 17}" text-anchor="end">{escape(name)}</text>')
        if isinstance(value, str):
            body.append(_small(label, at + 17, value))
            continue
        width = max(value / most * (WIDTH - label - 110), 1.5)
        colour = COLOURS[place % len(COLOURS)]
        body += [
            f'<rect x="{label}" y="{at + 3}" width="{width:.1f}" height="{row - 10}" rx="2" fill="{colour}"/>',
            _small(label + width + 6, at + 17, f"{number(value)} {unit}"),
        ]
    return _document(TOP + len(values) * row + 12, title, body)
