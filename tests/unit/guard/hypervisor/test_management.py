"""Changes of interfaces that may cut the management address of a node, and those that cannot."""

from __future__ import annotations

from tests.support.hypervisor_guard import created, judge, removed, updated
from tests.support.lab import lab_client

from pvelab.seeds import parse_seed
from stackyard.engine.changes import Change, Changes
from stackyard.guard.facts import Operator
from stackyard.guard.interruption import find_network_reloads

INTERFACES = """\
auto lo
iface lo inet loopback

iface eno1 inet manual
iface eno2 inet manual
iface eno3 inet manual

auto bond0
iface bond0 inet manual
\tbond-slaves eno1 eno2
\tbond-mode active-backup

auto vmbr0
iface vmbr0 inet manual
\tbridge-ports bond0
\tbridge-stp off
\tbridge-fd 0

auto vmbr0.20
iface vmbr0.20 inet static
\taddress 10.31.0.11/16
\tgateway 10.31.0.1

auto vmbr1
iface vmbr1 inet manual
\tbridge-ports none
\tbridge-stp off
\tbridge-fd 0
"""


def interface(kind: str, name: str, **values: object) -> dict[str, object]:
    return {"node_name": "pve1", "name": name, "comment": None, **values}


CHANGES: tuple[tuple[Change, str | None], ...] = (
    (removed("network_linux_vlan", **interface("vlan", "vmbr0.20")), "vmbr0.20 would be removed"),
    (
        updated("network_linux_bridge", interface("bridge", "vmbr0"), ports=["eno3"]),
        "vmbr0 would be changed (ports)",
    ),
    (updated("network_linux_bond", interface("bond", "bond0"), mtu=9000), "bond0 would be changed (mtu)"),
    (
        created("network_linux_bridge", **interface("bridge", "vmbr9", ports=["eno2"])),
        "vmbr9 would take eno2",
    ),
    (
        created("network_linux_bridge", **interface("bridge", "vmbr9", address="10.31.9.9/24")),
        "vmbr9 would get an address of the same network",
    ),
    (
        created("network_linux_bridge", **interface("bridge", "vmbr9", gateway="10.9.0.1")),
        "vmbr9 would get a gateway",
    ),
    (updated("network_linux_bridge", interface("bridge", "vmbr0"), comment="the LAN"), None),
    (updated("network_linux_bridge", interface("bridge", "vmbr1"), mtu=9000), None),
    (created("network_linux_bridge", **interface("bridge", "vmbr9", address="10.9.0.1/24")), None),
    (created("network_linux_vlan", **interface("vlan", "vmbr0.30")), None),
)


async def test_what_carries_the_management_address_is_not_changed_unasked() -> None:
    seed = parse_seed({"nodes": [{"name": "pve1", "ip": "10.31.0.11", "interfaces": INTERFACES}]})
    async with lab_client(seed=seed) as api:
        for change, said in CHANGES:
            rows = await judge(api.running, change)
            found = [one for one in rows if one.kind.code == "E-GUARD-CUTS-MANAGEMENT"]
            told = [f"pve1 is managed over 10.31.0.11 on vmbr0.20: {said}."] if said else []
            assert [one.detail for one in found] == told
            assert all(str(one.permit) == "--allow-management-network pve1" for one in found)


async def test_a_node_whose_address_is_on_no_interface_is_not_changed_unasked() -> None:
    seed = parse_seed({"nodes": [{"name": "pve1", "ip": "10.77.0.1", "interfaces": INTERFACES}]})
    change = updated("network_linux_bridge", interface("bridge", "vmbr1"), mtu=9000)
    async with lab_client(seed=seed) as api:
        rows = await judge(api.running, change, operator=Operator())
    assert any("Which interface of pve1 has its address is not known" in one.detail for one in rows)


async def test_a_comment_alone_needs_no_permit_unless_others_left_changes_pending() -> None:
    comment = updated("network_linux_bridge", interface("bridge", "vmbr1"), comment="the LAN")
    changes = Changes(planned=(comment,))
    assert list(find_network_reloads(changes, are_notes_harmless=True)) == []
    mtu = updated("network_linux_bridge", interface("bridge", "vmbr1"), comment="the LAN", mtu=9000)
    assert len(list(find_network_reloads(Changes(planned=(comment, mtu)), are_notes_harmless=True))) == 1
    seed = parse_seed({"nodes": [{"name": "pve1", "ip": "10.31.0.11", "interfaces": INTERFACES}]})
    async with lab_client(seed=seed) as api:
        assert [one.detail for one in await judge(api.running, comment)] == []
        await api.put("/nodes/pve1/network/vmbr1", type="bridge", mtu=1400)
        (found,) = await judge(api.running, comment)
    assert "activate changes of its interfaces that others have left pending" in found.detail
    assert str(found.permit) == "--allow-network-reload pve1"
