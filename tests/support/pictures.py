"""The pictures of docs/pictures: each is drawn by the test of the page that shows it.

A test calls `check_picture` with a screen that it took. Where STACKYARD_TEST_PICTURES is `write` (`make
pictures`), the picture is written; else the test fails if the picture shows another text. Times and the like
do not count, nor does the order of lines, as much is done in parallel. A picture that differs in nothing else
is not written again.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.screen import Screen, normalise, text_of

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
IS_WRITING = os.environ.get("STACKYARD_TEST_PICTURES") == "write"


def check_picture(
    name: str, screen: Screen, title: str, *, folder: Path = FOLDER, is_writing: bool = IS_WRITING
) -> None:
    """Compare a screen with the picture of this name, or write the picture."""
    path = folder / f"{name}.svg"
    wanted = _lines(screen.text)
    shown = _lines(text_of(path.read_text())) if path.exists() else None
    if is_writing and shown != wanted:
        folder.mkdir(exist_ok=True)
        path.write_text(screen.to_svg(title))
        return
    assert shown == wanted, f"{path.name} shows something else: run `make pictures`, and look at the picture"


def _lines(text: str) -> list[str]:
    return sorted(normalise(text).splitlines())
