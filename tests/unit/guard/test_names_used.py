"""What is used by name: only what is known to be missing is refused."""

from __future__ import annotations

from typing import Any

from stackyard.desired import ClusterObject, Desired, ObjectKey
from stackyard.guard import Cluster, Node
from stackyard.guard.cluster_names import ask_cluster_names, find_cluster_names
from stackyard.guard.declared import BRIDGE as BRIDGE_KIND
from stackyard.guard.declared import POOL, Declared, DeclaredObject
from stackyard.guard.facts import PERMISSIONS, ApiRead, Facts
from stackyard.guard.implied import ImpliedCalls
from stackyard.guard.names_used.interfaces import interfaces_of
from stackyard.guard.names_used.users import ACL
from stackyard.guard.node_interfaces import ask_node_interfaces, find_node_interfaces
from stackyard.guard.pci_mappings import find_mapping_problem, pci_details_of
from stackyard.guard.storage_places import find_storage_places
from stackyard.render.objects import address_of_object
from stackyard.sources.hypervisor.models import resource_type

NODES = tuple(Node(name=name, memory_bytes=1, bridges=frozenset()) for name in ("pve1", "pve2"))
CLUSTER = Cluster(nodes=NODES, storages=(), guests=())
ALL = {"/": dict.fromkeys(("Sys.Audit", "SDN.Audit", "Pool.Audit", "Datastore.Audit"), 1)}
BRIDGE = {"iface": "vmbr1", "type": "bridge", "bridge_ports": "eno1", "cidr": "192.0.2.1/24"}
CARDS = [{"iface": f"eno{number}", "type": "eth"} for number in (1, 2)]
# What a node has beside its cards: an alternative name, and a bridge that passes VLANs.
MORE = [
    {"iface": "eno3", "type": "eth", "altnames": ["enp3s0"]},
    {"iface": "vmbr2", "type": "bridge", "bridge_vlan_aware": 1},
    {"iface": "v7", "type": "vlan", "vlan-raw-device": "vmbr2", "vlan-id": "7"},
]


def make(kind: str, name: str, /, **attributes: Any) -> ClusterObject:
    return ClusterObject(key=ObjectKey(type=resource_type(kind), name=name), attributes=attributes)


def entry(path: str) -> ClusterObject:
    return make("acl", path, path=path, group_id="ops", role_id="NoAccess")


def interface(kind: str, name: str, /, **attributes: Any) -> ClusterObject:
    return make(f"network_linux_{kind}", name, node_name="pve1", name=name, **attributes)


def facts(answers: dict[ApiRead, Any] | None = None, **listed: list[dict[str, Any]]) -> Facts:
    lists = {ApiRead("/" + path.replace("__", "/")): rows for path, rows in listed.items()}
    return Facts(cluster=CLUSTER, answers={PERMISSIONS: ALL, **lists, **(answers or {})})


def find(implied: ImpliedCalls, known: Facts) -> list[str]:
    found = (find_cluster_names, find_node_interfaces, find_storage_places)
    return [f"{one.kind.code} {one.detail}" for check in found for one in check(implied, known)]


def test_an_acl_entry_may_name_what_another_target_makes_later() -> None:
    known = facts(pools=[], access__groups=[{"groupid": "ops"}], access__roles=[{"roleid": "NoAccess"}])
    desired = Desired(
        objects=(entry("/pool/apps"), entry("/vms/100"), entry("/sdn/zones/localnetwork/vmbr0"))
    )
    assert [text.partition(";")[0] for text in find(ImpliedCalls(desired=desired), known)] == [
        "E-GUARD-NO-SUCH-OBJECT The ACL entry NoAccess for ops on /pool/apps uses the pool apps"
    ]
    declared = Declared(objects=(DeclaredObject(kind=POOL, name="apps", target="env:dev"),))
    assert find(ImpliedCalls(desired=desired, declared=declared), known) == []


def test_what_a_plan_leaves_as_it_is_is_not_looked_at() -> None:
    one = make("backup_job", "nightly", id="nightly", storage="gone", node="pve9")
    desired = Desired(objects=(one,))
    assert len(find(ImpliedCalls(desired=desired), facts(storage=[]))) == 2
    unchanged = frozenset({address_of_object(one.key)})
    implied = ImpliedCalls(desired=desired, unchanged=unchanged)
    assert find(implied, facts(storage=[])) == []
    assert list(ask_cluster_names(implied, CLUSTER)) == []


def test_a_role_that_a_token_has_already_is_not_looked_at() -> None:
    grant = {"token": "a@pve!b", "path": "/pool/gone", "role": "Gone", "propagate": True}
    desired = Desired.model_validate({"credentials": {"grants": [grant]}})
    lists: dict[str, Any] = {"pools": [], "access__roles": [], "access__users": [{"userid": "a@pve"}]}
    assert len(find(ImpliedCalls(desired=desired), facts(**lists))) == 2
    row = {"path": "/pool/gone", "roleid": "Gone", "ugid": "a@pve!b"}
    assert find(ImpliedCalls(desired=desired), facts({ACL: [row]}, **lists)) == []


def test_interfaces_that_fit_a_node_are_accepted() -> None:
    rows = [*CARDS, *MORE, BRIDGE]
    known = facts({interfaces_of("pve1"): rows})
    fits = (
        interface("bridge", "vmbr1", ports=["eno1"], address="192.0.2.1/24"),
        interface("bridge", "vmbr3", ports=["enp3s0"]),
        interface("bridge", "vmbr4", ports=["eno2.20"]),
        interface("vlan", "vmbr2.8"),
        interface("vlan", "v7", interface="vmbr2", vlan=7),
        interface("vlan", "vmbr3.8"),
    )
    assert find(ImpliedCalls(desired=Desired(objects=fits)), known) == []
    # A port that leaves with its bridge is free; without an answer nothing is refused.
    takes = Desired(objects=(interface("bridge", "vmbr5", ports=["eno1"]),))
    assert len(find(ImpliedCalls(desired=takes), known)) == 1
    leaving = frozenset({("network_linux_bridge", "pve1", "vmbr1")})
    assert find(ImpliedCalls(desired=takes, leaving=leaving), known) == []
    assert find(ImpliedCalls(desired=takes), facts()) == []


def test_interfaces_that_a_node_would_refuse_or_that_break_it_are_not() -> None:
    known = facts({interfaces_of("pve1"): [*CARDS, *MORE, {**BRIDGE, "gateway": "192.0.2.254"}]})
    wrong = (
        interface("vlan", "w7", interface="vmbr2", vlan=7),
        interface("vlan", "vmbr1.5", address="192.0.2.65/26", gateway="192.0.2.66"),
    )
    assert find(ImpliedCalls(desired=Desired(objects=wrong)), known) == [
        "E-HYPERVISOR-VLAN v7 of pve1 is the VLAN 7 of vmbr2 already.",
        "E-HYPERVISOR-VLAN vmbr1.5 is on vmbr1 of pve1, which is not VLAN-aware.",
        "E-HYPERVISOR-OVERLAP 192.0.2.65/26 of vmbr1.5 overlaps 192.0.2.1/24, which vmbr1 of pve1 has.",
        "E-HYPERVISOR-GATEWAY vmbr1.5 has the gateway 192.0.2.66; vmbr1 of pve1 has one already.",
    ]


def test_a_zone_needs_its_bridge_on_the_nodes_that_it_names() -> None:
    known = facts({interfaces_of("pve1"): [BRIDGE], interfaces_of("pve2"): []})
    for nodes, missing in ((None, []), (["pve1"], []), (["pve1", "pve2"], ["pve2 has none."])):
        zone = make("sdn_zone_vlan", "z1", id="z1", bridge="vmbr1", nodes=nodes)
        implied = ImpliedCalls(desired=Desired(objects=(zone,)))
        assert {interfaces_of(one) for one in nodes or ("pve1", "pve2")} < set(
            ask_node_interfaces(implied, CLUSTER)
        )
        assert [text.rpartition("; ")[2] for text in find(implied, known)] == missing
    bridge = DeclaredObject(kind=BRIDGE_KIND, name="vmbr1", target="hypervisor:b", nodes=frozenset({"pve2"}))
    later = ImpliedCalls(desired=Desired(objects=(zone,)), declared=Declared(objects=(bridge,)))
    assert find(later, known) == []


def test_storages_in_one_place_are_told_apart_by_their_nodes() -> None:
    rows = [
        {"storage": "old", "type": "nfs", "server": "s", "export": "/a", "nodes": "pve2"},
        {"type": "rbd"},
    ]
    for nodes, count in ((None, 1), (["pve2"], 1), (["pve1"], 0)):
        new = make("storage_nfs", "new", id="new", server="s", export="/a/", nodes=nodes)
        assert len(find(ImpliedCalls(desired=Desired(objects=(new,))), facts(storage=rows))) == count
    # The one of the target that goes, and the one that is there already.
    implied = ImpliedCalls(desired=Desired(objects=(new,)), leaving=frozenset({("storage_nfs", "", "old")}))
    assert find(implied, facts(storage=rows)) == []


def test_an_entry_of_a_mapping_is_compared_as_proxmox_does() -> None:
    device = {"id": "0000:01:00.0", "vendor": "0x10de", "device": "0x1EB8", "iommugroup": 12}
    board = {"subsystem_vendor": "0x10de", "subsystem_device": "0x0001"}
    whole = {"node": "pve1", "path": "0000:01:00", "id": "10de:1eb8"}
    for row, entry_, problem in (
        (device, {**whole, "iommu_group": 12}, ""),
        ({**device, "iommugroup": -1}, whole, ""),
        (
            {**device, **board},
            {**whole, "iommu_group": 12},
            "`subsystem_id` 10de:0001, which the entry lacks.",
        ),
        (device, {**whole, "id": "1000:0097", "iommu_group": 12}, "`id` 10de:1eb8 and not 1000:0097."),
        (device, {**whole, "path": "0000:09:00.0"}, "pve1 has no PCI device 0000:09:00.0."),
    ):
        assert find_mapping_problem(entry_, facts({pci_details_of("pve1"): [row]})).endswith(problem)
        assert bool(find_mapping_problem(entry_, facts({pci_details_of("pve1"): [row]}))) == bool(problem)
    assert find_mapping_problem(whole, facts()) == ""
