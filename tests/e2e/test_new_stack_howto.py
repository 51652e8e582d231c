"""The how-to page about new stacks is true: its commands run, in the order of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.pages import ROOT, Reader

from stackyard.engine.version import Flavour
from stackyard.recipes.catalogue import list_recipes

pytestmark = [
    pytest.mark.tofu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH"),
]

PAGE = "docs/howto/new-stack.md"
# What a reader looks for in what a block prints.
EXPECTED = (
    ("stack new onprem/server_a", "Made the stack onprem/server_a", "proxmox_qemu_vm", "secrets.tfvars"),
    ("policy check", "user_credentials", "web-1 (1001 on pve1)", "no findings"),
    (
        "--from onprem/server_a",
        "Made the stack onprem/server_b",
        "Two stacks have a guest with the same ID and name",
        "`web-1`",
    ),
    ("sed -i", "web-b1 (2001 on pve1)"),
    ("cp -r", "is also in the stack `onprem/server_b`", "Change the ID"),
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
        if command in block.script:
            missing = [word for word in words if word not in printed]
            assert missing == [], f"{block.script}\n{printed}"
            command, *words = next(expected, ("-",))
    assert command == "-"


def test_the_page_and_the_help_name_every_recipe() -> None:
    shown = (ROOT / PAGE).read_text()
    said = stackyard("stack", "new", "--help").stdout
    assert [name for name in list_recipes() if f"| `{name}` |" not in shown or name not in said] == []
