"""A store with states in it, for tests of the commands that look after them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import Ended, stackyard
from tests.support.state_documents import attribute_step, resource, state_document

from stackyard.clients.objects import open_objects
from stackyard.state import Actor, LockInfo, Policy, StateService, make_lock_info

__all__ = ["NAME", "SECRET", "Filled", "filled"]

NAME = "env/dev/pve1"
SECRET = "correct-horse-battery-staple"
ACTOR = Actor(principal="alice", address="10.0.0.1")


def contents(serial: int, cores: int, *extra: str) -> bytes:
    """Return a state with a secret in it."""
    vm = resource(
        "proxmox_virtual_environment_vm",
        "web",
        {
            "id": "100",
            "cores": cores,
            "password": SECRET,
            "note": f"log in with {SECRET}",
            "pin": "0000-1111",
        },
        sensitive_attributes=[[attribute_step("pin")]],
    )
    outputs = {
        "address": {"value": "10.0.0.7", "type": "string"},
        "login": {"value": SECRET, "type": "string", "sensitive": True},
    }
    return state_document(serial, vm, *(resource("terraform_data", name) for name in extra), outputs=outputs)


class Filled:
    """A store in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def service(self, policy: Policy | None = None) -> Iterator[StateService]:
        objects = open_objects(self.folder)
        try:
            yield StateService(objects, policy or Policy(unlocked_writes=True))
        finally:
            objects.close()

    def write(self, data: bytes, name: str = NAME) -> None:
        with self.service() as service:
            service.contents.write(name, data, ACTOR)

    def lock(self, lock_id: str = "lock-1", *, who: str = "bob@laptop", lease: str | None = None) -> None:
        info = make_lock_info(LockInfo(id=lock_id, who=who, operation="OperationTypeApply", version="1.12.6"))
        with self.service() as service:
            service.locks.lock(NAME, info, ACTOR, lease=lease)

    def run(self, *arguments: str) -> Ended:
        return stackyard("state", *arguments, "--data", str(self.folder))


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    """Give a store with three versions of a state."""
    store = Filled(tmp_path / "store")
    store.write(contents(1, 2))
    store.write(contents(2, 4, "added"))
    store.write(contents(3, 8, "added"))
    return store
