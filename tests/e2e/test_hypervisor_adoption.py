"""Objects that are there before their file: plans name each with its place, and `--adopt` takes them over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

HOME = """\
storages:
  fast: {type: directory, path: /srv/fast}
  nas: {type: nfs, server: 10.31.0.5, export: /tank}
pools: {apps: {comment: Ours}}
roles: {Ops: [VM.Audit]}
groups: {admins: {}}
users: {anna@pve: {groups: [admins]}}
acl:
  - {path: /pool/apps, group_id: admins, role_id: Ops}
backups: {nightly: {schedule: "02:30", storage: local, all: true}}
mappings: {directories: {share: [{node: pve1, path: /srv/fast}]}}
sdn:
  zones: {z1: {type: simple}}
  vnets: {v1: {zone: z1}}
  subnets: [{vnet: v1, cidr: 192.0.2.0/24}]
firewall:
  aliases: {Router: 192.0.2.1}
  ipsets: {trusted: [192.0.2.0/24]}
  groups: {web: [{type: in, action: ACCEPT, macro: HTTP}]}
  rules: [{type: in, action: ACCEPT, macro: SSH}]
"""
NODE = "node: pve1\nfirewall: {rules: [{type: in, action: ACCEPT, macro: Ping}]}\n"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        (made.folder / "hypervisors").mkdir()
        (made.folder / "hypervisors" / "home.yaml").write_text(HOME)
        (made.folder / "hypervisors" / "pve1.yaml").write_text(NODE)
        yield made


def _make_by_hand(running: lab.Running) -> None:
    api = proxmoxer_client(running)
    api.storage.post(storage="fast", type="dir", path="/srv/fast", content="images")
    # Of another type than the file has.
    api.storage.post(storage="nas", type="dir", path="/srv/nas", content="images")
    api.pools.post(poolid="apps", comment="theirs")
    api.access.roles.post(roleid="Ops", privs="VM.Audit")
    api.access.groups.post(groupid="admins")
    api.access.users.post(userid="anna@pve", groups="admins")
    api.access.acl.put(path="/pool/apps", groups="admins", roles="Ops")
    api.cluster.backup.post(id="nightly", schedule="02:30", storage="local", all=1)
    api.cluster.mapping.dir.post(id="share", map=["node=pve1,path=/srv/fast"])
    api.cluster.sdn.zones.post(zone="z1", type="simple")
    api.cluster.sdn.vnets.post(vnet="v1", zone="z1")
    api.cluster.sdn.vnets("v1").subnets.post(subnet="192.0.2.0/24", type="subnet")
    api.cluster.firewall.aliases.post(name="router", cidr="192.0.2.1")
    api.cluster.firewall.ipset.post(name="trusted")
    api.cluster.firewall.groups.post(group="web")
    api.cluster.firewall.rules.post(type="in", action="DROP", macro="SSH", enable=1)
    api.nodes("pve1").firewall.rules.post(type="in", action="DROP", macro="Ping", enable=1)


def _refused(yard: Yard, target: str) -> dict[int, str]:
    document = yard.json("plan", target, status=3)
    found = [one for one in document["guard"]["refused"] if one["code"] == "E-GUARD-UNMANAGED-OBJECT"]
    assert len(found) == len(document["guard"]["refused"]), document
    return {one["where"]["line"]: one["detail"].partition(" would be ")[0] for one in found}


def test_what_is_there_already_is_named_before_anything_is_made_and_can_be_taken_over(yard: Yard) -> None:
    _make_by_hand(yard.running)
    assert _refused(yard, "hypervisor:home") == {
        2: "storage fast",
        3: "storage nas",
        4: "pool apps",
        5: "role Ops",
        6: "group admins",
        7: "user anna@pve",
        9: "ACL entry Ops for admins on /pool/apps",
        10: "backup job nightly",
        11: "directory mapping share",
        13: "SDN zone z1",
        14: "SDN vnet v1",
        15: "SDN subnet 192.0.2.0/24",
        17: "firewall alias Router",
        18: "IP set trusted",
        19: "security group web",
        20: "firewall rules",
    }
    assert _refused(yard, "hypervisor:pve1") == {2: "firewall rules pve1"}
    api = proxmoxer_client(yard.running)
    api.storage("nas").delete()
    for target in ("hypervisor:home", "hypervisor:pve1"):
        yard.run("apply", target, "--adopt", "--yes", "--allow-lockout", "pve1")
        assert yard.json("plan", target)["has_changes"] is False
    assert api.pools("apps").get()["comment"] == "Ours"
    assert [one["action"] for one in api.cluster.firewall.rules.get()] == ["ACCEPT"]
