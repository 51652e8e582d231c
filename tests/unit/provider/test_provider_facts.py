"""The facts of bpg/proxmox are whole, each kind that has a file is found, and its names are those of bpg."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stackyard import bpg_schema
from stackyard.provider import registry, wire
from stackyard.provider.schema import read_schema

SECTIONS = ("resources", "data_sources")


def test_every_kind_of_bpg_has_its_facts() -> None:
    index = bpg_schema.load_index()
    assert (len(index.resources), len(index.data_sources)) == (115, 91)
    assert len({one.kind for one in index.resources.values()}) == 69
    assert len({one.kind for one in index.data_sources.values()}) == 57
    assert index.resources["proxmox_vm"].kind == "vm2"


@pytest.mark.parametrize("section", SECTIONS)
def test_the_messages_say_what_the_facts_say(section: str) -> None:
    for name, named in getattr(bpg_schema.load_index(), section).items():
        schema = read_schema(bpg_schema.load_kind(section, named.kind, name), {})
        assert wire.read_schema_message(named.message) == wire.schema_message(schema), name


@pytest.mark.parametrize("section", SECTIONS)
def test_a_kind_has_the_names_of_its_facts_and_rules_for_what_exists(section: str) -> None:
    known = getattr(registry.load(), section)
    index = getattr(bpg_schema.load_index(), section)
    for name, one in known.items():
        declared = bpg_schema.load_kind(section, index[name].kind, name)
        assert set(one.kind.names) == set(declared["names"]), name
        for path in one.kind.rules:
            assert _has(declared["block"], path.split(".")), f"{name} has no {path}"


def _has(block: dict[str, object], steps: list[str]) -> bool:
    for step in steps:
        inside = {**_part(block, "attributes"), **_part(block, "blocks")}
        if step not in inside:
            return False
        found = inside[step]
        block = found.get("block") or found.get("nested") or {}
    return True


def _part(block: dict[str, object], name: str) -> dict[str, dict[str, dict[str, object]]]:
    return block.get(name, {})  # type: ignore[return-value]


def test_a_run_loads_only_the_kinds_that_it_uses() -> None:
    program = (
        "import sys; from stackyard.provider import registry; known = registry.load(); "
        "known.resources['proxmox_harule']; dict(known.resources.messages()); "
        "print(sorted(name for name in sys.modules if 'provider.resources.' in name))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    prefix = "stackyard.provider.resources.ha"
    assert ended.stdout.strip() == str([prefix, f"{prefix}.checks", f"{prefix}.harule", f"{prefix}.nodes"])
