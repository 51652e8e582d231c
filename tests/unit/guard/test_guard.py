"""The guard: what would destroy, stop or collide is refused until it is named, all of it at once."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stackyard.desired import Desired
from stackyard.engine.changes import UNKNOWN, Action, Change, Changes, Difference
from stackyard.guard import (
    Allowances,
    Cluster,
    ClusterGuest,
    ClusterObject,
    GuardRefusedError,
    Node,
    Owners,
    Permit,
    Storage,
    Verdict,
    inspect,
    inspect_placement,
)

VM = "proxmox_virtual_environment_vm"
CT = "proxmox_virtual_environment_container"
POOL = "proxmox_virtual_environment_pool"
FILE = "proxmox_virtual_environment_file"
SNIPPET = {
    "id": "local:snippets/vm-100-user-data.yaml",
    "datastore_id": "local",
    "content_type": "snippets",
    "source_raw": [{"file_name": "vm-100-user-data.yaml", "data": "#cloud-config"}],
}
READS_SNIPPET = {"initialization": [{"user_data_file_id": SNIPPET["id"]}]}
GIB = 2**30


def change(kind: str, name: str, action: Action, **values: Any) -> Change:
    """Return a change; `before` and `after` are derived from the action unless given."""
    base = {"name": name, "node_name": "pve1"} if kind == VM else {"node_name": "pve1"}
    before = None if action is Action.CREATE else {**base, **values.get("before", {})}
    after = None if action is Action.DELETE else {**base, **values.get("after", {})}
    return Change(
        address=f"{kind}.{name}",
        kind=kind,
        name=name,
        action=action,
        before=before,
        after=after,
        differences=values.get("differences", ()),
    )


RULES = "proxmox_virtual_environment_firewall_rules"
OPTIONS = "proxmox_virtual_environment_firewall_options"
ALIAS = "proxmox_virtual_environment_firewall_alias"
COPY = "proxmox_replication"
KEPT = change(VM, "kept", Action.NOTHING)


def verdict(
    *changes: Change, permits: tuple[tuple[str, str], ...] = (), cluster: Cluster | None = None
) -> Verdict:
    named = frozenset(Permit(option=option, name=name) for option, name in permits)
    return inspect(Changes(planned=changes), Allowances(permits=named), cluster, is_rendered=True)


def codes(found: Verdict) -> list[str]:
    return [finding.kind.code for finding in found.refused]


def test_a_plan_that_only_adds_is_let_through() -> None:
    assert codes(verdict(KEPT, change(VM, "web", Action.CREATE))) == []


@pytest.mark.parametrize("action", [Action.DELETE, Action.REPLACE])
@pytest.mark.parametrize("kind", [VM, CT])
def test_each_guest_that_goes_has_to_be_named(action: Action, kind: str) -> None:
    gone = [change(kind, "web", action), change(kind, "db", action)]
    assert codes(verdict(KEPT, *gone)) == ["E-GUARD-DESTROYS-GUEST", "E-GUARD-DESTROYS-GUEST"]
    one = verdict(KEPT, *gone, permits=(("--allow-destroy", "web"),))
    assert [str(finding.permit) for finding in one.refused] == ["--allow-destroy db"]
    both = verdict(KEPT, *gone, permits=(("--allow-destroy", "web"), ("--allow-destroy", "db")))
    assert codes(both) == []
    assert len(both.permitted) == 2


def test_a_protected_guest_cannot_be_named_away() -> None:
    gone = change(VM, "web", Action.DELETE, before={"protection": True})
    assert codes(verdict(KEPT, gone, permits=(("--allow-destroy", "web"),))) == ["E-GUARD-DESTROYS-PROTECTED"]


def test_a_container_is_called_by_its_hostname() -> None:
    gone = change(CT, "key1", Action.DELETE, before={"initialization": [{"hostname": "dns"}], "vm_id": 105})
    found = verdict(KEPT, gone).refused[0]
    assert found.detail == "container dns (105 on pve1) would be destroyed."
    assert str(found.permit) == "--allow-destroy dns"


def test_the_reason_of_a_replacement_is_said() -> None:
    moved = Difference(path=("node_name",), before="pve1", after="pve2", forces_replace=True)
    found = verdict(KEPT, change(CT, "web", Action.REPLACE, differences=(moved,))).refused[0]
    assert "because of node_name" in found.detail


@pytest.mark.parametrize(
    ("kind", "values", "name"),
    [
        ("proxmox_virtual_environment_pool", {"pool_id": "prod"}, "prod"),
        ("proxmox_download_file", {"file_name": "debian.img"}, "debian.img"),
        ("proxmox_network_linux_bridge", {"name": "vmbr1", "node_name": "pve1"}, "vmbr1"),
        ("proxmox_sdn_vnet", {"id": "vnet1"}, "vnet1"),
        ("proxmox_virtual_environment_storage_nfs", {}, "label"),
    ],
)
def test_what_guests_depend_on_has_to_be_named_too(kind: str, values: dict[str, Any], name: str) -> None:
    gone = change(kind, "label", Action.DELETE, before=values)
    found = verdict(KEPT, gone)
    assert "E-GUARD-DESTROYS-OBJECT" in codes(found)
    assert f"--allow-destroy {name}" in [str(finding.permit) for finding in found.refused]


@pytest.mark.parametrize("kind", ["proxmox_haresource", "proxmox_harule"])
def test_high_availability_is_a_setting_that_goes_unnamed(kind: str) -> None:
    gone = change(kind, "web", Action.DELETE, before={"id": "vm:100", "resource_id": "vm:100"})
    assert codes(verdict(KEPT, gone)) == []


def test_the_data_of_a_guest_goes_with_it() -> None:
    data = change(FILE, "web_user_data", Action.DELETE, before=SNIPPET)
    found = verdict(KEPT, data, change(VM, "web", Action.DELETE, before=READS_SNIPPET))
    assert codes(found) == ["E-GUARD-DESTROYS-GUEST"]
    assert codes(verdict(KEPT, data)) == ["E-GUARD-DESTROYS-OBJECT"]


def test_data_that_is_written_anew_is_not_lost() -> None:
    data = change(FILE, "web_user_data", Action.REPLACE, before=SNIPPET)
    assert codes(verdict(KEPT, data)) == []


def test_the_data_of_a_renamed_guest_goes_with_it() -> None:
    old = change(VM, "web", Action.DELETE, before={"vm_id": 100, **READS_SNIPPET})
    new = change(VM, "www", Action.CREATE, after={"vm_id": 100, **READS_SNIPPET})
    coming = {name: value for name, value in SNIPPET.items() if name != "id"}
    data = [
        change(FILE, "web_user_data", Action.DELETE, before=SNIPPET),
        change(FILE, "www_user_data", Action.CREATE, after={**coming, "id": UNKNOWN}),
    ]
    found = verdict(KEPT, old, new, *data)
    assert codes(found) == ["E-GUARD-RENAMES-GUEST"]
    assert found.renames[0].moves == (
        (f"{VM}.web", f"{VM}.www"),
        (f"{FILE}.web_user_data", f"{FILE}.www_user_data"),
    )


def test_files_go_with_everything_else() -> None:
    image = change("proxmox_download_file", "image", Action.DELETE)
    everything = Allowances(permits=frozenset((Permit(option="--allow-destroy", name="a"),)), everything=True)
    assert (
        inspect(
            Changes(planned=(change(VM, "a", Action.DELETE), image)), everything, is_rendered=True
        ).refused
        == ()
    )


def test_a_plan_that_keeps_nothing_of_the_state_is_not_this_target() -> None:
    found = verdict(
        change(VM, "a", Action.DELETE), change(VM, "b", Action.CREATE), permits=(("--allow-destroy", "a"),)
    )
    assert codes(found) == ["E-GUARD-NOTHING-IN-COMMON"]


def test_destroying_everything_on_purpose_is_no_accident() -> None:
    named = Allowances(permits=frozenset((Permit(option="--allow-destroy", name="a"),)), everything=True)
    assert inspect(Changes(planned=(change(VM, "a", Action.DELETE),)), named, is_rendered=True).refused == ()


DISK = {"interface": "scsi0", "datastore_id": "local-lvm", "size": 20}
MOUNT = {"path": "/srv", "volume": "local-lvm", "size": "10G"}


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ({"disk": [DISK]}, {"disk": []}, "the disk scsi0 would be removed"),
        ({"disk": [DISK]}, {"disk": [{**DISK, "size": 10}]}, "would shrink from 20 to 10"),
        ({"disk": [DISK]}, {"disk": [{**DISK, "datastore_id": "ssd"}]}, "would move from local-lvm to ssd"),
        ({"disk": [DISK]}, {"disk": [{**DISK, "interface": "scsi1"}]}, "the disk scsi0 would be removed"),
        ({"efi_disk": [{"datastore_id": "a"}]}, {"efi_disk": []}, "the EFI disk would be removed"),
        ({"mount_point": [MOUNT]}, {"mount_point": []}, "the mount point /srv would be removed"),
        ({"mount_point": [MOUNT]}, {"mount_point": [{**MOUNT, "size": "1G"}]}, "would shrink from 10G to 1G"),
    ],
)
def test_a_disk_is_not_lost_in_an_update(before: dict[str, Any], after: dict[str, Any], part: str) -> None:
    update = change(VM, "web", Action.UPDATE, before=before, after=after)
    found = verdict(update)
    assert codes(found) == ["E-GUARD-LOSES-DISK"]
    assert part in found.refused[0].detail
    assert codes(verdict(update, permits=(("--allow-disk-loss", "web"),))) == []


def test_a_disk_may_grow_and_a_new_one_come() -> None:
    after = {"disk": [{**DISK, "size": 30}, {**DISK, "interface": "scsi1"}]}
    assert codes(verdict(change(VM, "web", Action.UPDATE, before={"disk": [DISK]}, after=after))) == []


def update(name: str, path: tuple[str | int, ...], **sides: Any) -> Change:
    difference = Difference(path=path, before=1, after=2)
    return change(VM, name, Action.UPDATE, differences=(difference,), **sides)


@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        (("cpu", 0, "cores"), True),
        (("machine",), True),
        (("disk", 0, "cache"), True),
        (("disk", 0, "size"), False),
        (("description",), False),
        (("tags", 0), False),
    ],
)
def test_a_running_guest_is_rebooted_only_by_name(path: tuple[str | int, ...], is_refused: bool) -> None:
    running = {"before": {"started": True}, "after": {"started": True}}
    assert codes(verdict(update("web", path, **running))) == (["E-GUARD-REBOOTS-GUEST"] if is_refused else [])
    assert codes(verdict(update("web", path, **running), permits=(("--allow-reboot", "web"),))) == []
    assert codes(verdict(update("web", path, before={"started": False}))) == []


def test_stopping_a_guest_is_as_much_as_rebooting_it() -> None:
    stopped = update("web", ("started",), before={"started": True}, after={"started": False})
    assert codes(verdict(stopped)) == ["E-GUARD-REBOOTS-GUEST"]


def test_a_node_reloads_its_network_only_by_name() -> None:
    bridge = change("proxmox_network_linux_bridge", "x", Action.CREATE, after={"name": "vmbr1"})
    assert codes(verdict(KEPT, bridge)) == ["E-GUARD-RELOADS-NETWORK"]
    assert codes(verdict(KEPT, bridge, permits=(("--allow-network-reload", "pve1"),))) == []


def test_the_same_vm_id_under_a_new_key_is_a_rename() -> None:
    old = change(VM, "web", Action.DELETE, before={"vm_id": 100})
    new = change(VM, "www", Action.CREATE, after={"vm_id": 100})
    found = verdict(KEPT, old, new)
    assert codes(found) == ["E-GUARD-RENAMES-GUEST"]
    assert [(r.source, r.destination) for r in found.renames] == [(f"{VM}.web", f"{VM}.www")]


def test_the_same_make_under_a_new_key_is_a_rename_when_no_id_is_given() -> None:
    make = {"disk": [DISK], "memory": [{"dedicated": 512}]}
    old = change(VM, "web", Action.DELETE, before={"vm_id": 100, **make})
    new = change(VM, "www", Action.CREATE, after=make)
    assert codes(verdict(KEPT, old, new)) == ["E-GUARD-RENAMES-GUEST"]
    other = change(VM, "www", Action.CREATE, after={**make, "memory": [{"dedicated": 1024}]})
    assert codes(verdict(KEPT, old, other)) == ["E-GUARD-DESTROYS-GUEST"]


def test_one_guest_is_the_new_key_of_one_other_at_most() -> None:
    make = {"disk": [DISK]}
    old = [change(VM, f"old{n}", Action.DELETE, before={"vm_id": 100 + n, **make}) for n in range(2)]
    found = verdict(KEPT, *old, change(VM, "new", Action.CREATE, after=make))
    assert sorted(codes(found)) == ["E-GUARD-DESTROYS-GUEST", "E-GUARD-RENAMES-GUEST"]


CLUSTER = Cluster(
    nodes=(
        Node(name="pve1", memory_bytes=8 * GIB, bridges=frozenset(("vmbr0",))),
        Node(name="pve2", memory_bytes=8 * GIB, bridges=frozenset(), is_online=False),
    ),
    storages=(
        Storage(name="local-lvm", node="pve1", free_bytes=1 * GIB, total_bytes=100 * GIB, is_thin=True),
        Storage(name="local", node="pve1", free_bytes=10 * GIB, total_bytes=100 * GIB),
    ),
    guests=(ClusterGuest(vm_id=100, name="stranger", node="pve1", kind="qemu", memory_bytes=4 * GIB),),
)


def test_a_stranger_with_the_same_vm_id_or_name_is_in_the_way() -> None:
    same_id = change(VM, "web", Action.CREATE, after={"vm_id": 100})
    same_name = change(VM, "stranger", Action.CREATE)
    other = change(VM, "db", Action.CREATE, after={"vm_id": 101})
    found = verdict(KEPT, same_id, same_name, other, cluster=CLUSTER)
    assert codes(found) == ["E-GUARD-UNMANAGED-GUEST", "E-GUARD-UNMANAGED-GUEST"]


def test_a_guest_of_another_manifest_with_the_same_name_is_not_in_the_way() -> None:
    [stranger] = CLUSTER.guests
    theirs = dataclasses.replace(stranger, tags=frozenset(("stackyard.other", "prod")))
    cluster = dataclasses.replace(CLUSTER, guests=(theirs,))
    new = change(VM, "stranger", Action.CREATE, after={"tags": ["stackyard.mine"]})
    assert codes(verdict(KEPT, new, cluster=cluster)) == []
    lost = change(VM, "stranger", Action.CREATE, after={"tags": ["stackyard.other"]})
    assert codes(verdict(KEPT, lost, cluster=cluster)) == ["E-GUARD-UNMANAGED-GUEST"]
    same_id = change(VM, "web", Action.CREATE, after={"vm_id": 100, "tags": ["stackyard.mine"]})
    assert codes(verdict(KEPT, same_id, cluster=cluster)) == ["E-GUARD-UNMANAGED-GUEST"]


def test_a_guest_of_the_state_is_no_stranger() -> None:
    known = change(VM, "stranger", Action.NOTHING, before={"vm_id": 100})
    assert codes(verdict(known, change(VM, "stranger2", Action.CREATE), cluster=CLUSTER)) == []


NEW_OBJECTS = {
    "pool": ({"pool_id": "infra"}, ClusterObject.from_name("pool", "infra")),
    "network_linux_bridge": (
        {"node_name": "pve1", "name": "vmbr7"},
        ClusterObject.from_name("network_linux_bridge", "pve1:vmbr7"),
    ),
    "sdn_zone_simple": ({"id": "zone1"}, ClusterObject.from_name("sdn_zone_simple", "zone1")),
    "sdn_vnet": ({"id": "lan1"}, ClusterObject.from_name("sdn_vnet", "lan1")),
    "sdn_subnet": (
        {"vnet": "lan1", "cidr": "10.0.0.0/24"},
        ClusterObject(
            kind="sdn_subnet",
            identity="lan1/10.0.0.0/24",
            import_id="lan1/zone1-10.0.0.0-24",
            state_id="zone1-10.0.0.0-24",
        ),
    ),
    "haresource": ({"resource_id": "ct:100"}, ClusterObject.from_name("haresource", "ct:100")),
    "harule": ({"rule": "apart"}, ClusterObject.from_name("harule", "apart")),
}


@pytest.mark.parametrize("kind", NEW_OBJECTS)
def test_an_object_that_is_there_is_in_the_way_and_can_be_taken_over(kind: str) -> None:
    values, there = NEW_OBJECTS[kind]
    cluster = dataclasses.replace(CLUSTER, objects=(there,))
    new = change(f"proxmox_{kind}", "new", Action.CREATE, after=values)
    permits = (("--allow-network-reload", "pve1"),)
    found = verdict(KEPT, new, cluster=cluster, permits=permits)
    assert codes(found) == ["E-GUARD-UNMANAGED-OBJECT"]
    assert [(one.address, one.import_id) for one in found.adoptions] == [(new.address, there.import_id)]
    assert (
        codes(verdict(KEPT, dataclasses.replace(new, imported_as="x"), cluster=cluster, permits=permits))
        == []
    )
    unknown = change(f"proxmox_{kind}", "new", Action.CREATE, after=dict.fromkeys(values, UNKNOWN))
    assert verdict(KEPT, unknown, cluster=cluster).adoptions == ()


def test_an_object_of_another_state_is_not_taken_over() -> None:
    cluster = dataclasses.replace(CLUSTER, objects=(ClusterObject.from_name("pool", "infra"),))
    new = Changes(planned=(KEPT, change(POOL, "infra", Action.CREATE, after={"pool_id": "infra"})))
    owned = Owners(states={("pool", "infra"): "env/a"})
    found = inspect(new, Allowances(), cluster, owned, is_rendered=True)
    assert (codes(found), found.adoptions) == (["E-GUARD-MANAGED-ELSEWHERE"], ())
    for owners in (Owners(maybe={("pool", "infra"): "env/a"}), Owners(unreadable=("env/b",))):
        found = inspect(new, Allowances(), cluster, owners, is_rendered=True)
        assert (codes(found), found.adoptions) == (["E-GUARD-OWNER-UNKNOWN"], ())


def placed(**values: Any) -> Verdict:
    guest = {"key": "web", "name": "web", "node": "pve1", **values}
    desired = Desired.model_validate({"vms": [guest]})
    return inspect_placement(desired, Changes(planned=(change(VM, "web", Action.CREATE),)), CLUSTER)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"node": "pve9"}, "E-GUARD-NO-SUCH-NODE"),
        ({"node": "pve2"}, "E-GUARD-NO-SUCH-NODE"),
        ({"disks": [{"interface": "scsi0", "datastore": "gone"}]}, "E-GUARD-NO-SUCH-STORAGE"),
        (
            {"disks": [{"interface": "scsi0", "datastore": "local", "size_gib": 11}]},
            "E-GUARD-TOO-MUCH-STORAGE",
        ),
        (
            {"disks": [{"interface": "scsi0", "datastore": "local-lvm", "size_gib": 101}]},
            "E-GUARD-TOO-MUCH-STORAGE",
        ),
        ({"nics": [{"bridge": "vmbr7"}]}, "E-GUARD-NO-SUCH-BRIDGE"),
        ({"memory": {"dedicated_mib": 9000}}, "E-GUARD-TOO-MUCH-MEMORY"),
    ],
)
def test_what_the_cluster_has_not_is_said_before_anything_is_made(values: dict[str, Any], code: str) -> None:
    assert code in codes(placed(**values))


def test_what_fits_is_let_through_and_a_full_node_is_a_warning() -> None:
    assert codes(placed(nics=[{}], disks=[{"interface": "scsi0", "datastore": "local-lvm"}])) == []
    crowded = placed(memory={"dedicated_mib": 6 * 1024})
    assert codes(crowded) == []
    assert [finding.kind.code for finding in crowded.warnings] == ["W-GUARD-OVERCOMMITS-MEMORY"]


def test_a_refusal_carries_every_finding_and_what_would_permit_them() -> None:
    found = verdict(KEPT, change(VM, "b", Action.DELETE), change(VM, "a", Action.DELETE))
    with pytest.raises(GuardRefusedError) as caught:
        found.raise_refusal("env:dev")
    assert caught.value.detail == "env:dev is not applied, for 2 reasons; nothing was changed."
    assert [str(permit) for permit in caught.value.permits] == ["--allow-destroy a", "--allow-destroy b"]
    assert len(caught.value.diagnostics) == 2


def test_what_was_never_finished_is_replaced_only_where_nothing_can_be_lost() -> None:
    """A file whose making failed may be replaced; a guest is completed instead, or named."""
    unfinished = "replace_because_tainted"
    file = dataclasses.replace(change("proxmox_download_file", "image", Action.REPLACE), reason=unfinished)
    guest = dataclasses.replace(change(VM, "web", Action.REPLACE), reason=unfinished)
    verdict = inspect(
        Changes(planned=(file, guest, change(VM, "db", Action.NOTHING))), Allowances(), is_rendered=True
    )
    assert [found.permit for found in verdict.refused] == [Permit(option="--allow-destroy", name="web")]
    assert "because its creation failed" in verdict.refused[0].detail


def test_the_firewall_and_the_copies_of_a_guest_go_with_it_alone() -> None:
    of_web = {"vm_id": 100}
    parts = (
        change(RULES, "web", Action.DELETE, before=of_web),
        change(OPTIONS, "web", Action.DELETE, before={**of_web, "enabled": True, "input_policy": "DROP"}),
        change(COPY, "web_0", Action.DELETE, before={"id": "100-0"}),
    )
    gone = change(VM, "web", Action.DELETE, before=of_web)
    assert codes(verdict(KEPT, gone, *parts)) == ["E-GUARD-DESTROYS-GUEST"]
    stays = change(VM, "web", Action.NOTHING, before=of_web)
    found = verdict(stays, *parts)
    assert [(one.kind.code, one.permit and one.permit.name) for one in found.refused] == [
        ("E-GUARD-DESTROYS-OBJECT", "100/rules"),
        ("E-GUARD-FIREWALL-STAYS", "100/options"),
        ("E-GUARD-DESTROYS-OBJECT", "100-0"),
    ]
    off = change(OPTIONS, "web", Action.DELETE, before={**of_web, "enabled": False})
    assert codes(verdict(stays, off)) == []


def test_a_rename_takes_the_firewall_and_the_copies_along() -> None:
    old, new = {"vm_id": 100}, {"vm_id": 100}
    found = verdict(
        KEPT,
        change(VM, "old", Action.DELETE, before=old),
        change(VM, "new", Action.CREATE, after=new),
        change(RULES, "old", Action.DELETE, before=old),
        change(RULES, "new", Action.CREATE, after=new),
        change(ALIAS, "old_office_x2f", Action.DELETE, before={**old, "name": "office"}),
        change(ALIAS, "new_office_x2f", Action.CREATE, after={**new, "name": "office"}),
        change(COPY, "old_3", Action.DELETE, before={"id": "100-3"}),
        change(COPY, "new_3", Action.CREATE, after={"id": "100-3"}),
    )
    assert found.renames[0].belongings == (
        (f"{RULES}.old", f"{RULES}.new"),
        (f"{ALIAS}.old_office_x2f", f"{ALIAS}.new_office_x2f"),
        (f"{COPY}.old_3", f"{COPY}.new_3"),
    )
    assert codes(found) == ["E-GUARD-RENAMES-GUEST"]


@pytest.mark.parametrize(
    ("target", "datastore", "code"),
    [
        ("pve2", "tank", None),
        ("pve2", "shared", None),
        ("pve2", "thick", "E-GUARD-REPLICATION"),
        ("pve2", "lone", "E-GUARD-NO-SUCH-STORAGE"),
        ("pve9", "tank", "E-GUARD-NO-SUCH-NODE"),
    ],
)
def test_only_disks_that_both_nodes_have_on_zfs_are_replicated(
    target: str, datastore: str, code: str | None
) -> None:
    def storage(name: str, node: str, kind: str = "zfspool", **more: Any) -> Storage:
        return Storage(name=name, node=node, free_bytes=99 * GIB, total_bytes=99 * GIB, type=kind, **more)

    both = [storage("tank", "pve1"), storage("tank", "pve2"), storage("thick", "pve1", "lvm")]
    cluster = Cluster(
        nodes=tuple(Node(name=name, memory_bytes=9 * GIB, bridges=frozenset()) for name in ("pve1", "pve2")),
        storages=(*both, storage("shared", "pve1", "nfs", is_shared=True), storage("lone", "pve1")),
        guests=(),
    )
    disks = [
        {"interface": "scsi0", "datastore": datastore},
        {"interface": "scsi1", "datastore": "thick", "replicate": False},
    ]
    guest = {"key": "web", "name": "web", "node": "pve1", "disks": disks, "replication": target}
    desired = Desired.model_validate({"vms": [guest]})
    found = inspect_placement(desired, Changes(planned=(change(VM, "web", Action.CREATE),)), cluster)
    assert [one.kind.code for one in found.refused] == ([] if code is None else [code])
