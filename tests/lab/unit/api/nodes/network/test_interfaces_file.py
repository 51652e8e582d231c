"""Reading and printing `/etc/network/interfaces`."""

from __future__ import annotations

import pytest

from pvelab.api.nodes.network.read import Interfaces, read_interfaces
from pvelab.api.nodes.network.rules import check_file
from pvelab.api.nodes.network.write import write_interfaces
from pvelab.server.problems import PveError

FILE = """\
auto lo
iface lo inet loopback

iface eno1 inet manual

iface eno2 inet manual

auto bond0
iface bond0 inet manual
\tbond-slaves eno1 eno2
\tbond-miimon 100
\tbond-mode 802.3ad
\tbond-xmit-hash-policy layer3+4

auto vmbr0
iface vmbr0 inet static
\taddress 192.0.2.1/24
\tgateway 192.0.2.254
\tbridge-ports bond0
\tbridge-stp off
\tbridge-fd 0
\tbridge-vlan-aware yes
\tbridge-vids 2-100
\tpost-up echo done
#first line
#second line

iface vmbr0 inet6 static
\taddress fd00::1/64

auto vmbr0.10
iface vmbr0.10 inet manual

source /etc/network/interfaces.d/*
"""


def reread(interfaces: Interfaces) -> str:
    check_file(interfaces)
    return write_interfaces(interfaces)


def test_what_is_printed_reads_back_and_prints_the_same() -> None:
    once = reread(read_interfaces(FILE))
    assert reread(read_interfaces(once)) == once
    for line in filter(None, FILE.split("\n")):
        assert line in once.split("\n"), line


def test_values_are_texts_as_in_the_file_and_flags_are_numbers() -> None:
    bridge = read_interfaces(FILE, active=("vmbr0",)).by_name["vmbr0"]
    assert (bridge["netmask"], bridge["bridge_fd"], bridge["bridge_vids"]) == ("24", "0", "2-100")
    assert (bridge["autostart"], bridge["active"], bridge["bridge_vlan_aware"]) == (1, 1, 1)
    assert (bridge["cidr"], bridge["cidr6"], bridge["families"]) == (
        "192.0.2.1/24",
        "fd00::1/64",
        ["inet", "inet6"],
    )
    assert bridge["comments"] == "first line\nsecond line\n"
    assert bridge["options"] == ["post-up echo done"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("lo", "loopback"), ("eno1", "eth"), ("bond0", "bond"), ("vmbr0", "bridge"), ("vmbr0.10", "vlan")],
)
def test_the_type_follows_from_name_and_settings(name: str, kind: str) -> None:
    assert read_interfaces(FILE).by_name[name]["type"] == kind


def test_a_card_exists_whether_the_file_mentions_it_or_not() -> None:
    found = read_interfaces(FILE, links=("eno1", "ens7"))
    assert (found.by_name["eno1"]["exists"], found.by_name["ens7"]["exists"]) == (1, 1)
    assert found.by_name["ens7"]["type"] == "eth"


def test_a_vlan_exists_with_its_parent() -> None:
    text = "iface eno1.5 inet manual\n\niface eno9.5 inet manual\n"
    found = read_interfaces(text, links=("eno1",)).by_name
    assert (found["eno1.5"]["exists"], found["eno9.5"]["exists"]) == (1, 0)


def test_lacp_of_an_ovs_bond_is_part_of_its_mode() -> None:
    text = (
        "iface eno1 inet manual\n\nauto bond0\niface bond0 inet manual\n\tovs_bonds eno1\n"
        "\tovs_type OVSBond\n\tovs_bridge vmbr0\n\tovs_options lacp=active bond_mode=balance-tcp tag=7\n\n"
        "auto vmbr0\niface vmbr0 inet manual\n\tovs_type OVSBridge\n\tovs_ports bond0\n"
    )
    found = read_interfaces(text)
    assert (found.by_name["bond0"]["bond_mode"], found.by_name["bond0"]["ovs_tag"]) == (
        "lacp-balance-tcp",
        "7",
    )
    printed = reread(found)
    assert "\tovs_options tag=7 lacp=active bond_mode=balance-tcp\n" in printed


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"bridge_ports": "bond0", "type": "bridge"}, "port 'bond0' is already used on interface 'vmbr0'"),
        (
            {"bridge_ports": "vmbr0.10", "type": "bridge", "mtu": 9000},
            "mtu 1500 is lower than 'new' - mtu 9000",
        ),
        ({"ovs_ports": "lo", "type": "OVSBridge"}, "interface 'lo' is not defined as OVS port/bond"),
    ],
)
def test_interfaces_that_do_not_fit_together_are_refused(change: dict[str, object], text: str) -> None:
    interfaces = read_interfaces(FILE)
    interfaces.by_name["new"] = {**change, "families": ["inet"], "method": "manual"}
    with pytest.raises(PveError, match=text):
        check_file(interfaces)


def test_a_port_with_an_address_cannot_be_bridged() -> None:
    interfaces = read_interfaces("iface eno1 inet static\n\taddress 192.0.2.1/24\n")
    interfaces.by_name["vmbr1"] = {"type": "bridge", "bridge_ports": "eno1", "method": "manual"}
    with pytest.raises(PveError, match="ip address can't be set on interface if bridged in vmbr1"):
        check_file(interfaces)
