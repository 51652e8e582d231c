"""Rules of high availability: what they make of guests, how they are read back, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_ha import NODES, make_vm, run, service, where

from pvelab.seeds import Seed

# A cluster with a node that is not at Proxmox VE 9 yet.
GROUPED = Seed(name="grouped", ha_groups=True)


def test_node_rules_move_resources_and_bring_them_back() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        await api.post(
            "/cluster/ha/rules", rule="place", type="node-affinity", resources="vm:100", nodes="pve2:2,pve3"
        )
        assert await where(api, 100) == ("pve2", "running")
        fault = api.running.add_fault("node-down", node="pve2")
        await api.get("/version")
        assert await where(api, 100) == ("pve3", "running")
        api.running.remove_fault(fault)
        await api.get("/version")
        assert await where(api, 100) == ("pve2", "running")
        await api.put("/cluster/ha/resources/100", failback=0)
        fault = api.running.add_fault("node-down", node="pve2")
        await api.get("/version")
        api.running.remove_fault(fault)
        await api.get("/version")
        assert await where(api, 100) == ("pve3", "running")
        await api.delete("/cluster/ha/rules/place")
        assert await where(api, 100) == ("pve3", "running")

    run(test)


def test_a_strict_rule_without_a_node_that_is_up_leaves_a_guest_in_recovery() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        rule = {"rule": "only", "type": "node-affinity", "resources": "vm:100", "nodes": "pve1", "strict": 1}
        await api.post("/cluster/ha/rules", **rule)
        fault = api.running.add_fault("node-down", node="pve1")
        await api.get("/version")
        assert (await service(api, "vm:100"))["state"] == "recovery"
        api.running.remove_fault(fault)
        await api.get("/version")
        assert await where(api, 100) == ("pve1", "running")

    run(test)


def test_resources_are_kept_together_and_apart() -> None:
    async def test(api: LabClient) -> None:
        for vmid, node in ((100, "pve1"), (101, "pve2"), (102, "pve2")):
            await make_vm(api, vmid, node)
            await api.post("/cluster/ha/resources", sid=f"vm:{vmid}")
        await api.post(
            "/cluster/ha/rules",
            rule="apart",
            type="resource-affinity",
            resources="vm:102,vm:101",
            affinity="negative",
        )
        assert (await where(api, 101))[0] != (await where(api, 102))[0]
        await api.post(
            "/cluster/ha/rules",
            rule="pair",
            type="resource-affinity",
            resources="vm:100,vm:101",
            affinity="positive",
        )
        assert (await where(api, 100))[0] == (await where(api, 101))[0]
        home, other = (await where(api, 100))[0], (await where(api, 102))[0]
        free = next(node for node in NODES if node not in (home, other))
        answer = await api.post("/cluster/ha/resources/vm:100/migrate", node=free)
        assert answer["comigrated-resources"] == ["vm:101"]
        assert {await where(api, 100), await where(api, 101)} == {(free, "running")}
        answer = await api.post("/cluster/ha/resources/vm:100/migrate", node=other)
        assert answer["blocking-resources"] == [{"sid": "vm:102", "cause": "resource-affinity"}]
        assert (await where(api, 100))[0] == free
        condition = await api.get(f"/nodes/{free}/qemu/100/migrate")
        assert condition["dependent-ha-resources"] == ["vm:101"]
        assert condition["allowed_nodes"] == [home]
        assert "blocking-ha-resources" in condition["not_allowed_nodes"][other]

    run(test)


def test_rules_are_read_back_as_proxmox_prints_them() -> None:
    async def test(api: LabClient) -> None:
        for vmid in (100, 101):
            await make_vm(api, vmid)
            await api.post("/cluster/ha/resources", sid=f"vm:{vmid}", state="ignored")
        given = {"resources": "vm:101,vm:100", "nodes": "pve3,pve1:4", "comment": "c", "disable": 0}
        await api.post("/cluster/ha/rules", rule="r1", type="node-affinity", **given)
        rule = await api.get("/cluster/ha/rules/r1")
        digest = rule.pop("digest")
        assert rule == {
            "rule": "r1",
            "type": "node-affinity",
            "resources": "vm:100,vm:101",
            "nodes": "pve1:4,pve3",
            "comment": "c",
            "order": 1,
        }
        with pytest.raises(Refused, match="detected modified configuration"):
            await api.put("/cluster/ha/rules/r1", type="node-affinity", strict=1, digest="a" * 40)
        await api.put("/cluster/ha/rules/r1", type="node-affinity", strict=1, delete="comment", digest=digest)
        rule = await api.get("/cluster/ha/rules/r1")
        assert rule["strict"] == 1
        assert "comment" not in rule
        assert await api.get("/cluster/ha/rules", type="resource-affinity") == []
        assert len(await api.get("/cluster/ha/rules", resource="vm:101")) == 1
        await api.delete("/cluster/ha/resources/vm:101")
        assert (await api.get("/cluster/ha/rules/r1"))["resources"] == "vm:100"
        await api.delete("/cluster/ha/resources/vm:100")
        with pytest.raises(Refused, match="500 no such ha rule 'r1'"):
            await api.get("/cluster/ha/rules/r1")

    run(test)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"type": "node-affinity", "resources": "vm:100"}, "missing value for required option 'nodes'"),
        ({"type": "node-affinity", "resources": "vm:9", "nodes": "pve1"}, "cannot use unmanaged resource"),
        ({"type": "node-affinity", "resources": "vm:100", "nodes": "x"}, "cannot use non-existent node"),
        ({"type": "node-affinity", "resources": "bad", "nodes": "pve1"}, "400 Parameter verification failed"),
        (
            {"type": "resource-affinity", "resources": "vm:100", "affinity": "positive"},
            "400 Rule 'r2' is inv",
        ),
        (
            {"type": "resource-affinity", "resources": "vm:100,vm:101", "affinity": "positive", "strict": 1},
            "unexpected property 'strict'",
        ),
        ({"type": "node-affinity", "resources": "vm:100", "nodes": "pve1"}, "already used in another node"),
        (
            {"type": "resource-affinity", "resources": "vm:101,vm:100", "affinity": "negative"},
            "resources are in node affinity rules with multiple priorities",
        ),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rule: dict[str, Any], text: str) -> None:
    async def test(api: LabClient) -> None:
        for vmid in (100, 101):
            await make_vm(api, vmid)
            await api.post("/cluster/ha/resources", sid=f"vm:{vmid}", state="ignored")
        await api.post(
            "/cluster/ha/rules", rule="r1", type="node-affinity", resources="vm:100", nodes="pve1:1,pve2"
        )
        with pytest.raises(Refused, match=text):
            await api.post("/cluster/ha/rules", rule="r2", **rule)
        assert [one["rule"] for one in await api.get("/cluster/ha/rules")] == ["r1"]

    run(test)


@pytest.mark.parametrize(
    ("method", "path", "params", "text"),
    [
        ("POST", "/resources", {"sid": "vm:999"}, "500 resource 'vm:999' does not exist in cluster"),
        ("POST", "/resources", {"sid": "ct:100"}, "500 resource 'ct:100' - guest with ID 100 is not a cont"),
        ("POST", "/resources", {"sid": "vm:100", "type": "ct"}, "500 types does not match"),
        ("POST", "/resources", {"sid": "999"}, "500 unable to detect SID from VMID - VM/CT 999 does not ex"),
        ("POST", "/resources", {"sid": "xx:100"}, "500 no such resource type 'xx'"),
        ("POST", "/resources", {"sid": "vm:100", "group": "gg"}, "ha groups have been migrated to rules"),
        ("POST", "/resources", {"sid": "vm:100", "state": "up"}, "400 Parameter verification failed"),
        ("POST", "/resources", {"sid": "vm:101"}, "500 create resource failed: resource ID 'vm:101' already"),
        (
            "PUT",
            "/resources/vm:100",
            {"state": "started"},
            "update resources config failed: no such resource",
        ),
        ("PUT", "/resources/vm:101", {"delete": "nothing"}, "no such option 'nothing'"),
        ("DELETE", "/resources/vm:100", {}, "500 cannot delete service 'vm:100', not HA managed!"),
        ("POST", "/resources/vm:100/migrate", {"node": "pve2"}, "500 resource 'vm:100' is not HA managed"),
        ("GET", "/resources/vm:100", {}, "500 no such resource 'vm:100'"),
        ("GET", "/groups", {}, "500 cannot index groups: ha groups have been migrated to rules"),
        ("POST", "/groups", {"group": "gg", "nodes": "pve1"}, "500 cannot create group: ha groups have been"),
        ("GET", "/groups/gg", {}, "500 cannot read group: ha groups have been migrated to rules"),
        ("PUT", "/rules/none", {"type": "node-affinity", "strict": 1}, "HA rule 'none' does not exist"),
        ("POST", "/status/disarm-ha", {"resource-mode": "x"}, "400 Parameter verification failed"),
    ],
)
def test_wrong_orders_are_refused(method: str, path: str, params: dict[str, Any], text: str) -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await make_vm(api, 101)
        await api.post("/cluster/ha/resources", sid="vm:101", state="ignored")
        with pytest.raises(Refused, match=text):
            await api.call(method, f"/cluster/ha{path}", params)

    run(test)


def test_who_may_not_is_refused() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/access/users", userid="bob@pve", password="secret123")
        await api.put("/access/acl", path="/", roles="PVEAuditor", users="bob@pve")
        bob = await api.with_password("bob@pve", "secret123")
        assert await bob.get("/cluster/ha/resources") == []
        with pytest.raises(Refused, match=r"403 Permission check failed \(/, Sys.Console\)"):
            await bob.post("/cluster/ha/resources", sid="vm:100")
        with pytest.raises(Refused, match="403"):
            await bob.post("/cluster/ha/status/arm-ha")

    run(test)


def test_groups_that_are_not_migrated_place_guests_as_rules_do() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        groups = "/cluster/ha/groups"
        assert await api.get(groups) == []
        await api.post(groups, group="place", nodes="pve2:2,pve3")
        await api.post("/cluster/ha/resources", sid="vm:100", group="place")
        assert await where(api, 100) == ("pve2", "running")
        await api.put(f"{groups}/place", nofailback=1)
        fault = api.running.add_fault("node-down", node="pve2")
        await api.get("/version")
        assert await where(api, 100) == ("pve3", "running")
        api.running.remove_fault(fault)
        await api.get("/version")
        assert await where(api, 100) == ("pve3", "running")
        await api.put(f"{groups}/place", nofailback=0, comment="back")
        assert await where(api, 100) == ("pve2", "running")
        (group,) = await api.get(groups)
        assert {key: group[key] for key in ("group", "type", "nodes", "comment", "nofailback")} == {
            "group": "place",
            "type": "group",
            "nodes": "pve2:2,pve3",
            "comment": "back",
            "nofailback": 0,
        }
        await api.put(f"{groups}/place", delete="comment,nofailback", digest=group["digest"])
        assert not {"comment", "nofailback"} & set(await api.get(f"{groups}/place"))
        assert (await api.get("/cluster/ha/resources/vm:100"))["group"] == "place"

    run(test, seed=GROUPED)


@pytest.mark.parametrize(
    ("method", "path", "params", "text"),
    [
        ("GET", "/groups/none", {}, "500 no such ha group 'none'"),
        ("POST", "/groups", {"group": "gg", "nodes": "pve1"}, "ha group ID 'gg' already defined"),
        ("POST", "/groups", {"group": "new"}, "400 Parameter verification failed"),
        ("PUT", "/groups/none", {"nodes": "pve1"}, "update ha group failed: no such ha group 'none'"),
        ("PUT", "/groups/gg", {"delete": "nodes"}, "unable to delete required option 'nodes'"),
        ("PUT", "/groups/gg", {"nodes": "pve1", "digest": "0" * 40}, "detected modified configuration"),
        ("DELETE", "/groups/gg", {}, "delete ha group failed: ha group is used by service 'vm:100'"),
        ("PUT", "/resources/vm:100", {"group": "none"}, "500 HA group 'none' does not exist"),
        (
            "POST",
            "/rules",
            {"rule": "new", "type": "node-affinity", "resources": "vm:100", "nodes": "pve1"},
            "500 cannot create ha rule: ha groups have not been migrated yet",
        ),
    ],
)
def test_wrong_orders_about_groups_are_refused(
    method: str, path: str, params: dict[str, Any], text: str
) -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/groups", group="gg", nodes="pve1")
        await api.post("/cluster/ha/resources", sid="vm:100", state="ignored", group="gg")
        with pytest.raises(Refused, match=text):
            await api.call(method, f"/cluster/ha{path}", params)

    run(test, seed=GROUPED)


def test_a_resource_says_that_its_group_is_not_there() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100", state="ignored", group="none")
        (resource,) = await api.get("/cluster/ha/resources")
        assert resource["errors"] == {"group": "group 'none' does not exist"}

    run(test, seed=GROUPED)
