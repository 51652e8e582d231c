"""Handing objects over from state to state: whenever a run is killed, one of them has each object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.support.postgres import use_password
from tests.support.seaweed import use_credentials
from tests.support.state_stores import make_store

from stackyard.base.redaction import Redactor
from stackyard.clients.objects import MemoryObjects, Objects
from stackyard.clients.objects.base import Expect, Tag
from stackyard.clients.proxmox import Connection, Token
from stackyard.desired import Desired, Secrets
from stackyard.path.former_owners import FormerOwner
from stackyard.path.handover import find_handover, join_handovers, move_objects
from stackyard.path.known_state import StateEdit
from stackyard.path.planfile import PlanMovedError
from stackyard.path.target import Resolved, Target
from stackyard.state import Actor, StateService
from stackyard.state.run_lock import hold_state

BRIDGE, POOL, VNET = "proxmox_network_linux_bridge", "proxmox_virtual_environment_pool", "proxmox_sdn_vnet"
ACTOR = Actor(principal="test")
SHARED = Target(kind="site", name="shared", node="lab")
HYPERVISOR = Target(kind="hypervisor", name="lab", node="lab")
ALL = FormerOwner(owner=SHARED, interfaces=True, cluster_wide=True)
Stored = TypeVar("Stored", bound=Objects)


class Killed(BaseException):
    """The process is gone."""


class DyingObjects(MemoryObjects):
    """A store whose user is killed before one of its writes, and writes nothing from then on."""

    def __init__(self, store: MemoryObjects, writes: int) -> None:
        super().__init__()
        self._kept, self._keys, self._known = store._kept, store._keys, store._known
        self._left = writes
        self._writes = 1_000_000

    def _put(
        self, key: str, data: bytes, expect: Expect, before: Mapping[str, bytes] | None, write_id: str
    ) -> Tag:
        self._left -= 1
        if self._left < 0:
            raise Killed
        return super()._put(key, data, expect, before, write_id)


def row(kind: str, called: str, /, **values: Any) -> dict[str, Any]:
    return {"mode": "managed", "type": kind, "name": called, "instances": [{"attributes": values}]}


ROWS = [
    row(BRIDGE, "pve1_vmbr7", id="pve1:vmbr7", node_name="pve1", name="vmbr7", mtu=9000),
    row(POOL, "apps", id="apps", pool_id="apps"),
    row(VNET, "lan", id="lan"),
    row("proxmox_sdn_applier", "sdn", id="1"),
]


def old_store() -> MemoryObjects:
    return put_old_state(MemoryObjects())


def put_old_state(objects: Stored) -> Stored:
    document = {"version": 4, "serial": 7, "lineage": "old", "outputs": {}, "resources": ROWS}
    StateService(objects).contents.write(SHARED.state_name, json.dumps(document).encode(), ACTOR)
    return objects


def target(**fields: Any) -> Resolved:
    return Resolved(
        target=HYPERVISOR,
        desired=Desired.model_validate(fields),
        secrets=Secrets(),
        connection=Connection(endpoint="https://192.0.2.1:8006/", credentials=Token(text="a@pve!b=cdef")),
        redactor=Redactor(),
        former=(ALL,),
    )


def rows_of(states: StateService, name: str) -> set[str]:
    content = states.contents.read(name)
    rows = [] if content is None else json.loads(content.body.data)["resources"]
    return {f"{one['type']}.{one['name']}" for one in rows}


async def apply(objects: Objects, resolved: Resolved, owner: FormerOwner = ALL) -> None:
    """Do what a plan and an apply do with the states."""
    states = StateService(objects)
    found = find_handover(states, owner)
    pending = [] if found is None else [found]
    staged = join_handovers(states, resolved, pending).edit(StateEdit())
    name = resolved.target.state_name
    for one in (name, owner.owner.state_name):
        if one in states.names() and states.head(one).lock is not None:
            # As the lease of a dead run is taken for.
            states.locks.break_lock(one, None, ACTOR, reason="dead")
    async with hold_state(states, name, ACTOR, lease="", wait_s=0, on_wait=lambda _name, _err: None) as lock:
        await move_objects(lock, staged, pending, target=str(resolved.target), wait_s=0)


async def test_a_run_that_is_killed_before_any_of_its_writes_loses_nothing() -> None:
    resolved, everything, kills = target(), {f"{one['type']}.{one['name']}" for one in ROWS}, 0
    for writes in range(30):
        objects = old_store()
        try:
            await apply(DyingObjects(objects, writes), resolved)
        except Killed:
            kills += 1
        states = StateService(objects)
        assert rows_of(states, SHARED.state_name) in (everything, set())
        found = find_handover(states, ALL)
        known = join_handovers(states, resolved, [] if found is None else [found])
        # A plan of either name is made with this: there is nothing to create or to destroy.
        assert set(known.instances) == everything
        await apply(objects, resolved)
        assert rows_of(states, HYPERVISOR.state_name) == everything
        assert rows_of(states, SHARED.state_name) == set()
        assert find_handover(states, ALL) is None
        assert join_handovers(states, resolved, []).edit(StateEdit()) is None
    assert 5 < kills < 30


def die_after(objects: Objects, writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the user of a store be killed before one of its writes; it writes nothing from then on."""
    left = [writes]

    def or_die(put: Callable[..., Tag]) -> Callable[..., Tag]:
        def put_or_die(*arguments: Any, **named: Any) -> Tag:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return put(*arguments, **named)

        return put_or_die

    for name in ("put", "put_once"):
        monkeypatch.setattr(objects, name, or_die(getattr(objects, name)))


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        pytest.param("postgresql", (4,), id="postgresql"),
        *(
            pytest.param(kind, range(20), id=f"{kind}-every-write", marks=pytest.mark.soak)
            for kind in ("sqlite", "s3", "postgresql")
        ),
    ],
)
async def test_a_killed_run_loses_nothing_in_any_store(
    kind: str, kills: Iterable[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_credentials(monkeypatch)
    use_password(monkeypatch)
    everything = {f"{one['type']}.{one['name']}" for one in ROWS}
    killed = 0
    for writes in kills:
        store = make_store(kind, tmp_path / str(writes))
        put_old_state(store.open())
        dying = store.open()
        die_after(dying, writes, monkeypatch)
        try:
            await apply(dying, target())
        except Killed:
            killed += 1
        objects = store.open()
        await apply(objects, target())
        states = StateService(objects)
        assert rows_of(states, HYPERVISOR.state_name) == everything
        assert rows_of(states, SHARED.state_name) == set()
        for one in store.opened:
            one.close()
    assert killed


async def test_the_history_of_both_states_tells_why() -> None:
    objects = old_store()
    await apply(objects, target())
    states = StateService(objects)
    given, taken = states.head(SHARED.state_name).current, states.head(HYPERVISOR.state_name).current
    assert given is not None
    assert taken is not None
    assert given.note == "SDN vnet lan, bridge vmbr7 on pve1, pool apps: taken over by hypervisor:lab"
    assert (given.serial, given.lineage) == (8, "old")
    assert taken.note == "takes over 4 resources from site/shared/lab"


async def test_two_owners_take_their_parts() -> None:
    objects = old_store()
    await apply(objects, target(), FormerOwner(owner=SHARED, interfaces=True, cluster_wide=False))
    states = StateService(objects)
    assert rows_of(states, HYPERVISOR.state_name) == {f"{BRIDGE}.pve1_vmbr7"}
    assert f"{POOL}.apps" in rows_of(states, SHARED.state_name)


def test_what_has_another_address_now_is_found_by_what_it_is() -> None:
    bridge = {
        "key": {"type": BRIDGE, "name": "vmbr7"},
        "attributes": {"node_name": "pve1", "name": "vmbr7", "mtu": 9000},
    }
    resolved, states = target(objects=[bridge]), StateService(old_store())
    found = find_handover(states, ALL)
    assert found is not None
    staged = join_handovers(states, resolved, [found]).edit(StateEdit())
    assert staged is not None
    assert f"{BRIDGE}.vmbr7" in {f"{one['type']}.{one['name']}" for one in json.loads(staged)["resources"]}


async def test_a_state_that_was_changed_since_the_plan_stays_as_it_is() -> None:
    objects, resolved = old_store(), target()
    states = StateService(objects)
    found = find_handover(states, ALL)
    assert found is not None
    staged = join_handovers(states, resolved, [found]).edit(StateEdit())
    newer = {"version": 4, "serial": 8, "lineage": "old", "outputs": {}, "resources": ROWS[1:]}
    states.contents.write(SHARED.state_name, json.dumps(newer).encode(), ACTOR)
    async with hold_state(
        states, HYPERVISOR.state_name, ACTOR, lease="", wait_s=0, on_wait=lambda _name, _err: None
    ) as lock:
        with pytest.raises(PlanMovedError):
            await move_objects(lock, staged, [found], target="hypervisor:lab", wait_s=0)
    assert rows_of(states, HYPERVISOR.state_name) == set()
    assert len(rows_of(states, SHARED.state_name)) == 3
