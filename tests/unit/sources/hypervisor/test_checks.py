"""Files of clusters and nodes that Proxmox would refuse, or that do not do what they say: all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.hypervisors import FILES, SITE
from tests.support.site import findings, write_site

CLUSTER = """\
api: pve1
storages:
  nas: {type: nfs, server: 192.0.2.9, export: /tank, content: [backup]}
  again: {type: nfs, server: 192.0.2.9, export: /tank/, content: [images]}
  apart: {type: zfspool, zfs_pool: rpool/a, nodes: [pve1]}
  there: {type: zfspool, zfs_pool: rpool/a, nodes: [pve2]}
  share: {type: cifs, server: s, share: a, username: u, password: {secret: passwords.smbb}}
  thin: {type: lvmthin, volume_group: pve, thin_pool: data, content: [images, iso], nodes: [pve3]}
roles: {Op: [VM.Audit, VM.Audt], PVEAdmin: [VM.Audit]}
groups: {admins: {}}
users:
  anna: {}
  bob@ldab: {groups: [admns]}
realms: {ldap: {type: ldap, base_dn: dc=x, server1: s}}
acl:
  - {path: /vm/100, group_id: admins, role_id: PVEAdmin}
  - {path: /, group_id: admins, user_id: bob@ldab, role_id: Opp}
  - {path: /storage/nass, role_id: Op}
  - {path: /, token_id: bob, role_id: Op}
backups:
  nightly: {schedule: '*-02-30', storage: again, all: true}
  weekly: {schedule: mondays, storage: gone, pool: apps}
  never: {schedule: 2020-01-01 00:00, storage: nas}
sdn:
  zones: {z1: {type: simple}, much-too-long: {type: vlan, bridge: vmbr5}}
  vnets: {v1: {zone: z1}, v2: {zone: z1}, v3: {zone: z3}}
  subnets:
    - {vnet: v1, cidr: 10.0.0.0/24, gateway: 10.0.1.1}
    - {vnet: v2, cidr: 10.0.0.128/25}
    - {vnet: v3, cidr: 10.0.0.0/24}
    - {vnet: v1, cidr: 10.0.0.1/24}
firewall:
  aliases: {gw: 192.0.2.1/33}
  ipsets: {lan: [10.0.0.0/24, gone]}
  groups: {web: [{type: in, action: ACCEPT, dport: '443'}]}
  rules:
    - {type: in, action: DROP, source: '+lan'}
    - {type: in, action: DROP}
    - {type: in, action: ACCEPT, source: 192.0.2.5, macro: SSH}
    - {type: in, action: drop, dest: gw}
    - {security_group: wbe}
    - {action: ACCEPT}
    - {type: out, action: ALLOW, proto: tpc, dport: 80-90, dest: '10.0.0.1-10.0.0.9,gw'}
    - {type: forward, action: ACCEPT, macro: SSHH, source: +sdn/v1-all}
"""
IN_CLUSTER = {
    "4:10": "'nas' and 'again' are both nfs 192.0.2.9:/tank",
    "7:76": "secrets.yaml has no `passwords.smbb`. Did you mean `passwords.smb`?",
    "8:79": "not 'iso'",
    "8:93": "no node 'pve3' in nodes/. Did you mean `pve2` or `pve1`?",
    "9:24": "no privilege 'VM.Audt'. Did you mean `VM.Audit`",
    "9:34": "'PVEAdmin' is part of Proxmox",
    "12:3": "'anna' is not NAME@REALM",
    "13:3": "no realm 'ldab' in hypervisors/. Did you mean `ldap`?",
    "13:23": "no group 'admns'",
    "16:12": "Proxmox has no path '/vm/100'. Did you mean `/vms`?",
    "17:5": "has `user_id` and `group_id`",
    "17:61": "no role 'Opp' in hypervisors/. Did you mean `Op`?",
    "18:5": "has no `user_id`, `group_id` or `token_id`",
    "18:12": "no storage 'nass' in hypervisors/. Did you mean `nas`?",
    "19:25": "'bob' is not USER@REALM!TOKEN",
    "21:23": "'*-02-30' of 'nightly' names no time that is still to come",
    "21:43": "'nightly' needs `backup` on 'again'",
    "22:22": "'mondays' of 'weekly' is no calendar event",
    "22:40": "no storage 'gone'",
    "22:52": "no pool 'apps'",
    "23:10": "has none of `all`, `pool` and `vmid`",
    "23:21": "'2020-01-01 00:00' of 'never' names no time",
    "25:31": "'much-too-long' is no name for a zone",
    "25:67": "No file of a node has the bridge 'vmbr5'. Did you mean `vmbr3`",
    "26:54": "no zone 'z3'",
    "28:46": "10.0.1.1 is outside the subnet 10.0.0.0/24 of 'v1'",
    "29:24": "10.0.0.128/25 of 'v2' overlaps 10.0.0.0/24 of 'v1'",
    "31:24": "'10.0.0.1/24' is no network",
    "33:17": "'192.0.2.1/33' is no address",
    "34:31": "no alias 'gone'",
    "35:18": "has `dport` and no `proto`",
    "39:7": "The rule of line 38 takes all traffic that this one is for: in DROP everything",
    "40:7": "The rule of line 38 takes all traffic",
    "41:24": "no security group 'wbe' in hypervisors/. Did you mean `web`?",
    "40:26": "there is no action `drop`; it may be `DROP`",
    "42:7": "The rule has no `type`",
    "43:27": "there is no action `ALLOW`",
    "43:41": "there is no protocol `tpc`; it may be `tcp`",
    "43:53": "a range has a colon",
    "43:66": "a range cannot be in a list of addresses",
    "44:46": "there is no macro `SSHH`; it may be `SSH`",
}
HOST = """\
node: pve1
bonds:
  bond0: {slaves: [eno1, eno2]}
  bond1: {slaves: [eno2, bond0]}
bridges:
  vmbr0: {ports: [bond0], address: 192.0.2.1/24, gateway: 192.0.3.1}
  vmbr1: {ports: [eno1, bond9], address: 192.0.2.129/25, gateway: 192.0.2.130}
  vmbr2: {vlan_aware: true, vids: 2-100 300, address: 192.0.2.300/24}
  vmbr3: {ports: [vmbr2], gateway6: 2001:db8::1}
vlans:
  vmbr0.20: {address: 10.0.20.1/24}
  vmbr2.200: {}
  vmbr7.30: {}
  vlan30: {vlan: 30}
  vmbr2.40: {interface: vmbr1}
dns: {domain: lan, servers: [dns.example]}
"""
IN_HOST = {
    "4:20": "'eno2' is in 'bond0' and in 'bond1'",
    "4:26": "'bond0' is a bond",
    "6:19": "'bond0' is in 'bond1' and in 'vmbr0'",
    "6:59": "192.0.3.1 is outside 192.0.2.0/24",
    "7:19": "'eno1' is in 'bond0' and in 'vmbr1'",
    "7:25": "'vmbr1' uses 'bond9', which this file does not have",
    "7:42": "192.0.2.129/25 of 'vmbr1' overlaps 192.0.2.1/24 of 'vmbr0'",
    "7:67": "'vmbr1' has a gateway for IPv4, and so has 'vmbr0'",
    "8:55": "'192.0.2.300/24' of 'vmbr2' is no IPv4 address",
    "9:19": "'vmbr2' is a bridge",
    "9:37": "'vmbr3' has a gateway and no IPv6 address",
    "11:13": "'vmbr0.20' is on 'vmbr0', which is not VLAN-aware",
    "12:14": "passes the VLANs 2-100 300, and 200 is none of them",
    "13:13": "'vmbr7.30' uses 'vmbr7', which this file does not have",
    "14:3": "'vlan30' does not say its interface and number",
    "15:25": "unlike its name",
    "16:30": "'dns.example' is no IP address",
}


def _by_place(folder: Path, file: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in findings(folder):
        if one.where is not None and one.where.path.endswith(file):
            found.setdefault(f"{one.where.line}:{one.where.column}", []).append(one.detail)
    return found


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [("hypervisors/home.yaml", CLUSTER, IN_CLUSTER), ("hypervisors/pve1.yaml", HOST, IN_HOST)],
    ids=["of a cluster", "of a node"],
)
def test_everything_that_is_wrong_in_a_file_is_found_at_once(
    tmp_path: Path, file: str, text: str, expected: dict[str, str]
) -> None:
    write_site(tmp_path, {**SITE, "hypervisors/pve1.yaml": HOST, file: text})
    found = _by_place(tmp_path, file)
    assert set(found) == set(expected), found
    for where, words in expected.items():
        assert len(found[where]) == 1, found[where]
        assert words in found[where][0], where


def test_mistakes_of_shape_and_of_meaning_are_found_together(tmp_path: Path) -> None:
    text = """\
storages:
  nas: {type: nfs, servr: 192.0.2.9, export: /tank}
  one: {type: directory, path: /srv}
  two: {type: directory, path: /srv/.}
backups: {nightly: {schedule: never, storage: nas, all: true}}
acl: [{path: /storage/nas, group_id: 5, role_id: PVEAdmin}]
bridges: {}
"""
    write_site(tmp_path, {**SITE, "hypervisors/home.yaml": text})
    found = _by_place(tmp_path, "home.yaml")
    assert list(found) == ["2:20", "4:8", "5:31", "6:38", "7:1"], found


ENV = """\
node: pve1
vms:
  - {name: web, image: debian-12, cores: 1, memory: 512, disk: 4}
  - {name: old, image: 'nas:import/old.qcow2', cores: 1, memory: 512, disk: 4}
"""


def test_a_content_type_that_guests_need_is_not_removed(tmp_path: Path) -> None:
    home = "storages:\n  nas: {type: nfs, server: s, export: /tank, content: [backup]}\n"
    write_site(tmp_path, {**SITE, "envs/dev.yaml": ENV, "hypervisors/home.yaml": home})
    found = _by_place(tmp_path, "home.yaml")["2:55"]
    assert "The VM 'web' needs `images` on 'nas', whose `content` lacks it." in found
    assert any("needs `import` on 'nas'" in one for one in found)
    assert len(found) == 2, found
    # An env that names no node may be applied to each.
    write_site(tmp_path, {"envs/dev.yaml": ENV.replace("node: pve1\n", "")})
    assert len(_by_place(tmp_path, "home.yaml")["2:55"]) == 2
    write_site(tmp_path, {"envs/dev.yaml": ENV})
    # On another node the storage does not exist for this env.
    apart = home.replace("content:", "nodes: [pve2], content:")
    write_site(tmp_path, {"hypervisors/home.yaml": apart})
    assert _by_place(tmp_path, "home.yaml") == {}


def test_a_node_and_an_object_have_one_file(tmp_path: Path) -> None:
    files = {
        "hypervisors/a.yaml": "node: pve1\n",
        "hypervisors/b.yaml": "node: pve1\n",
        "hypervisors/c.yaml": "node: pve3\n",
        "hypervisors/home.yaml": "api: pve1\npools: {apps: {}}\n",
        "hypervisors/more.yaml": "api: pve1\npools: {apps: {}}\n",
        "hypervisors/other.yaml": "api: pve2\npools: {apps: {}}\nacl:\n"
        "  - {path: /, user_id: root@pam, role_id: PVEAdmin}\n"
        "  - {path: /, user_id: root@pam, role_id: PVEAdmin, propagate: false}\n",
        "hypervisors/typo.yaml": "api: pve\noptions: {keyboard: de}\n",
    }
    write_site(tmp_path, {**SITE, **files})
    found = {
        f"{Path(one.where.path).name}:{one.where.line}": one.detail
        for one in findings(tmp_path)
        if one.where is not None and "hypervisors/" in one.where.path
    }
    assert set(found) == {"b.yaml:1", "c.yaml:1", "more.yaml:2", "other.yaml:5", "typo.yaml:1"}, found
    assert "There is no node 'pve3' in nodes/." in found["c.yaml:1"]
    assert "other.yaml:4" in found["other.yaml:5"]


def test_files_that_are_right_have_no_findings(tmp_path: Path) -> None:
    write_site(tmp_path, {**SITE, **FILES})
    assert [str(one) for one in findings(tmp_path)] == []


ODD_CLUSTER = """\
storages:
  far: {type: directory, path: srv/x}
  with space: {type: directory, path: /srv/y}
groups: {two words: {}}
mappings: {pci: {gpu: [{node: pve1, id: "10de", path: "0000:01:00.0"}]}}
backups:
  nightly: {schedule: "02:30", storage: far, all: true, mode: quickly}
replications: {x: {target: pve2, type: local}}
acl:
  - {path: /nodes/pve9, group_id: two words, role_id: PVEAdmin}
firewall:
  ipsets: {"1st": [10.0.0.0/8]}
"""
ODD_NODE = """\
node: pve1
bonds:
  bond2: {slaves: []}
  bond3: {slaves: [eno1], bond_mode: fastest}
bridges:
  vmbr3: {vlan_aware: true, vids: abc}
  vmbr4: {mtu: -1}
vlans:
  vmbr3.100: {}
  v100: {interface: vmbr3, vlan: 100}
  averylongnameofavlan1: {interface: vmbr3, vlan: 7}
dns: {domain: lan, servers: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4]}
hosts: [{address: 192.0.2.1, hostnames: []}]
time: Mars/Olympus
"""


def test_values_that_only_the_provider_or_a_node_would_refuse_are_found_by_validate(tmp_path: Path) -> None:
    files = {"hypervisors/home.yaml": f"api: pve1\n{ODD_CLUSTER}", "hypervisors/pve1.yaml": ODD_NODE}
    write_site(tmp_path, {**SITE, **files})
    ended = stackyard("site", "validate", "--json", cwd=tmp_path)
    found = {
        (Path(one["where"]["file"]).stem, one["where"]["line"]): f"{one['code']} {one['detail']}"
        for one in ended.document["error"]["diagnostics"]
    }
    wanted = {
        ("home", 3): "E-HYPERVISOR-PATH 'srv/x' does not begin with `/`",
        ("home", 4): "E-HYPERVISOR-NAME 'with space' is no name",
        ("home", 5): "E-HYPERVISOR-NAME 'two words' is no name",
        ("home", 6): "E-HYPERVISOR-VALUE mappings.pci.gpu: `map.id` must be the ids",
        ("home", 8): "E-HYPERVISOR-VALUE backups.nightly: `mode` must be one of snapshot",
        ("home", 9): "E-HYPERVISOR-VALUE replications.x: `id` must be GUEST-NUMBER",
        ("home", 11): "W-HYPERVISOR-NAME There is no node 'pve9' in nodes/.",
        ("home", 13): "E-HYPERVISOR-VALUE firewall.ipsets.1st: `name` must",
        ("pve1", 3): "E-HYPERVISOR-INTERFACE-VALUE 'bond2' has no slaves",
        ("pve1", 4): "E-HYPERVISOR-VALUE bonds.bond3: `bond_mode` must be one of",
        ("pve1", 6): "E-HYPERVISOR-VALUE bridges.vmbr3: `vids` must",
        ("pve1", 7): "E-HYPERVISOR-INTERFACE-VALUE The MTU of 'vmbr4' is -1",
        ("pve1", 10): "E-HYPERVISOR-VLAN 'vmbr3.100' and 'v100' are both the VLAN 100 of 'vmbr3'",
        ("pve1", 11): "E-HYPERVISOR-NAME 'averylongnameofavlan1' has 21 characters",
        ("pve1", 12): "E-HYPERVISOR-VALUE dns: `servers` has",
        ("pve1", 13): "E-HYPERVISOR-VALUE hosts: `entry.hostnames` need",
        ("pve1", 14): "W-HYPERVISOR-TIME-ZONE There is no time zone 'Mars/Olympus'",
    }
    assert {place: found.get(place, "")[: len(text)] for place, text in wanted.items()} == wanted
    assert found.keys() == wanted.keys()
