"""Edits of a state: they reach what they name, in modules and with keys too, and nothing else."""

from __future__ import annotations

import json

from stackyard.clients.objects import MemoryObjects
from stackyard.path.known_state import KnownState, StateEdit, read_known_state
from stackyard.state import Actor, StateService

ROWS = [
    {"mode": "managed", "type": "proxmox_vm", "name": "a", "instances": [{"attributes": {"id": "1"}}]},
    {
        "mode": "managed",
        "module": "module.m",
        "type": "proxmox_vm",
        "name": "a",
        "instances": [
            {"index_key": "x", "attributes": {"id": "2"}},
            {"index_key": "y", "attributes": {"id": "3"}, "status": "tainted"},
        ],
    },
]


def stored() -> StateService:
    document = {"version": 4, "serial": 1, "lineage": "l", "outputs": {}, "resources": ROWS}
    states, actor = StateService(MemoryObjects()), Actor(principal="test")
    states.locks.lock("s", b'{"ID": "ours", "Operation": "push", "Who": "me"}', actor)
    states.contents.write("s", json.dumps(document).encode(), actor, lock_id="ours")
    return states


def test_what_is_forgotten_is_what_was_named() -> None:
    known = read_known_state(stored(), "s")
    inside = "module.m.proxmox_vm.a"
    assert sorted(known.instances) == [f'{inside}["x"]', f'{inside}["y"]', "proxmox_vm.a"]
    edited = known.edit(StateEdit(forget=frozenset({'module.m.proxmox_vm.a["x"]'})))
    assert edited is not None
    document = json.loads(edited)
    assert document["serial"] == 2
    assert [len(row["instances"]) for row in document["resources"]] == [1, 1]
    assert document["resources"][1]["instances"][0]["index_key"] == "y"


def test_what_is_completed_is_no_longer_tainted() -> None:
    known = read_known_state(stored(), "s")
    (address,) = known.list_tainted()
    edited = known.edit(StateEdit(complete=frozenset({address})))
    assert edited is not None
    assert "status" not in json.loads(edited)["resources"][1]["instances"][1]


def test_numbers_are_kept_as_they_are_written() -> None:
    attributes = '{"id":"1","n":123456789012345678901234567890,"f":1.10000000000000000001,"e":-1e400}'
    instances = f'[{{"status":"tainted","attributes":{attributes}}}]'
    rows = f'[{{"mode":"managed","type":"proxmox_vm","name":"a","instances":{instances}}}]'
    data = f'{{"version":4,"serial":1,"lineage":"l","outputs":{{}},"resources":{rows}}}'.encode()
    edited = KnownState(_data=data).edit(StateEdit(complete=frozenset({"proxmox_vm.a"})))
    assert edited == data.replace(b'"status":"tainted",', b"").replace(b'"serial":1', b'"serial":2')
