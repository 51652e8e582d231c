"""Texts that tell readers and assistants what to type name commands and options that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.command_lines import command_lines, find_unknown

from stackyard.sources.site.new_site import starter_files

ROOT = Path(__file__).parents[2]
# The tutorial shows what a mistyped command looks like.
MISTYPED = "tolls"
TEXTS = {
    "AGENTS.md": (ROOT / "AGENTS.md").read_text(),
    "docs/llms.txt": (ROOT / "docs" / "llms.txt").read_text(),
    "AGENTS.md of a site": dict(starter_files("lab"))["AGENTS.md"],
    "README.md of a site": dict(starter_files("lab"))["README.md"],
    **{str(path.relative_to(ROOT)): path.read_text() for path in ROOT.glob("docs/**/*.md")},
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_that_a_text_names_exists(name: str) -> None:
    found = {line: find_unknown(line) for line in command_lines(TEXTS[name])}
    assert {line: word for line, word in found.items() if word not in (None, MISTYPED)} == {}


def test_the_check_finds_what_does_not_exist() -> None:
    lines = list(command_lines("`stackyard plan dev --nope` and\n```sh\nstackyard frobnicate\n```\n"))
    assert [find_unknown(line) for line in lines] == ["frobnicate", "--nope"]
