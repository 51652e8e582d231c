"""The tutorial of a user's own stacks does what it says: its commands run, in the order of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.pages import Reader

from stackyard.engine.version import Flavour

pytestmark = [
    pytest.mark.tofu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH"),
]

PAGE = "docs/tutorial/own-stacks.md"
# What a reader looks for in what a block prints; the page says so.
EXPECTED = (
    ("stack list", "home/dns", "home/pools"),
    ("apply stack:home/pools", "Applied: 1 created", "apps"),
    ("apply --all", "unchanged", "1 created"),
    ("stack why", "modules/pool/main.tf -> modules/pool -> stacks/home/pools", "home/dns: not selected"),
    ("plan --changed", "applications, managed"),
    ("apply --changed", "not committed", "--allow-dirty"),
    ("git merge", "1 changed"),
    ("plan --changed", "No stack is selected"),
    ("stack graph", "└── home/web", "stack:home/web    unchanged"),
    ("plan --changed", "stack:home/dns was removed, but its resources still exist"),
    ("apply --changed", "--allow-destroy stack:home/dns"),
    ("--allow-destroy stack:home/dns", "1 destroyed"),
    ("destroy stack:home/web", "terraform_data.web would be destroyed"),
    ("destroy --all", "stack:home/pools  applied", "stack:home/web    applied"),
)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    yield Reader(
        folder=tmp_path,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)},
    )
    stackyard("lab", "down", "--all")


def test_the_page_can_be_followed_from_its_start_to_its_end(reader: Reader) -> None:
    expected = iter(EXPECTED)
    command, *words = next(expected)
    for block, printed in reader.follow(PAGE):
        if command in block.script and all(word in printed for word in words):
            command, *words = next(expected, ("-",))
    assert command == "-", f"never printed after `{command}`: {words}"
