"""A screen that is read from a terminal, and its picture."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.support.pictures import check_picture
from tests.support.screen import Screen, Style, normalise, screenshot, text_of

# Draws a row three times in one place, as a live view does, and ends with another.
DRAWS = """
import sys, time, shutil
print(shutil.get_terminal_size().columns)
for step in (1, 2, 3):
    print(f"\\r\\x1b[2K\\x1b[1;31mstep {step}\\x1b[0m of <3>", end="", flush=True)
    time.sleep(0.2)
print("\\r\\x1b[2Kdone in 0.6 s")
sys.exit(3)
"""


def draw(folder: Path, **options: object) -> Screen:
    return screenshot([sys.executable, "-c", DRAWS], folder, {}, 44, 9, **options)  # type: ignore[arg-type]


def test_a_screen_shows_what_is_left_at_the_end(tmp_path: Path) -> None:
    screen = draw(tmp_path)
    assert (screen.text, screen.status) == ("44\ndone in 0.6 s", 3)


def test_a_screen_can_be_taken_while_the_program_draws(tmp_path: Path) -> None:
    screen = draw(tmp_path, at=lambda seen: "step 2" in seen.text)
    assert screen.text == "44\nstep 2 of <3>"
    svg = screen.to_svg("$ draw <it>")
    assert text_of(svg) == screen.text
    shown = {element.text: element.get("class") for element in ET.fromstring(svg).iter() if element.text}
    assert shown["$ draw <it>"] == "title"
    assert shown["step 2"] == "b red"


def test_a_moment_that_never_comes_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"the moment never came(.|\n)*done in"):
        draw(tmp_path, at=lambda seen: "step 4" in seen.text)


def test_a_picture_is_stale_when_its_text_differs_but_not_when_a_time_does(tmp_path: Path) -> None:
    first, later, other = (
        Screen(columns=20, rows=(tuple((letter, Style()) for letter in text),))
        for text in ("web up (1.5 s)", "web up (12.0 s)", "db up (1.5 s)")
    )
    check_picture("web", first, "a", folder=tmp_path, is_writing=True)
    drawn = (tmp_path / "web.svg").read_text()
    check_picture("web", later, "a", folder=tmp_path, is_writing=True)
    assert (tmp_path / "web.svg").read_text() == drawn
    check_picture("web", later, "a", folder=tmp_path, is_writing=False)
    with pytest.raises(AssertionError, match="make pictures"):
        check_picture("web", other, "a", folder=tmp_path, is_writing=False)


def test_only_what_varies_is_taken_out_of_a_text() -> None:
    text = "  VM web (10000 on pve1)   up after 3.2 s at 127.0.0.1:40123\n"
    assert normalise(text) == "VM web (10000 on pve1) up after DURATION at 127.0.0.1:PORT"
