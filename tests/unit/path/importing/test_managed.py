"""A guest is managed when a state of the site has it, on the cluster that the state is for."""

from __future__ import annotations

import uuid
from pathlib import Path

from tests.support.site import write_site
from tests.support.state_documents import resource, state_document

from stackyard.clients.objects import MemoryObjects
from stackyard.path.importing.managed import managed_guests
from stackyard.render.references import CONTAINER, VM
from stackyard.sources.site import ConfigResolver
from stackyard.state import Actor, LockInfo, StateService, make_lock_info

ME = Actor(principal="tests")
HERE = "https://10.0.12.61:8006"


def write(states: StateService, name: str, kind: str, vm_id: int | None, node: str) -> None:
    body = state_document(1, resource(kind, "guest", {"vm_id": vm_id, "node_name": node}))
    lock = make_lock_info(LockInfo(id=str(uuid.uuid4()), who="me"))
    states.locks.lock(name, lock, ME)
    states.contents.write(name, body, ME, lock_id=lock.id)
    states.locks.unlock(name, lock.id, ME)


def test_guests_are_found_in_every_state_of_their_cluster(tmp_path: Path) -> None:
    write_site(tmp_path)
    states = StateService(MemoryObjects())
    write(states, "env/dev/father", VM, 100, "father")
    write(states, "manifest/n2/father", CONTAINER, 101, "mother")
    write(states, "env/gone/father", VM, 102, "father")
    states.delete("env/gone/father", ME)
    write(states, "env/half/father", VM, None, "father")
    write(states, "env/file/father", "proxmox_virtual_environment_file", 103, "father")
    states.register("env/empty/father", ME)
    # `pve` is a cluster of its own.
    write(states, "env/dev/pve", VM, 104, "pve")
    found = managed_guests(states, ConfigResolver(tmp_path), {"father", "mother"}, HERE)
    assert found == {100: "env/dev/father", 101: "manifest/n2/father"}


def test_a_node_of_the_same_name_elsewhere_is_another(tmp_path: Path) -> None:
    other = "node: father\napi_endpoint: https://10.9.9.9:8006\napi_token: pve\ndatastore: local\n"
    write_site(tmp_path, nodes__other=other)
    states = StateService(MemoryObjects())
    write(states, "env/dev/other", VM, 100, "father")
    resolver = ConfigResolver(tmp_path)
    assert managed_guests(states, resolver, {"father"}, HERE) == {}
    assert managed_guests(states, resolver, {"father"}, "https://10.9.9.9:8006") == {100: "env/dev/other"}
