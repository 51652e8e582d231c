"""Guests are read from states by one reader: which are somebody's, and which can be relied on."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from stackyard.clients.objects import MemoryObjects
from stackyard.inventory import read_facts
from stackyard.path.known_state import read_known_state
from stackyard.state import Actor, StateService
from stackyard.state.document import read_document
from stackyard.state.guests import guests_of_state, list_indexed_vm_ids, read_guests
from stackyard.state.inside import EncryptedStateError

ME = Actor(principal="tests")
VM = "proxmox_virtual_environment_vm"
CONTAINER = "proxmox_virtual_environment_container"


def row(name: str, *instances: dict[str, Any], kind: str = VM, mode: str = "managed") -> dict[str, Any]:
    provider = 'provider["registry.opentofu.org/bpg/proxmox"]'
    return {"mode": mode, "type": kind, "name": name, "provider": provider, "instances": list(instances)}


def instance(vm_id: int | None, node: str = "pve1", **more: Any) -> dict[str, Any]:
    values = {"vm_id": vm_id, "node_name": node, "id": None if vm_id is None else str(vm_id)}
    return {"attributes": values, **more}


def state(*rows: dict[str, Any], **more: Any) -> bytes:
    head = {"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "one", "outputs": {}}
    return orjson.dumps({**head, "resources": list(rows), **more})


EVERYTHING = state(
    row("web", instance(100), instance(101, deposed="1a2b3c4d")),
    row("half", instance(102, status="tainted")),
    row("box", instance(103, "pve2"), kind=CONTAINER),
    row("newer", {"attributes": {"id": 104, "node_name": "pve1"}}, kind="proxmox_vm"),
    row("copy", {"attributes": {"id": 109, "node_name": "pve1"}}, kind="proxmox_cloned_vm"),
    row("unknown", instance(None)),
    row("looked_up", instance(105), mode="data"),
    row("pool", {"attributes": {"id": "106", "pool_id": "106"}}, kind="proxmox_virtual_environment_pool"),
    row("each", instance(107, index_key="a"), instance(108, index_key="b")),
)


def test_every_guest_that_exists_is_read_with_whether_it_can_be_relied_on() -> None:
    found = {guest.address: (guest.vm_id, guest.kind, guest.is_reliable) for guest in read_guests(EVERYTHING)}
    assert found == {
        f"{VM}.web": (100, "vm", True),
        f"{VM}.web (deposed 1a2b3c4d)": (101, "vm", False),
        f"{VM}.half": (102, "vm", False),
        f"{CONTAINER}.box": (103, "container", True),
        "proxmox_vm.newer": (104, "vm", True),
        "proxmox_cloned_vm.copy": (109, "vm", True),
        f"{VM}.unknown": (None, "vm", True),
        f'{VM}.each["a"]': (107, "vm", True),
        f'{VM}.each["b"]': (108, "vm", True),
    }


def test_the_index_has_the_same_guests_as_the_content() -> None:
    held = read_document(EVERYTHING).holdings
    read = {guest.vm_id for guest in read_guests(EVERYTHING)} - {None}
    assert list_indexed_vm_ids(held) == read
    assert list_indexed_vm_ids(held, {"pve2"}) == {103}
    assert list_indexed_vm_ids(held, set()) == set()


def test_a_plan_knows_tainted_guests_and_an_inventory_names_only_whole_ones() -> None:
    service = StateService(MemoryObjects())
    service.contents.write("one", EVERYTHING, ME)
    assert read_known_state(service, "one").vm_ids == {100, 102, 103, 104, 107, 108, 109}
    assert {fact.vm_id for fact in read_facts(EVERYTHING).values()} == {100, 103, 104, 0, 107, 108, 109}
    assert {guest.vm_id for guest in guests_of_state(service, "one")} >= {101, 102}
    assert guests_of_state(service, "never-written") == ()


@pytest.mark.parametrize(
    ("values", "should_run"),
    [
        ({"vm_id": 100}, True),
        ({"vm_id": 100, "started": False}, False),
        ({"vm_id": 100, "started": True, "template": True}, False),
        ({"id": 100, "started": True}, True),
        ({"id": 100, "started": False}, False),
        ({"id": 100}, False),
    ],
)
def test_a_guest_should_run_unless_its_state_says_otherwise_or_nothing(
    values: dict[str, Any], should_run: bool
) -> None:
    (guest,) = read_guests(state(row("one", {"attributes": values})))
    assert guest.should_run is should_run


def test_an_encrypted_state_has_guests_that_cannot_be_told() -> None:
    encrypted = orjson.dumps({"serial": 1, "lineage": "one", "meta": {}, "encrypted_data": "x"})
    with pytest.raises(EncryptedStateError):
        read_guests(encrypted)
    assert read_facts(encrypted) == {}
