"""Manifests of levels, as homestak wrote them first: they load, become nodes, and nodes become them again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.site import write_site

from stackyard.base.errors import InvalidInputError
from stackyard.sources.manifest import Manifest, find_manifest
from stackyard.sources.manifest.linear import as_levels
from stackyard.sources.manifest.read import ManifestRequest
from stackyard.sources.site import Site

NESTED = """\
schema_version: 1
name: three-deep
description: a node in a node, and a guest in that
levels:
  - name: outer
    vm_preset: large
    vmid: 99011
    image: debian-13-pve
    post_scenario: pve-setup
    post_scenario_args:
      - "--local"
      - "--skip-preflight"
  - name: inner
    vm_preset: medium
    vmid: 99021
    image: debian-13-pve
    post_scenario: pve-setup
    post_scenario_args: ["--local", "--skip-preflight"]
  - name: leaf
    vm_preset: small
    vmid: 99031
    image: debian-12
    post_scenario: null
settings: {verify_ssh: true, cleanup_on_failure: true, timeout_buffer: 60}
"""
HEAD = "schema_version: 2\nname: m\nnodes:\n"
TOP = "  - {name: top, type: pve, preset: vm-large, image: debian-13-pve, vmid: 900, disk: 64}\n"
LEAF = "  - {name: leaf, type: vm, preset: vm-medium, image: debian-12, parent: top}\n"


def read(folder: Path, text: str) -> Manifest:
    write_site(folder)
    return find_manifest(Site.open(folder), ManifestRequest(text=text))


def refused(folder: Path, text: str) -> list[tuple[str, str]]:
    manifest = read(folder, text)
    with pytest.raises(InvalidInputError) as raised:
        as_levels(manifest, Site.open(folder))
    return [(found.kind.code, found.detail) for found in raised.value.diagnostics]


def test_levels_that_set_up_proxmox_become_nodes_inside_each_other(tmp_path: Path) -> None:
    manifest = read(tmp_path, NESTED)
    assert [(node.name, node.type.value, node.parent) for node in manifest.nodes] == [
        ("outer", "pve", None),
        ("inner", "pve", "outer"),
        ("leaf", "vm", "inner"),
    ]


def test_levels_and_nodes_mean_the_same_in_both_directions(tmp_path: Path) -> None:
    manifest = read(tmp_path, NESTED)
    written = as_levels(manifest, Site.open(tmp_path))
    assert written["schema_version"] == 1
    assert [level.get("post_scenario") for level in written["levels"]] == ["pve-setup", "pve-setup", None]
    again = read(tmp_path, yaml.safe_dump(written))
    assert again.document() == manifest.document()
    nodes = read(tmp_path, HEAD + TOP + LEAF)
    levels = as_levels(nodes, Site.open(tmp_path))
    assert levels["levels"][0]["disk"] == 64
    back = read(tmp_path, yaml.safe_dump(levels)).document()["nodes"]
    # The site has both spellings of the preset, and they are the same.
    assert [{**node, "preset": f"vm-{node['preset'].removeprefix('vm-')}"} for node in back] == (
        nodes.document()["nodes"]
    )


def test_nodes_in_any_order_become_levels_in_the_order_of_creation(tmp_path: Path) -> None:
    written = as_levels(read(tmp_path, HEAD + LEAF + TOP), Site.open(tmp_path))
    assert [level["name"] for level in written["levels"]] == ["top", "leaf"]


def test_what_is_side_by_side_is_refused_by_name(tmp_path: Path) -> None:
    second = "  - {name: more, type: vm, preset: vm-small, image: debian-12, parent: top}\n"
    assert refused(tmp_path, HEAD + TOP + LEAF + second) == [
        ("E-MANIFEST-NOT-LINEAR", "leaf, more are side by side inside of top.")
    ]


def test_everything_that_levels_cannot_say_is_named_at_once(tmp_path: Path) -> None:
    odd = "  - {name: box, type: vm, image: debian-12, cores: 1, memory: 512, disk: 4, tags: [x]}\n"
    codes = refused(tmp_path, f"schema_version: 2\nname: m\nexecution: {{default_mode: pull}}\nnodes:\n{odd}")
    assert codes == [
        ("E-MANIFEST-NOT-A-LEVEL", "Its guests configure themselves (`pull`)."),
        ("E-MANIFEST-NOT-A-LEVEL", "'box' says `cores`, `memory`, `tags`."),
        ("E-MANIFEST-NOT-A-LEVEL", "'box' says not one of `preset` and `template`."),
    ]


def test_arguments_that_would_change_the_setup_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as raised:
        read(tmp_path, NESTED.replace('"--skip-preflight"', '"--packer-release=v9"'))
    assert [found.kind.code for found in raised.value.diagnostics] == ["E-MANIFEST-LEVEL"] * 2
    assert "passes --packer-release=v9" in raised.value.diagnostics[0].detail
