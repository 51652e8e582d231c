"""The tutorial of the first guests does what it says: its commands run, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.pages import Reader

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.pictures, pytest.mark.timeout(300)]

PAGE = "docs/tutorial/first-guests.md"
# What a reader looks for in what a block prints; the page says so.
EXPECTED = (
    ("explain dev", "presets/vm-small.yaml"),
    ("output dev", "web", "db", "dns"),
    ("apply dev", "Nothing to change"),
    ("qm list", "web", "db"),
    ("apply dev", "VM web (10000 on pve1) would be destroyed", "debian-12.qcow2", "--allow-destroy"),
    ("plan dev", "Nothing to change"),
    ("drift dev", "surprise", "mystery"),
    ("apply dev", "1 changed"),
    ("drift dev", "1024", "2048"),
    ("apply dev", "--allow-reboot web"),
    ("--allow-reboot web", "1 changed"),
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
    expected = iter((*EXPECTED, ("lab down", "")))
    command, *words = next(expected)
    for block, printed in reader.follow(PAGE):
        if command in block.script and all(word in printed for word in words):
            command, *words = next(expected, ("-",))
    assert command == "-", f"never printed after `{command}`: {words}"
    assert list(reader.folder.rglob("*.before")) == []
