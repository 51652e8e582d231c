"""Names that a cluster or node does not have: all are reported before the first change, with places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.pages import ROOT
from tests.support.path import SMALL_GUEST, Yard, make_yard

from stackyard import lab
from stackyard.base import yamledit
from stackyard.engine.version import Flavour
from stackyard.secrets import change_secrets

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

NODE = """\
node: pve1
bonds:
  bond3: {slaves: [ghost0, eno2]}
bridges:
  lan: {ports: [ghost7, eno4]}
  vmbr3: {vlan_aware: true}
  vmbr10: {address: 10.31.200.99/24, ports: [eno3]}
vlans:
  vmbr0.20: {}
  lan2.20: {}
  vmbr3.100: {}
"""
CLUSTER = """\
storages:
  same: {type: directory, path: /var/lib/vz/}
groups:
  mine: {}
users:
  anna@pve: {groups: [mine, nogroup]}
  ben@away: {}
acl:
  - {path: /pool/nopool, group_id: mine, role_id: PVEAdmin}
  - {path: /, user_id: gone@pve, role_id: NoRole}
  - {path: /nodes/pve9, group_id: mine, role_id: PVEAuditor}
backups:
  nightly: {schedule: "02:30", storage: nope, all: true}
  weekly: {schedule: "sat 02:30", storage: local-lvm, all: true}
replications:
  999-0: {target: pve7, type: local}
sdn:
  zones:
    z1: {type: vlan, bridge: vmbr55}
firewall:
  ipsets:
    trusted: [noalias, 10.0.0.0/8]
  rules:
    - {security_group: nogroup}
"""
GOOD_NODE = """\
node: pve1
bonds:
  bond4: {slaves: [eno4]}
bridges:
  vmbr7: {vlan_aware: true, ports: [eno3]}
vlans:
  vmbr7.20: {address: 192.0.2.9/24}
"""
GOOD_CLUSTER = """\
storages:
  fast: {type: directory, path: /srv/fast, content: [backup, images]}
pools:
  apps: {}
roles:
  Restart: [VM.PowerMgmt]
groups:
  mine: {}
users:
  anna@pve: {groups: [mine]}
acl:
  - {path: /pool/apps, group_id: mine, role_id: Restart}
  - {path: /storage/fast, user_id: anna@pve, role_id: PVEDatastoreUser}
backups:
  nightly: {schedule: "02:30", storage: fast, pool: apps}
  weekly: {schedule: "sat 02:30", storage: local, all: true}
sdn:
  zones:
    z1: {type: vlan, bridge: vmbr7}
  vnets:
    v1: {zone: z1, tag: 10}
firewall:
  aliases: {router: 192.0.2.1}
  ipsets:
    trusted: [router, 10.0.0.0/8]
  groups:
    web: [{type: in, action: ACCEPT, macro: HTTP, source: +trusted}]
  rules:
    - {security_group: web}
    - {type: in, action: ACCEPT, source: Router}
"""
CLUSTER_OF_OTHERS = """\
backups:
  nightly: {schedule: "02:30", storage: local, pool: unseen}
  weekly: {schedule: "sat 02:30", storage: hidden, all: true}
"""
BY_HAND = {"iface": "bond5", "type": "bond", "slaves": "eno3 eno4", "bond_mode": "active-backup"}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        (made.folder / "hypervisors").mkdir()
        yield made


def write(yard: Yard, name: str, text: str) -> None:
    (yard.folder / "hypervisors" / f"{name}.yaml").write_text(text)


def plan(yard: Yard, target: str) -> list[tuple[int, str]]:
    """Plan, which is refused; return line and text of every finding."""
    document = yard.json("plan", target, status=3)
    refused = document["guard"]["refused"]
    return sorted((one["where"]["line"], one["detail"]) for one in refused)


def test_a_node_reports_everything_that_does_not_fit_at_once(yard: Yard) -> None:
    proxmoxer_client(yard.running).nodes("pve1").network.post(**BY_HAND)
    write(yard, "pve1", NODE)
    there = "the node has bond5, eno1, eno2, eno3, eno4, vmbr0."
    assert plan(yard, "hypervisor:pve1") == [
        (3, f"bond3 of pve1 uses the interface ghost0; {there}"),
        (5, "eno4 is in bond5 of pve1, and would be in lan."),
        (5, f"lan of pve1 uses the interface ghost7; {there}"),
        (7, "10.31.200.99/24 of vmbr10 overlaps 10.31.0.11/16, which vmbr0 of pve1 has."),
        (7, "eno3 is in bond5 of pve1, and would be in vmbr10."),
        (9, "vmbr0.20 is on vmbr0 of pve1, which is not VLAN-aware."),
        (10, f"lan2.20 of pve1 is on lan2; {there}"),
    ]


def test_a_cluster_reports_every_name_that_it_does_not_have(yard: Yard) -> None:
    write(yard, "home", CLUSTER)
    found = plan(yard, "hypervisor:home")
    assert [(line, text.partition(";")[0].partition(" Did ")[0]) for line, text in found] == [
        (2, "local of the cluster and same are both /var/lib/vz."),
        (6, "The user anna@pve uses the group nogroup"),
        (7, "The user ben@away uses the realm away"),
        (9, "The ACL entry PVEAdmin for mine on /pool/nopool uses the pool nopool"),
        (10, "The ACL entry NoRole for gone@pve on / uses the role NoRole"),
        (10, "The ACL entry NoRole for gone@pve on / uses the user gone@pve"),
        (11, "The ACL entry PVEAuditor for mine on /nodes/pve9 uses the node pve9"),
        (13, "The backup job nightly uses the storage nope"),
        (14, "The backup job weekly needs `backup` on local-lvm of the cluster, which has images, rootdir."),
        (16, "The replication 999-0 uses the guest 999"),
        (16, "The replication 999-0 uses the node pve7"),
        (19, "The SDN zone z1 lies on the bridge vmbr55"),
        (22, "The firewall ipset trusted uses the alias noalias"),
        (24, "The firewall rules uses the security group nogroup"),
    ]


def test_what_the_same_apply_or_an_earlier_one_makes_is_accepted(yard: Yard) -> None:
    write(yard, "home", GOOD_CLUSTER)
    write(yard, "pve1", GOOD_NODE)
    # The zone lies on a bridge that another target makes.
    yard.json("plan", "hypervisor:home")
    permits = ("--yes", "--allow-network-reload", "pve1")
    yard.run("apply", "hypervisor:home", "--all", *permits)
    for target in ("home", "pve1"):
        assert not yard.json("plan", f"hypervisor:{target}")["has_changes"]
    # What moves from one interface to another in one plan is free in time, and what is there is no mistake.
    write(
        yard,
        "pve1",
        GOOD_NODE.replace("[eno3]", "[eno4]").replace("bond4: {slaves: [eno4]}", "bond4: {slaves: [eno3]}"),
    )
    yard.json("plan", "hypervisor:pve1", *permits[1:])
    write(
        yard, "pve1", GOOD_NODE.replace("  bond4: {slaves: [eno4]}\n", "").replace("[eno3]", "[eno3, eno4]")
    )
    yard.json("plan", "hypervisor:pve1", *permits[1:], "--allow-destroy", "bond4")


def test_what_a_token_may_not_see_is_no_reason_to_refuse(yard: Yard) -> None:
    write(yard, "home", CLUSTER_OF_OTHERS)
    api = proxmoxer_client(yard.running)
    api.storage.post(storage="hidden", type="dir", path="/srv/hidden", content="backup")
    api.access.roles.post(roleid="Jobs", privs="Sys.Modify,Sys.Audit,SDN.Allocate")
    api.access.users.post(userid="jobs@pve")
    api.access.acl.put(path="/", users="jobs@pve", roles="Jobs")
    value = api.access.users("jobs@pve").token("own").post(privsep=0)["value"]
    change_secrets(
        yard.folder / "secrets.yaml", [yamledit.Set(("api_tokens", "lab"), f"jobs@pve!own={value}")]
    )
    document = yard.json("plan", "hypervisor:home", status=None)
    assert "guard" in document, document
    guard = document["guard"]
    assert [one for one in guard["refused"] if one["code"] == "E-GUARD-NO-SUCH-OBJECT"] == []
    warned = sorted(one["detail"] for one in guard["warnings"] if one["where"])
    hidden = "whether it exists is not known: the token may not see it."
    assert warned == [
        f"The backup job nightly uses the pool unseen; {hidden}",
        f"The backup job nightly uses the storage local; {hidden}",
        f"The backup job weekly uses the storage hidden; {hidden}",
    ]


def test_the_firewall_of_a_guest_is_looked_up_before_the_guest_is_made(yard: Yard) -> None:
    own = {"aliases": {"desk": "192.0.2.9"}, "ipsets": {"mine": {"entries": ["192.0.2.0/24"]}}}
    rules = [
        {"security_group": "nogroup"},
        {"type": "in", "action": "ACCEPT", "source": "+dc/noset"},
        {"type": "in", "action": "ACCEPT", "source": "+mine", "dest": "desk"},
    ]
    yard.write_env("dev", [{**SMALL_GUEST, "firewall": {**own, "rules": rules}}])
    assert [text for _, text in plan(yard, "env:dev")] == [
        "The firewall of web uses the security group nogroup; the cluster has none.",
        "The firewall of web uses the IP set noset; the cluster has none.",
    ]
    assert yard.codes("apply", "env:dev", "--yes") == ["E-GUARD-NO-SUCH-OBJECT"] * 2
    assert yard.guests() == {}
    write(yard, "home", "firewall: {groups: {nogroup: []}, ipsets: {noset: []}}\n")
    ends = [text.partition(" was not applied since: ")[2] for _, text in plan(yard, "env:dev")]
    assert ends == ["stackyard apply hypervisor:home"] * 2
    yard.run("apply", "hypervisor:home", "--yes")
    yard.run("apply", "env:dev", "--yes", "--no-verify")


def test_a_mapping_is_compared_with_the_device_when_it_is_made_and_when_a_guest_uses_it(yard: Yard) -> None:
    entry = '{node: pve1, id: "8086:1521", path: "0000:02:00.0"%s}'
    other = '{node: pve1, id: "1000:0097", path: "0000:0f:00.0"}'
    write(yard, "home", f"mappings:\n  pci:\n    nic: [{entry % ''}]\n    hba: [{other}]\n")
    lacking = (
        "0000:02:00.0 of pve1 has `iommu_group` 13, which the entry lacks, `subsystem_id` 8086:0001, which"
    )
    assert plan(yard, "hypervisor:home") == [
        (3, f"The PCI mapping nic: {lacking} the entry lacks."),
        (4, "The PCI mapping hba: pve1 has no PCI device 0000:0f:00.0."),
    ]
    # Somebody makes one by hand.
    mapping = proxmoxer_client(yard.running).cluster.mapping.pci
    mapping.post(id="old", map=["node=pve1,path=0000:02:00.1,id=8086:1521,iommugroup=99"])
    guest = {"name": "web", "vmid": 100, "disk": 4, "image": "debian-13", "cores": 1, "memory": 512}
    yard.write_env("dev", [{**guest, "pci_devices": [{"device": "hostpci0", "mapping": "old"}]}])
    ((_, text),) = plan(yard, "env:dev")
    assert text.startswith(
        "web uses the PCI mapping old. 0000:02:00.1 of pve1 has `iommu_group` 14 and not 99, `subsystem_id`"
    )
    # Those of the example are whole.
    example = yaml.safe_load((ROOT / "examples/hypervisors/hypervisors/home.yaml").read_text())["mappings"][
        "pci"
    ]
    mine = {name: [one for one in entries if one["node"] == "pve1"] for name, entries in example.items()}
    write(yard, "home", yaml.safe_dump({"mappings": {"pci": mine}}))
    yard.run("apply", "hypervisor:home", "--yes")
    devices = [{"device": f"hostpci{number}", "mapping": name} for number, name in enumerate(mine)]
    yard.write_env("dev", [{**guest, "pci_devices": devices}])
    yard.run("apply", "env:dev", "--yes", "--no-verify")
    assert yard.guests()[100]["status"] == "running"


def test_a_mapping_that_stays_as_it_is_stops_no_plan_though_its_device_is_another(yard: Yard) -> None:
    api = proxmoxer_client(yard.running)
    parts = [
        "node=pve1,path=0000:02:00.1,id=8086:1521,iommugroup=99",
        "node=pve2,path=0000:01:00.0,id=10de:1b80",
    ]
    api.cluster.mapping.pci.post(id="old", map=parts)
    yard.run("import", "hypervisor:home", "--leave", "storages")
    assert yard.json("plan", "hypervisor:home")["has_changes"] is False
    file = yard.folder / "hypervisors" / "home.yaml"
    file.write_text(file.read_text().replace("99", "98"))
    assert any("`iommu_group` 14 and not 98" in text for _, text in plan(yard, "hypervisor:home"))
