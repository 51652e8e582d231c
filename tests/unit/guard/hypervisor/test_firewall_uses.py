"""Names of the firewall that rules still have are not taken away, and those rules are named."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from tests.support.hypervisor_guard import judge, removed, updated
from tests.support.lab import LabClient, lab_client

from stackyard.engine.changes import Change
from stackyard.guard import Owners

ACCEPT = {"type": "in", "action": "ACCEPT", "enable": 1}
GROUP = removed("virtual_environment_cluster_firewall_security_group", name="web", rule=[])
ALIAS = removed("virtual_environment_firewall_alias", name="Office", cidr="192.0.2.1")
SET = removed("virtual_environment_firewall_ipset", name="trusted", cidr=[])


@contextlib.asynccontextmanager
async def busy_lab() -> AsyncIterator[LabClient]:
    """Have a lab whose rules name a group, a set and an alias."""
    async with lab_client(nodes=("pve1", "pve2")) as api:
        await api.post("/cluster/firewall/aliases", name="Office", cidr="192.0.2.1")
        await api.post("/cluster/firewall/ipset", name="trusted")
        await api.post("/cluster/firewall/ipset/trusted", cidr="office")
        await api.post("/cluster/firewall/groups", group="web")
        await api.post("/cluster/firewall/groups/web", source="office", **ACCEPT)
        await api.post("/cluster/firewall/rules", source="+trusted", **ACCEPT)
        await api.post("/nodes/pve2/firewall/rules", type="group", action="web", enable=1)
        for vm_id, name in ((100, "one"), (101, "two"), (102, "three")):
            await api.done(await api.post("/nodes/pve1/qemu", vmid=vm_id, name=name))
        guests = "/nodes/pve1/qemu/{}/firewall"
        await api.post(f"{guests.format(100)}/rules", type="group", action="web", enable=1)
        # Its own alias, and that of the cluster.
        await api.post(f"{guests.format(101)}/aliases", name="office", cidr="192.0.2.2")
        await api.post(f"{guests.format(101)}/rules", source="office", **ACCEPT)
        await api.post(f"{guests.format(102)}/rules", source="+dc/trusted", dest="dc/office", **ACCEPT)
        yield api


async def said(api: LabClient, *changes: Change) -> list[str]:
    found = await judge(api.running, *changes, owners=Owners(states={100: "env/shop/pve1"}))
    return [one.detail for one in found if one.kind.code == "E-GUARD-STILL-USED"]


async def test_everyone_whose_rules_name_something_is_listed() -> None:
    async with busy_lab() as api:
        assert await said(api, GROUP, ALIAS, SET) == [
            "The security group web would be removed, and is used by: VM 100 one on pve1, of the state "
            "env/shop/pve1; the rules of the node pve2.",
            "The alias office would be removed, and is used by: VM 102 three on pve1.",
            "The IP set trusted would be removed, and is used by: VM 102 three on pve1; the rules of the "
            "cluster.",
        ]
        assert await said(api, ALIAS) == [
            "The alias office would be removed, and is used by: VM 102 three on pve1; the security group "
            "web; the IP set trusted."
        ]


async def test_a_new_name_is_another_one_and_changed_rules_count_as_they_will_be() -> None:
    async with busy_lab() as api:
        before = {"name": "trusted", "cidr": [{"name": "office"}]}
        kind = "virtual_environment_firewall_ipset"
        assert await said(api, updated(kind, before, comment="all of them")) == []
        rules = updated("virtual_environment_firewall_rules", {"rule": [{"source": "+trusted"}]}, rule=[])
        (detail,) = await said(api, updated(kind, before, name="friends"), rules)
        assert detail == "The IP set trusted would be renamed, and is used by: VM 102 three on pve1."
