"""The how-to page about guests as data is true: its data are applied, and its commands run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.pages import ROOT, Reader
from tests.support.proxmox_recipe import make_recipe_repo
from tests.support.recipes import RECIPES

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.sources.stacks.hcl import parse_hcl

PAGE = "docs/howto/data-driven-stacks.md"
_DATA = re.compile(r"^```hcl\n(# stacks/onprem/server_a/vms.tfvars\n.*?)^```$", re.DOTALL | re.MULTILINE)
# What a reader looks for in what a block prints.
EXPECTED = (
    ("apply stack", "3 created", "192.168.0.52"),
    (
        "memory_sise",
        "memory_sise` is not in the type of the variable. Did you mean `memory_size`?",
        "vms.tfvars:17",
    ),
)


@pytest.mark.tofu
@pytest.mark.timeout(120)
def test_the_page_can_be_followed_from_its_start_to_its_end(tmp_path: Path) -> None:
    found = _DATA.search((ROOT / PAGE).read_text())
    assert found is not None
    with lab.running() as running:
        repo = make_recipe_repo(tmp_path / "repo", running, found[1], top=".", stack="onprem/server_a")
        env = {**repo.env, "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)}
        reader = Reader(folder=repo.root, programs=tmp_path / "bin", env=env)
        printed = {block.script: text for block, text in reader.follow(PAGE)}
    for command, *words in EXPECTED:
        (text,) = (text for script, text in printed.items() if command in script)
        assert [word for word in words if word not in text] == [], text


def test_the_page_has_every_field() -> None:
    page = (ROOT / PAGE).read_text()
    code = parse_hcl((RECIPES / "stacks/proxmox/variables.tf").read_bytes())
    declared = "".join(str(code.variables[name].shape) for name in ("resources", "resource_groups"))
    fields = set(re.findall(r"'([a-z][a-z0-9_]+)': \['", declared))
    assert {"cpu_cores", "mount_points", "vm_id", "template_checksum_algorithm"} <= fields
    assert [name for name in sorted(fields) if not re.search(rf"`[^`\n]*\b{name}\b", page)] == []
