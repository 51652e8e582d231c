"""What a program shows on a terminal, as text and as a picture.

`screenshot` runs a program on a pseudo-terminal of a given size, lets a terminal emulator read what it draws,
and returns the screen as it is at the end, or at the moment that `at` chooses. `Screen.to_svg` draws it, and
`normalise` takes out of its text what differs from run to run.
"""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Literal

import pyte
from pyte import graphics
from tests.support.terminal import TerminalProcess

# The emulator does not know faint text, and nothing here blinks: one stands for the other.
graphics.TEXT[2] = "+blink"

# Only to end a program that hangs.
LONGEST_S = 120.0
# A frame is drawn whole: whoever looks waits until nothing more follows at once.
FRAME_S = 0.02

CHARACTER_W, LINE_H, MARGIN, TITLE_H = 8.4, 19.0, 14.0, 34.0
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# Name of a colour on the terminal: on light, on dark.
COLOURS = {
    "black": ("#24292f", "#8b949e"),
    "red": ("#b42318", "#ff7b72"),
    "green": ("#1a6f37", "#56d364"),
    "brown": ("#8a5a00", "#e3b341"),
    "blue": ("#0b57d0", "#79c0ff"),
    "magenta": ("#7d3bb8", "#d2a8ff"),
    "cyan": ("#0b6b7a", "#56d4dd"),
    "white": ("#57606a", "#c9d1d9"),
}
PAPER, INK, EDGE, MUTED = (
    ("#ffffff", "#0d1117"),
    ("#24292f", "#e6edf3"),
    ("#d0d7de", "#30363d"),
    ("#57606a", "#8b949e"),
)

VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|min)\b"), "DURATION"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"[\u2800-\u28ff]"), "*"),
    (re.compile(r"[━╸╺─]+"), "-"),
    (re.compile(r"[ \t]+"), " "),
)


def normalise(text: str) -> str:
    """Return the text without what differs from run to run: times, ports, spinners and gaps."""
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


@dataclass(frozen=True)
class Style:
    """How a character looks; a colour is a name of the terminal or six hexadecimal digits."""

    colour: str = "default"
    background: str = "default"
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underlined: bool = False

    @property
    def classes(self) -> str:
        """The classes of a run of such characters."""
        flags = {"b": self.bold, "d": self.dim, "i": self.italic, "u": self.underlined}
        names = [name for name, is_set in flags.items() if is_set]
        colour = self.colour.removeprefix("bright")
        return " ".join([*names, *([colour] if colour in COLOURS else [])])


@dataclass(frozen=True)
class Screen:
    """The rows of a terminal from the first to the last that is not empty; and the status, at the end."""

    columns: int
    rows: tuple[tuple[tuple[str, Style], ...], ...]
    status: int | None = None

    @property
    def text(self) -> str:
        """The rows as text."""
        return "\n".join("".join(data for data, _ in row) for row in self.rows)

    def to_svg(self, title: str) -> str:
        """Draw the screen, below its title, on light or dark as the reader prefers."""
        width = self.columns * CHARACTER_W + 2 * MARGIN
        height = TITLE_H + len(self.rows) * LINE_H + 2 * MARGIN
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" '
            f'width="{width:.0f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(self.text)}</desc>",
            f"<style>{_css()}</style>",
            f'<rect class="paper" x="0.5" y="0.5" width="{width - 1:.1f}" height="{height - 1:.1f}" rx="8"/>',
            f'<text class="title" x="{MARGIN}" y="22">{escape(title)}</text>',
            f'<line class="edge" x1="0" y1="{TITLE_H}" x2="{width:.1f}" y2="{TITLE_H}"/>',
        ]
        for number, row in enumerate(self.rows):
            lines += _draw_row(row, TITLE_H + MARGIN + number * LINE_H)
        return "\n".join([*lines, "</svg>"]) + "\n"


def text_of(svg: str) -> str:
    """Return the text of the screen that a picture shows."""
    found = ET.fromstring(svg).find("{http://www.w3.org/2000/svg}desc")
    assert found is not None, "not a picture of a screen"
    return found.text or ""


def screenshot(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    columns: int = 100,
    rows: int = 40,
    at: Callable[[Screen], bool] | Literal["end"] = "end",
) -> Screen:
    """Run a program to its end on a terminal; return its screen at the end, or the first that `at` accepts.

    `env` is added to the environment of this process.

    Raises:
        AssertionError: if the program never shows what `at` waits for, or does not end.
    """
    terminal = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(terminal)
    seen: Screen | None = None
    program = TerminalProcess(argv, size=(rows, columns), env={"LC_ALL": "C.UTF-8", **env}, cwd=cwd)
    try:
        for data in _read_output(program):
            stream.feed(data)
            if at != "end" and seen is None and not program.has_output(FRAME_S):
                now = _read_screen(terminal)
                seen = now if at(now) else None
        last = _read_screen(terminal, program.process.wait(timeout=LONGEST_S))
    finally:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()
        program.close()
    assert at == "end" or seen is not None, f"the moment never came; the last screen:\n{last.text}"
    return seen or last


def _read_output(program: TerminalProcess) -> Iterator[bytes]:
    """Give what a program writes, until it has ended."""
    end_s = time.monotonic() + LONGEST_S
    while True:
        assert time.monotonic() < end_s, "the program does not end"
        if not program.has_output(0.2):
            if program.process.poll() is not None:
                return
        elif (data := program.read()) is not None:
            yield data
        else:
            return


def _read_screen(terminal: pyte.Screen, status: int | None = None) -> Screen:
    rows = [
        [_read_character(terminal.buffer[line][column]) for column in range(terminal.columns)]
        for line in range(terminal.lines)
    ]
    for row in rows:
        while row and _is_blank(*row[-1]):
            row.pop()
    while rows and not rows[-1]:
        rows.pop()
    while rows and not rows[0]:
        rows.pop(0)
    return Screen(columns=terminal.columns, rows=tuple(map(tuple, rows)), status=status)


def _is_blank(data: str, style: Style) -> bool:
    return data.isspace() and style.background == "default" and not style.underlined


def _read_character(char: pyte.screens.Char) -> tuple[str, Style]:
    colour, background = (char.bg, char.fg) if char.reverse else (char.fg, char.bg)
    style = Style(
        colour=colour,
        background=background,
        bold=char.bold,
        dim=char.blink,
        italic=char.italics,
        underlined=char.underscore,
    )
    return char.data, style


def _draw_row(row: Sequence[tuple[str, Style]], top: float) -> Iterator[str]:
    column = 0
    for style, group in groupby(row, key=lambda cell: cell[1]):
        # A wide character has an empty one to its right.
        characters = [data for data, _ in group]
        text = "".join(characters)
        x, width = MARGIN + column * CHARACTER_W, len(characters) * CHARACTER_W
        column += len(characters)
        if style.background != "default":
            yield _draw_background(style.background, (x, top), width)
        if text.strip():
            yield _draw_text(text, style, (x, top), width)


def _draw_background(colour: str, at: tuple[float, float], width: float) -> str:
    name = colour.removeprefix("bright")
    paint = f'class="bg-{name}"' if name in COLOURS else f'fill="#{colour}"'
    return f'<rect {paint} x="{at[0]:.1f}" y="{at[1]:.1f}" width="{width:.1f}" height="{LINE_H}"/>'


def _draw_text(text: str, style: Style, at: tuple[float, float], width: float) -> str:
    is_hex = re.fullmatch(r"[0-9a-f]{6}", style.colour) is not None
    paint = f' fill="#{style.colour}"' if is_hex else ""
    classes = f' class="{style.classes}"' if style.classes else ""
    # Whatever font the reader has, each run keeps its columns.
    return (
        f'<text{classes}{paint} x="{at[0]:.1f}" y="{at[1] + 14:.1f}" textLength="{width:.1f}" '
        f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(text)}</text>'
    )


def _css() -> str:
    def rules(shade: int) -> str:
        return "".join(
            [
                f"text{{fill:{INK[shade]}}}.paper{{fill:{PAPER[shade]};stroke:{EDGE[shade]}}}",
                f".edge{{stroke:{EDGE[shade]}}}.title{{fill:{MUTED[shade]}}}",
                *(
                    f".{name}{{fill:{pair[shade]}}}.bg-{name}{{fill:{pair[shade]}}}"
                    for name, pair in COLOURS.items()
                ),
            ]
        )

    fixed = f"text{{font:14px {FONT}}}.b{{font-weight:700}}.d{{opacity:.65}}.i{{font-style:italic}}"
    return f"{fixed}.u{{text-decoration:underline}}{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}"
