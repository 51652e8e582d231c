"""A graph of steps as a picture: a row for each wave of steps, a line for each step that is waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = ["draw_steps"]

_BOX_W, _BOX_H, _GAP_X, _GAP_Y, _MARGIN = 132, 30, 16, 22, 16
_STYLE = """
text { font: 13px sans-serif; fill: #1f2328; text-anchor: middle }
.paper { fill: #ffffff; stroke: #d0d7de }
.line { fill: none; stroke: #8c959f; stroke-width: 1.4 }
.talos { fill: #ddf4ff; stroke: #54aeff }
.kubernetes { fill: #dafbe1; stroke: #4ac26b }
.before { fill: #fff8c5; stroke: #d4a72c }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .paper { fill: #0d1117; stroke: #30363d }
  .line { stroke: #7d8590 }
  .talos { fill: #0c2d6b; stroke: #388bfd }
  .kubernetes { fill: #033a16; stroke: #2ea043 }
  .before { fill: #4b2900; stroke: #bb8009 }
}
"""


def draw_steps(after: Mapping[str, Sequence[str]], kinds: Mapping[str, str], title: str) -> str:
    """Draw steps, each below all that come before it.

    Args:
        after: Each step with those that come before it; a step follows those in this order.
        kinds: The class of each step: `before`, `talos` or `kubernetes`.
        title: What the picture shows.
    """
    level = _find_waves(after)
    last = max(level.values())
    waves = [[name for name, at in level.items() if at == number] for number in range(last + 1)]
    widest = max(map(len, waves))
    place = {
        name: (
            _MARGIN + (widest - len(names)) * (_BOX_W + _GAP_X) / 2 + number * (_BOX_W + _GAP_X),
            _MARGIN + wave * (_BOX_H + _GAP_Y),
        )
        for wave, names in enumerate(waves)
        for number, name in enumerate(names)
    }
    width = 2 * _MARGIN + widest * (_BOX_W + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + len(waves) * (_BOX_H + _GAP_Y) - _GAP_Y
    lines = [_draw_line(place[one], place[name]) for name, names in _reduce(after).items() for one in names]
    boxes = [_draw_box(name, kinds[name], place[name]) for name in after]
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    paper = f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    top = (head, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", paper)
    return "\n".join((*top, *lines, *boxes, "</svg>")) + "\n"


def _find_waves(after: Mapping[str, Sequence[str]]) -> dict[str, int]:
    level: dict[str, int] = {}
    for name, before in after.items():
        level[name] = max((level[one] + 1 for one in before), default=0)
    return level


def _reduce(after: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Leave out what follows from another line: a step that a step before waits for already."""
    all_before: dict[str, set[str]] = {}
    for name, before in after.items():
        all_before[name] = set(before).union(*(all_before[one] for one in before))
    return {
        name: [one for one in before if not any(one in all_before[other] for other in before)]
        for name, before in after.items()
    }


def _draw_line(start: tuple[float, float], end: tuple[float, float]) -> str:
    x, y = start[0] + _BOX_W / 2, start[1] + _BOX_H
    to_x, to_y = end[0] + _BOX_W / 2, end[1]
    # Straight down beside the boxes between, then across above the last one.
    return f'<path class="line" d="M {x:g} {y:g} V {to_y - _GAP_Y / 2:g} H {to_x:g} V {to_y:g}"/>'


def _draw_box(name: str, kind: str, place: tuple[float, float]) -> str:
    x, y = place
    box = f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{_BOX_W}" height="{_BOX_H}" rx="6"/>'
    text = f'<text x="{x + _BOX_W / 2:g}" y="{y + _BOX_H / 2 + 4.5:g}">{escape(name)}</text>'
    return box + text
