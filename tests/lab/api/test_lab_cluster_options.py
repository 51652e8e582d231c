"""Options of the cluster, what it is made of, and whether guests are highly available."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

OPTIONS = "/cluster/options"
UNSET = {"mac_prefix": "BC:24:11", "description": "", "allowed-tags": []}


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def test_only_what_is_set_is_told() -> None:
    async with with_lab() as api:
        assert await api.get(OPTIONS) == UNSET
        await api.put(OPTIONS, keyboard="de", max_workers=5, http_proxy="http://proxy:3128")
        await api.put(OPTIONS, language="en", delete="http_proxy,console")
        assert await api.get(OPTIONS) == {**UNSET, "keyboard": "de", "max_workers": "5", "language": "en"}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("migration", "network=10.0.0.0/8,type=secure", {"network": "10.0.0.0/8", "type": "secure"}),
        ("migration", "insecure", {"type": "insecure"}),
        ("crs", "ha=static,ha-rebalance-on-start=yes", {"ha": "static", "ha-rebalance-on-start": 1}),
        ("ha", "shutdown_policy=freeze", {"shutdown_policy": "freeze"}),
        ("next-id", "lower=200,upper=300", {"lower": "200", "upper": "300"}),
        ("notify", "fencing=never,target-fencing=x", {"fencing": "never", "target-fencing": "x"}),
        ("tag-style", "case-sensitive=1,shape=full", {"case-sensitive": 1, "shape": "full"}),
        ("webauthn", "id=pve,rp=lab", {"id": "pve", "rp": "lab"}),
        ("bwlimit", "default=100,move=0", "default=100,move=0"),
        ("registered-tags", "b;a", ["a", "b"]),
        ("description", "two\nlines", "two\nlines\n"),
    ],
)
async def test_property_strings_read_back_as_objects(name: str, text: str, value: Any) -> None:
    async with with_lab() as api:
        await api.put(OPTIONS, **{name: text})
        assert (await api.get(OPTIONS))[name] == value
        await api.put(OPTIONS, delete=name)
        assert await api.get(OPTIONS) == UNSET


async def test_the_range_of_free_numbers_is_kept_to() -> None:
    async with with_lab() as api:
        await api.put(OPTIONS, **{"next-id": "lower=500,upper=502"})
        assert await api.get("/cluster/nextid") == "500"
        crossed = await refusal(api.put(OPTIONS, **{"next-id": "lower=9,upper=2"}))
        assert crossed.reason == "lower (9) <= upper (2) boundary rule broken"
        for vmid in (500, 501):
            await api.done(await api.post("/nodes/pve1/qemu", vmid=vmid))
        full = await refusal(api.get("/cluster/nextid"))
        assert full.reason == "unable to get any free VMID in range [500, 502]"


async def test_new_network_cards_begin_with_the_prefix_of_the_cluster() -> None:
    async with with_lab() as api:
        await api.put(OPTIONS, mac_prefix="02:AB")
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, net0="virtio,bridge=vmbr0"))
        assert (await api.get("/nodes/pve1/qemu/100/config"))["net0"].startswith("virtio=02:AB:")
        await api.put(OPTIONS, mac_prefix="bc:24:11")
        assert (await api.get(OPTIONS))["mac_prefix"] == "BC:24:11"


async def test_users_without_audit_see_the_looks_and_their_tags_alone() -> None:
    async with with_lab() as api:
        await api.put(OPTIONS, console="html5", keyboard="de", **{"registered-tags": "prod"})
        await api.put(OPTIONS, **{"user-tag-access": "user-allow=list,user-allow-list=web;db"})
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, tags="seen;prod"))
        assert (await api.get(OPTIONS))["allowed-tags"] == ["db", "prod", "seen", "web"]
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        assert await bob.get(OPTIONS) == {"console": "html5", "allowed-tags": ["db", "web"]}
        refused = await refusal(bob.put(OPTIONS, keyboard="fr"))
        assert str(refused) == "403 Permission check failed (/, Sys.Modify)"


async def test_a_wrong_option_is_named() -> None:
    async with with_lab() as api:
        refused = await refusal(api.put(OPTIONS, keyboard="xx", migration="type=maybe", nope=1))
        assert set(refused.errors) == {"keyboard", "migration", "nope"}


async def test_a_cluster_tells_its_nodes_and_how_to_join() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        nodes = await api.get("/cluster/config/nodes")
        assert [(node["node"], node["nodeid"], node["quorum_votes"]) for node in nodes] == [
            ("pve1", "1", "1"),
            ("pve2", "2", "1"),
        ]
        join = await api.get("/cluster/config/join", node="pve2")
        assert join["preferred_node"] == "pve2"
        prints = {row["name"]: row["pve_fp"] for row in join["nodelist"]}
        assert prints["pve1"] == api.running.fingerprint
        assert prints["pve2"] != prints["pve1"]
        for node, shown in prints.items():
            listed = await api.get(f"/nodes/{node}/certificates/info")
            assert shown in [row["fingerprint"] for row in listed if row["filename"] == "pve-ssl.pem"]
        assert join["totem"]["cluster_name"] == api.world.cluster.name
        unknown = await refusal(api.get("/cluster/config/join", node="pve9"))
        assert unknown.reason == "unknown node 'pve9'"
        assert {"name": "options"} in await api.get("/cluster")


async def test_a_node_alone_has_nothing_to_join() -> None:
    async with with_lab() as api:
        assert await api.get("/cluster/config/nodes") == []
        refused = await refusal(api.get("/cluster/config/join"))
        assert str(refused) == "424 node is not in a cluster, no join info available!"


async def test_guests_are_not_highly_available_until_somebody_makes_them() -> None:
    async with with_lab() as api:
        assert await api.get("/cluster/ha/resources") == []
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        for sid in ("vm:100", "100"):
            refused = await refusal(api.get(f"/cluster/ha/resources/{sid}"))
            assert str(refused) == "500 no such resource 'vm:100'"
        missing = await refusal(api.get("/cluster/ha/resources/999"))
        assert missing.reason == "unable to detect SID from VMID - VM/CT 999 does not exist"
