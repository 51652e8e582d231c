"""Places, interfaces and addresses that are the same, or of no use, although they are written differently."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.hypervisors import SITE
from tests.support.site import findings, write_site

SHARE = "username: u, password: {secret: passwords.smb}"


def _found(folder: Path, **files: str) -> dict[str, str]:
    """Return the details of findings by file and line; each line has one."""
    write_site(folder, {**SITE, **{f"hypervisors/{name}.yaml": text for name, text in files.items()}})
    found: dict[str, str] = {}
    for one in findings(folder):
        assert one.where is not None
        place = f"{Path(one.where.path).stem}:{one.where.line}"
        assert place not in found, (found, one)
        found[place] = one.detail
    return found


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        (
            "type: nfs, server: NAS.lan, export: /tank",
            "type: nfs, server: nas.lan., export: //tank/",
            "nfs nas.lan:/tank",
        ),
        (
            'type: nfs, server: "2001:db8::1", export: /tank',
            'type: nfs, server: "2001:DB8:0::1", export: /tank',
            "nfs 2001:db8::1:/tank",
        ),
        ("type: directory, path: /srv/../srv/x/", "type: directory, path: //srv/x", "/srv/x"),
        ("type: nfs, server: s, export: /tank", "type: directory, path: /mnt/pve/first/", "/mnt/pve/first"),
        (
            f"type: cifs, server: s, share: a, {SHARE}",
            f"type: cifs, server: S, share: A/, subdirectory: /, {SHARE}",
            "cifs //s/a",
        ),
        (
            f"type: pbs, server: p, datastore: a, namespace: x, {SHARE}",
            f"type: pbs, server: P, datastore: a, namespace: x/, {SHARE}",
            "pbs p:a x",
        ),
    ],
)
def test_a_place_is_the_same_however_it_is_written(
    tmp_path: Path, first: str, second: str, place: str
) -> None:
    text = f"api: pve1\nstorages:\n  first: {{{first}}}\n  second: {{{second}}}\n"
    assert _found(tmp_path, home=text) == {"home:4": f"'first' and 'second' are both {place}."}


def test_two_files_of_a_cluster_have_no_storage_in_the_same_place(tmp_path: Path) -> None:
    text = "api: {}\nstorages: {{{}: {{type: directory, path: /srv/x}}}}\n"
    files = {"a": text.format("pve1", "one"), "b": text.format("pve1", "two"), "c": text.format("pve2", "x")}
    assert _found(tmp_path, **files) == {"b:2": "'one' and 'two' are both /srv/x."}


INTERFACES = """\
node: pve1
bonds:
  bond0: {slaves: [eno1, eno2, eno1]}
  bond1: {slaves: [eno3, eno4], bond_mode: active-backup, bond_primary: eno5}
bridges:
  vmbr1: {vlan_aware: true, mtu: 1500, ports: [inner]}
  vmbr2: {address: 192.0.2.0/24}
  vmbr3: {address: 198.51.100.255/24}
  vmbr4: {address: 203.0.113.0/31, address6: "2001:db8::/64"}
  vmbr5: {address6: "ff02::1/64"}
vlans:
  vmbr1.20: {mtu: 9000}
  inner: {interface: vmbr1.30, vlan: 7}
  vmbr1.30: {}
"""


def test_interfaces_that_cannot_come_up_are_found(tmp_path: Path) -> None:
    assert _found(tmp_path, pve1=INTERFACES) == {
        "pve1:3": "'eno1' is in 'bond0' twice.",
        "pve1:4": "'eno5' is no slave of 'bond1'. Did you mean `eno4` or `eno3`?",
        "pve1:6": "'inner' is a VLAN of 'vmbr1' itself.",
        "pve1:7": "'192.0.2.0/24' of 'vmbr2' is the network address of 192.0.2.0/24, which no interface "
        "can have.",
        "pve1:8": "'198.51.100.255/24' of 'vmbr3' is the broadcast address of 198.51.100.0/24, which no "
        "interface can have.",
        "pve1:10": "'ff02::1/64' of 'vmbr5' is no address of a host, which no interface can have.",
        "pve1:12": "The MTU of 'vmbr1.20' is 9000, and that of 'vmbr1' below it is 1500.",
    }


def test_a_rule_that_lost_its_port_takes_no_traffic_of_others(tmp_path: Path) -> None:
    text = """\
api: pve1
firewall:
  groups: {web: [{type: in, action: ACCEPT, proto: tcp, dport: 443}]}
  rules:
    - {type: in, action: ACCEPT, proto: udp, dport: 53}
    - {type: in, action: DROP, proto: udp, dport: "50:60"}
    - {security_group: web}
    - {type: in, action: DROP, proto: tcp, dport: "22"}
"""
    assert set(_found(tmp_path, home=text)) == {"home:3", "home:5"}


NUMBERS = """\
api: pve1
pools: {a: {}, a/b: {}, a/b/c/d: {}, x/y: {}, "a/b c": {}}
backups:
  one: {schedule: "02:30", storage: local, vmid: ["100", "99"]}
  two: {schedule: "02:30", storage: local, vmid: [web]}
sdn:
  zones: {plain: {type: simple}, tagged: {type: vlan, bridge: vmbr0}, wide: {type: vxlan, peers: [192.0.2.1]}}
  vnets:
    v1: {zone: plain, tag: 5}
    v2: {zone: tagged}
    v3: {zone: tagged, tag: 4095}
    v4: {zone: tagged, tag: 20}
    v5: {zone: tagged, tag: 20}
    v6: {zone: wide, tag: 20}
    v7: {zone: wide, tag: 16777216}
"""


def test_tags_and_ids_that_proxmox_does_not_have_are_found(tmp_path: Path) -> None:
    write_site(tmp_path, {**SITE, "hypervisors/home.yaml": NUMBERS})
    found = [(one.where.line, one.detail) for one in findings(tmp_path) if one.where is not None]
    assert sorted(found) == [
        (2, "'a/b c' is no name: its parts have letters, digits, `.`, `_` and `-`."),
        (2, "'a/b/c/d' is 4 levels deep; Proxmox has 3."),
        (2, "'x/y' is in the pool 'x', which the file lacks."),
        (4, "'99' of 'one' is no id of a guest: they are from 100 to 999999999."),
        (5, "'web' of 'two' is no id of a guest: they are from 100 to 999999999."),
        (9, "'v1' is in a simple zone and has a tag."),
        (10, "'v2' is in a vlan zone and has no tag."),
        (11, "'v3' of a vlan zone has the tag 4095."),
        (13, "'v5' has the tag 20, and so has 'v4' of the zone 'tagged'."),
        (15, "'v7' of a vxlan zone has the tag 16777216."),
    ]
