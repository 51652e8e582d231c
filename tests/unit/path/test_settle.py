"""A model is fitted to the guests that exist: their ids, and the nodes where they run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stackyard.desired import Desired
from stackyard.guard import Cluster, ClusterGuest, Node, Permit
from stackyard.guard.moves import ALLOW_MIGRATE
from stackyard.path.known_state import KnownState
from stackyard.path.settle import ModelContext, SettledModel, settle
from stackyard.render.references import CONTAINER, VM
from stackyard.state.inside import Instance

NODES = tuple(
    Node(name=name, memory_bytes=2**33, bridges=frozenset(), is_online=name != "pve2")
    for name in ("pve1", "pve2", "pve3")
)


def desired(*guests: dict[str, Any], kind: str = "vms") -> Desired:
    rows = [{"key": guest["name"], "node": "pve1", **guest} for guest in guests]
    return Desired.model_validate({kind: rows})


def counted(*names: str, base: int = 100) -> Desired:
    rows = ({"name": name, "vm_id": base + i, "vm_id_counted": True} for i, name in enumerate(names))
    return desired(*rows)


def known(**ids: int) -> KnownState:
    return state_with(VM, ids)


def state_with(kind: str, ids: dict[str, int]) -> KnownState:
    instances = {
        f"{kind}.{name}": Instance(
            address=f"{kind}.{name}",
            mode="managed",
            type=kind,
            attributes={"vm_id": vm_id, "node_name": "pve1"},
        )
        for name, vm_id in ids.items()
    }
    return KnownState(instances=instances)


def there(name: str, vm_id: int, node: str = "pve1", kind: str = "qemu") -> ClusterGuest:
    return ClusterGuest(vm_id=vm_id, name=name, node=node, kind=kind)


def around(state: KnownState, *guests: ClusterGuest, **others: Any) -> ModelContext:
    cluster = Cluster(nodes=NODES, storages=(), guests=guests)
    return ModelContext(known=state, cluster=cluster, **others)


def ids(found: SettledModel) -> dict[str, int | None]:
    return {guest.name: guest.vm_id for guest in found.desired.guests}


def test_existing_guests_keep_their_ids_and_new_ones_get_the_next_free() -> None:
    state = known(db=100, web=101, mail=102)
    guests = (there("db", 100), there("web", 101), there("mail", 102), there("foreign", 103))
    found = settle(counted("web", "mail", "new"), around(state, *guests))
    assert ids(found) == {"web": 101, "mail": 102, "new": 104}
    assert [note.kind.code for note in found.notes] == ["W-GUARD-OTHER-ID"]


def test_ids_that_users_wrote_down_and_ids_of_other_states_stay_where_they_are() -> None:
    written = desired({"name": "web", "vm_id": 100})
    assert ids(settle(written, around(known(web=200), there("web", 200)))) == {"web": 100}
    assert ids(settle(counted("web"), around(known(), managed={100: "env/other/pve1"}))) == {"web": 101}


def test_a_guest_of_the_same_name_or_half_made_by_us_keeps_the_counted_id() -> None:
    assert ids(settle(counted("web"), around(known(), there("web", 100)))) == {"web": 100}
    half_made = around(known(), there("web", 105), unfinished={"web": 105})
    assert ids(settle(counted("web"), half_made)) == {"web": 105}


def test_nothing_is_numbered_where_the_state_cannot_be_read() -> None:
    model = counted("web")
    assert settle(model, around(KnownState(is_readable=False), there("x", 100))).desired is model


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_whatever_comes_and_goes_no_guest_that_stays_gets_another_id(
    before: list[str], after: list[str]
) -> None:
    first = ids(settle(counted(*before), around(known())))
    given_ids = {name: vm_id for name, vm_id in first.items() if vm_id is not None}
    guests = [there(name, vm_id) for name, vm_id in given_ids.items()]
    then = ids(settle(counted(*after), around(known(**given_ids), *guests)))
    assert {name: then[name] for name in after if name in given_ids} == {
        name: given_ids[name] for name in after if name in given_ids
    }
    assert len(set(then.values())) == len(then)


def test_a_guest_stays_on_the_node_where_it_runs() -> None:
    model = desired({"name": "web", "vm_id": 100, "node": "pve2"})
    found = settle(model, around(known(web=100), there("web", 100, node="pve3")))
    (guest,) = found.desired.guests
    assert guest.node == "pve3"
    assert [note.kind.code for note in found.notes] == ["W-GUARD-ELSEWHERE"]
    assert "--allow-migrate web" in found.notes[0].detail


def test_a_replication_is_turned_round_with_a_guest_that_moved_to_its_copies() -> None:
    model = desired({"name": "web", "vm_id": 100, "node": "pve2", "replication": ["pve3", "pve1"]})
    found = settle(model, around(known(web=100), there("web", 100, node="pve3")))
    (guest,) = found.desired.guests
    assert [job.target for job in guest.replication] == ["pve2", "pve1"]


def test_a_guest_under_high_availability_is_moved_by_its_own_command() -> None:
    model = desired({"name": "web", "vm_id": 100, "node": "pve2", "ha": {}})
    permits = {Permit(option=ALLOW_MIGRATE, name="web")}
    found = settle(model, around(known(web=100), there("web", 100), permits=permits))
    (guest,) = found.desired.guests
    assert guest.node == "pve1"
    assert "`ha-manager migrate vm:100 pve2`" in found.notes[0].detail


def test_a_node_that_does_not_exist_is_left_for_the_guard_to_refuse() -> None:
    model = desired({"name": "web", "vm_id": 100, "node": "pve9"})
    found = settle(model, around(known(web=100), there("web", 100)))
    (guest,) = found.desired.guests
    assert (guest.node, found.notes) == ("pve9", ())


def test_a_moved_container_is_found_again_and_moved_back_only_by_name() -> None:
    container = {"name": "dns", "vm_id": 100, "clone": {"vm_id": 900}}
    model = desired(container, kind="containers")
    moved = there("dns", 100, node="pve3", kind="lxc")
    found = settle(model, around(state_with(CONTAINER, {"dns": 100}), moved))
    assert found.edit.nodes == {f"{CONTAINER}.dns": "pve3"}
    assert found.migrations == ()
    permits = {Permit(option=ALLOW_MIGRATE, name="dns")}
    permitted = settle(model, around(state_with(CONTAINER, {"dns": 100}), moved, permits=permits))
    assert [(one.vm_id, one.target) for one in permitted.migrations] == [(100, "pve1")]
    (guest,) = permitted.desired.guests
    # A provider would replace a container that its configuration puts elsewhere.
    assert guest.node == "pve3"
