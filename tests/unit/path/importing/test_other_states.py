"""Guests in states of other configurations: found under every name of their types, and named exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.state_documents import resource, state_document

from stackyard.path.importing.cluster import ClusterListing
from stackyard.path.importing.handover import (
    Handover,
    HandoverError,
    hold_states,
    list_handovers,
    removed_blocks,
)
from stackyard.path.importing.nearby import describe_nearby, find_nearby
from stackyard.path.importing.other_states import OtherState, OtherStateError, parse_other_state
from stackyard.path.known_state import forget_instances

BPG = "proxmox_virtual_environment_vm"
ROWS: list[dict[str, Any]] = [
    {"vmid": vm_id, "type": "lxc" if vm_id >= 200 else "qemu", "name": f"g{vm_id}", "node": "pve1"}
    for vm_id in (100, 101, 102, 103, 200, 201)
]
LISTED = ClusterListing(nodes=frozenset({"pve1", "pve2"}), online=frozenset({"pve1"}), guests=tuple(ROWS))


def at(vm_id: int, node: str = "pve1") -> dict[str, Any]:
    return {"vm_id": vm_id, "node_name": node, "name": f"g{vm_id}"}


def state(*rows: dict[str, Any]) -> OtherState:
    return parse_other_state(Path("terraform.tfstate"), state_document(3, *rows))


def test_guests_are_found_under_every_name_of_their_types() -> None:
    found = state(
        resource(BPG, "moved", at(100, "pve2")),
        resource("proxmox_vm", "new", {"id": 101, "node_name": "pve1"}),
        resource("proxmox_vm_qemu", "telmate", {"id": "pve1/qemu/102", "name": "g102"}, module="module.a"),
        resource("proxmox_lxc", "box", {"id": "pve1/lxc/200", "hostname": "g200"}),
        resource(BPG, "elsewhere", at(103, "other")),
        resource(BPG, "other_type", at(201)),
        resource(BPG, "replaced", at(103), deposed="abcd"),
        resource(BPG, "read", at(103), mode="data"),
        resource("proxmox_virtual_environment_file", "file", {"id": "100", "node_name": "pve1"}),
    )
    assert [(one.address, one.vm_id) for one in found.match(ROWS, LISTED.nodes)] == [
        (f"{BPG}.moved", 100),
        ("proxmox_vm.new", 101),
        ("module.a.proxmox_vm_qemu.telmate", 102),
        ("proxmox_lxc.box", 200),
        (f"{BPG}.replaced (deposed abcd)", 103),
    ]


def test_what_leaves_a_state_is_exactly_what_was_named() -> None:
    keyed = resource(BPG, "many", at(100), index_key="a[0]")
    keyed["instances"].append({"index_key": "b", "attributes": at(101), "large": 12345678901234567890.5})
    found = state(keyed, resource(BPG, "one", at(102)), resource("null_resource", "kept"))
    guests = tuple(one for one in found.guests if one.vm_id != 101)
    assert removed_blocks(Handover(state=found, guests=guests)) == [
        f"# tofu state rm '{BPG}.many[\"a[0]\"]'",
        "removed {",
        f"  from = {BPG}.one",
        "  lifecycle {",
        "    destroy = false",
        "  }",
        "}",
    ]
    after = json.loads(forget_instances(found.data, frozenset(one.address for one in guests)))
    before = json.loads(found.data)
    assert after == {
        **before,
        "serial": 4,
        "resources": [{**keyed, "instances": keyed["instances"][1:]}, before["resources"][2]],
    }


def test_the_firewall_and_the_replications_of_a_guest_leave_with_it() -> None:
    rules = {"node_name": "pve1", "vm_id": 100, "id": "rule-1"}
    found = state(
        resource(BPG, "one", at(100)),
        resource("proxmox_virtual_environment_firewall_rules", "one", rules),
        resource("proxmox_virtual_environment_firewall_rules", "other", {**rules, "vm_id": 101}),
        resource("proxmox_virtual_environment_firewall_rules", "cluster", {"id": "rule-2"}),
        resource("proxmox_replication", "one", {"id": "100-0", "source": "pve1"}),
    )
    [guest] = found.match(ROWS, LISTED.nodes)
    parts = ("proxmox_virtual_environment_firewall_rules.one", "proxmox_replication.one")
    assert guest.parts == parts
    lines = removed_blocks(Handover(state=found, guests=(guest,)))
    assert [line for line in lines if "from" in line] == [
        f"  from = {address}" for address in sorted((guest.address, *parts))
    ]


def test_a_file_that_cannot_be_written_any_more_is_said_to_have_the_guests_still(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    path = folder / "terraform.tfstate"
    path.write_bytes(state_document(3, resource(BPG, "it", at(100))))
    (handover,) = list_handovers((path, folder / ".." / "old" / "terraform.tfstate"), LISTED)
    with hold_states((handover,)) as holder:
        folder.rename(tmp_path / "gone")
        with pytest.raises(HandoverError, match="g100: imported, and still in"):
            holder.release(handover)


def test_a_file_that_was_changed_since_it_was_read_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_bytes(state_document(3, resource(BPG, "it", at(100))))
    handovers = list_handovers((path,), LISTED)
    path.write_bytes(state_document(4, resource(BPG, "it", at(100)), resource(BPG, "new", at(101))))
    with pytest.raises(OtherStateError, match="was changed"), hold_states(handovers):
        pass
    # Nothing is locked any more.
    with hold_states(list_handovers((path,), LISTED)):
        pass


def test_states_of_the_folder_are_found_wherever_an_engine_keeps_them(tmp_path: Path) -> None:
    def write(name: str, vm_id: int) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(state_document(1, resource(BPG, "it", at(vm_id))))
        return path

    wanted = [write("terraform.tfstate", 100), write("terraform.tfstate.d/prod/terraform.tfstate", 101)]
    wanted.append(write("kept/own.tfstate", 102))
    write("terraform.tfstate.d/other/terraform.tfstate", 999)
    note = tmp_path / ".terraform" / "terraform.tfstate"
    note.parent.mkdir()
    backend: dict[str, Any] = {"type": "local", "config": {"path": "kept/own.tfstate"}}
    note.write_text(json.dumps({"version": 3, "backend": backend}))
    found = find_nearby((tmp_path, tmp_path / "."), ROWS, LISTED)
    assert [one.path for one in found] == wanted
    assert f"import env:x --from-state {wanted[0]}" in describe_nearby(found[0], "env:x")
    # A file that is damaged, and that nobody named, does not stop an import.
    wanted[0].write_text("{")
    note.write_text(json.dumps({"version": 3, "backend": {"type": "s3", "config": {}}}))
    found = find_nearby((tmp_path,), ROWS, LISTED)
    assert [one.backend for one in found] == ["", "s3"]
    assert "tofu state pull" in describe_nearby(found[1], "env:x")
