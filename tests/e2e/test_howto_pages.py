"""The how-to pages that need no more than a new site and a lab are true: their commands run, page by page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.lab_inside import need_sandbox
from tests.support.pages import ROOT, Block, Reader, blocks_of

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PLAYBOOK = "- hosts: vms\n  gather_facts: false\n  tasks:\n    - debug: {msg: '{{ ansible_host }}'}\n"
# A manifest of levels, as homestak had them.
LEVELS = "name: old-name\nlevels:\n  - {name: edge, vm_preset: vm-small, vmid: 99101, image: debian-12}\n"
# The guests of the page about imports.
HOME = """
nodes: [pve1, pve2]
calls:
  - {path: "/pools", parameters: {poolid: family}}
  - {path: "/nodes/{node1}/qemu", parameters: {vmid: 100, name: web-1, memory: 512, tags: web}}
  - {path: "/nodes/{node1}/qemu", parameters: {vmid: 101, name: db-1, memory: 512, pool: family}}
  - {path: "/nodes/{node2}/qemu", parameters: {vmid: 200, name: shop, memory: 512, tags: prod}}
"""


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Reader]:
    """Somebody with an empty folder."""
    yield Reader(
        folder=tmp_path,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)},
    )
    stackyard("lab", "down", "--all")


@pytest.fixture
def reader(newcomer: Reader) -> Reader:
    """Somebody who is in a new site, beside a new lab."""
    newcomer.type(Block("stackyard lab up\nstackyard init my-yard\ncd my-yard\n"))
    return newcomer


def follow(reader: Reader, page: str) -> str:
    """Type every block of a page; return all that was printed."""
    return "".join(map(reader.type, blocks_of(f"docs/howto/{page}")))


def write_file_of(page: str, name: str, folder: Path) -> None:
    """Write a file that a page shows, with its name in the first line."""
    shown = re.search(
        rf"```(?:yaml|hcl)\n# {re.escape(name)}\n(.*?)```",
        (ROOT / "docs/howto" / page).read_text(),
        re.DOTALL,
    )
    assert shown is not None
    (folder / name).write_text(shown[1])


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH")
def test_a_site_is_checked_then_applied_then_read_by_ansible(reader: Reader) -> None:
    write_file_of("site.md", "specs/web.yaml", reader.folder)
    assert "nginx" in follow(reader, "site.md")
    applied = follow(reader, "apply.md")
    assert "Applied: 8 created" in applied
    assert "Nothing to change" in applied
    (reader.folder / "site.yml").write_text(PLAYBOOK)
    printed = follow(reader, "inventory.md")
    assert "@vms:" in printed
    assert "\ncurrent\n" in printed


def test_own_code_is_applied_with_an_env_and_goes_only_by_name(reader: Reader) -> None:
    page = "own-code-in-a-site.md"
    (reader.folder / "envs/dev.tf").mkdir()
    write_file_of(page, "envs/dev.tf/records.tf", reader.folder)
    printed = follow(reader, page)
    assert "1 code file" in printed
    assert re.search(r'"([a-z0-9-]+)":"\1[.]dev [0-9.]+', printed) is not None, printed
    assert "would be destroyed" in printed


def test_a_cluster_and_its_node_are_described_applied_and_corrected(reader: Reader) -> None:
    page = "hypervisors.md"
    (reader.folder / "hypervisors").mkdir()
    for name in ("hypervisors/home.yaml", "hypervisors/host.yaml"):
        write_file_of(page, name, reader.folder)
    printed = follow(reader, page)
    assert "+ create   ACL entry Restart for family on /pool/family" in printed
    assert "Applied: 6 created" in printed
    assert "Applied: 4 created" in printed
    assert "~ change   storage nas" in printed
    assert "Nothing to change" in printed


def test_a_manifest_is_looked_at_applied_and_converted(reader: Reader) -> None:
    (reader.folder / "manifests" / "old-name.yaml").write_text(LEVELS)
    printed = follow(reader, "manifests.md")
    assert "Applied: 3 created" in printed
    assert (reader.folder / "manifests" / "new-name.yaml").exists()


def test_a_manifest_is_checked_created_and_tested(newcomer: Reader) -> None:
    need_sandbox()
    newcomer.type(Block("stackyard lab up\nstackyard init my-yard\ncd my-yard\n"))
    assert "lab is ready" in follow(newcomer, "preflight.md")
    assert '"success":true' in follow(newcomer, "operator.md")


def test_guests_that_were_there_before_are_imported(newcomer: Reader) -> None:
    (newcomer.folder / "home.yaml").write_text(HOME)
    newcomer.type(Block("stackyard lab up --seed home.yaml\nstackyard init my-yard\ncd my-yard\n"))
    newcomer.type(Block("mv nodes/lab.yaml nodes/pve1.yaml\nrm envs/dev.yaml\n"))
    # Those about the state of another configuration: test_import_from_state.py.
    mine = [block for block in blocks_of("docs/howto/import.md") if "--from-state" not in block.script]
    printed = "".join(map(newcomer.type, mine))
    assert "web-1" in printed


def test_the_network_of_a_node_is_changed_with_a_way_back(reader: Reader) -> None:
    page = "change-the-network-of-a-node.md"
    (reader.folder / "hypervisors").mkdir(exist_ok=True)
    write_file_of(page, "hypervisors/pve1.yaml", reader.folder)
    printed = follow(reader, page)
    assert "pve1 would reload its network" in printed
    assert "vmbr0 would be changed (vids, vlan_aware)" in printed
    assert "pve1 puts its old network back if it is out of reach for 120 seconds." in printed
    assert "bridge-vlan-aware yes" in printed
    assert "mtu 1400" in printed


def test_a_cluster_is_imported_as_the_page_says(newcomer: Reader) -> None:
    printed = follow(newcomer, "import-a-cluster.md")
    assert "Would import" in printed
    assert "Imported 10 objects into hypervisor:pve1" in printed
    assert "There is nothing to import into hypervisor:home" in printed
    assert "Imported 10 objects into hypervisor:pve3" in printed
