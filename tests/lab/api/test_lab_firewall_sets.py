"""Aliases and IP sets of the cluster and of guests, and what rules can refer to."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

CLUSTER = "/cluster/firewall"
VM = "/nodes/pve1/qemu/100/firewall"
CT = "/nodes/pve1/lxc/200/firewall"
SCOPES = [CLUSTER, VM, CT]


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


def bare(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries without the digest, of which each must have the same."""
    assert len({entry.pop("digest") for entry in entries}) <= 1
    return entries


@pytest.mark.parametrize("scope", SCOPES)
async def test_aliases_are_added_renamed_and_removed(scope: str) -> None:
    async with with_lab() as api:
        aliases = f"{scope}/aliases"
        await api.post(aliases, name="Web", cidr="10.0.0.1/32", comment="one")
        await api.post(aliases, name="six", cidr="fd00::/64")
        assert bare(await api.get(aliases)) == [
            {"name": "six", "cidr": "fd00::/64", "ipversion": 6},
            {"name": "Web", "cidr": "10.0.0.1", "ipversion": 4, "comment": "one"},
        ]
        again = await refusal(api.post(aliases, name="WEB", cidr="10.0.0.2"))
        assert again.errors == {"name": "alias 'WEB' already exists"}
        await api.put(f"{aliases}/web", cidr="10.0.0.9", rename="server")
        assert await api.get(f"{aliases}/server") == {"name": "server", "cidr": "10.0.0.9", "ipversion": 4}
        taken = await refusal(api.put(f"{aliases}/server", cidr="10.0.0.9", rename="Six"))
        assert taken.errors == {"name": "alias 'Six' already exists"}
        digest = (await api.get(aliases))[0]["digest"]
        await api.delete(f"{aliases}/six", digest=digest)
        late = await refusal(api.delete(f"{aliases}/server", digest=digest))
        assert late.reason.startswith("detected modified configuration")
        for call in (api.get(f"{aliases}/six"), api.put(f"{aliases}/six", cidr="10.0.0.1")):
            refused = await refusal(call)
            assert (refused.status, refused.errors) == (400, {"name": "no such alias"})
        assert await api.delete(f"{aliases}/six") is None


@pytest.mark.parametrize("scope", SCOPES)
async def test_sets_are_added_renamed_filled_and_removed(scope: str) -> None:
    async with with_lab() as api:
        sets = f"{scope}/ipset"
        await api.post(sets, name="blue", comment="ours")
        again = await refusal(api.post(sets, name="blue"))
        assert again.errors == {"name": "IPSet 'blue' already exists"}
        await api.post(sets, name="green", rename="blue")
        assert bare(await api.get(sets)) == [{"name": "green", "comment": "ours"}]
        await api.post(f"{sets}/green", cidr="10.1.2.3/16", comment="net")
        await api.post(f"{sets}/green", cidr="10.1.9.9/32", nomatch=1)
        assert bare(await api.get(f"{sets}/green")) == [
            {"cidr": "10.1.0.0/16", "comment": "net"},
            {"cidr": "10.1.9.9", "nomatch": 1},
        ]
        for path in ("10.1.0.0/16", "10.1.0.0%2F16"):
            assert (await api.get(f"{sets}/green/{path}"))["comment"] == "net"
        await api.put(f"{sets}/green/10.1.9.9", comment="match it")
        assert bare(await api.get(f"{sets}/green"))[1] == {"cidr": "10.1.9.9", "comment": "match it"}
        full = await refusal(api.delete(f"{sets}/green"))
        assert str(full) == "500 IPSet 'green' is not empty"
        await api.delete(f"{sets}/green/10.1.9.9")
        await api.delete(f"{sets}/green", force=1)
        gone = await refusal(api.get(f"{sets}/green"))
        assert str(gone) == "500 no such IPSet 'green'"
        assert await api.get(sets) == []


@pytest.mark.parametrize(
    ("cidr", "status", "text"),
    [
        ("10.0.0.1", 400, "address '10.0.0.1' already exists"),
        ("10.0.0.1/32", 400, "address '10.0.0.1' already exists"),
        ("0.0.0.0/0", 400, "a zero prefix is not allowed in ipset entries"),
        ("10.0.0.1/33", 400, "value does not look like a valid IP address or CIDR network"),
        ("nope", 500, "no such alias 'nope'"),
        ("dc/local", 500, "no such alias 'local'"),
    ],
)
async def test_entries_that_cannot_be_are_refused(cidr: str, status: int, text: str) -> None:
    async with with_lab() as api:
        await api.post(f"{VM}/aliases", name="local", cidr="10.9.0.0/16")
        await api.post(f"{VM}/ipset", name="blue")
        await api.post(f"{VM}/ipset/blue", cidr="10.0.0.1")
        await api.post(f"{VM}/ipset/blue", cidr="guest/local")
        refused = await refusal(api.post(f"{VM}/ipset/blue", cidr=cidr))
        assert refused.status == status
        assert text in (refused.reason if status == 500 else refused.errors["cidr"])
        assert [entry["cidr"] for entry in await api.get(f"{VM}/ipset/blue")] == ["10.0.0.1", "guest/local"]


async def test_names_of_sets_are_read_back_in_small_letters() -> None:
    async with with_lab() as api:
        await api.post(f"{CLUSTER}/ipset", name="Blue")
        assert [row["name"] for row in await api.get(f"{CLUSTER}/ipset")] == ["blue"]
        refused = await refusal(api.get(f"{CLUSTER}/ipset/Blue"))
        assert refused.reason == "no such IPSet 'Blue'"


async def test_renaming_finds_what_it_renames_and_takes_no_name_in_use() -> None:
    async with with_lab() as api:
        sets = f"{CLUSTER}/ipset"
        for name in ("blue", "green"):
            await api.post(sets, name=name)
        missing = await refusal(api.post(sets, name="red", rename="nope"))
        assert missing.errors == {"name": "IPSet 'nope' does not exist"}
        taken = await refusal(api.post(sets, name="blue", rename="green"))
        assert taken.errors == {"name": "IPSet 'blue' does already exist"}
        digest = (await api.get(sets))[0]["digest"]
        await api.post(sets, name="blue", rename="blue", comment="x", digest=digest)
        late = await refusal(api.post(sets, name="blue", rename="blue", comment="y", digest=digest))
        assert late.reason.startswith("detected modified configuration")
        entry = await refusal(api.get(f"{sets}/blue/10.0.0.1"))
        assert entry.errors == {"cidr": "no such IP/Network"}


async def test_references_name_the_scope_they_come_from() -> None:
    async with with_lab() as api:
        await api.post(f"{CLUSTER}/aliases", name="Web", cidr="10.0.0.1", comment="x")
        await api.post(f"{VM}/ipset", name="mine")
        everywhere = {"type": "alias", "name": "web", "ref": "web", "scope": "dc", "comment": "x"}
        own = {"type": "ipset", "name": "mine", "ref": "+mine", "scope": "guest"}
        assert await api.get(f"{CLUSTER}/refs") == [everywhere]
        assert await api.get(f"{VM}/refs") == [everywhere, own]
        assert await api.get(f"{VM}/refs", type="ipset") == [own]
        await api.post(f"{VM}/rules", type="in", action="ACCEPT", source="+mine", dest="web")


async def test_everything_outlives_the_lab_that_kept_it(tmp_path: Path) -> None:
    async def first(api: LabClient) -> None:
        await api.post(f"{CLUSTER}/ipset", name="blue")
        await api.post(f"{CLUSTER}/ipset/blue", cidr="10.0.0.1", nomatch=1)
        await api.post("/pools", poolid="a")
        await api.post("/access/users", userid="bob@pve", password="first-secret")
        await api.put("/access/acl", path="/pool/a", roles="PVEVMUser", users="bob@pve")
        await api.put("/cluster/options", **{"next-id": "lower=700"})

    async def second(api: LabClient) -> None:
        assert bare(await api.get(f"{CLUSTER}/ipset/blue")) == [{"cidr": "10.0.0.1", "nomatch": 1}]
        bob = await api.with_password("bob@pve", "first-secret")
        assert "VM.Console" in (await bob.get("/access/permissions"))["/pool/a"]
        assert await api.get("/cluster/nextid") == "700"

    async with with_lab(data=tmp_path) as api:
        await first(api)
    async with with_lab(data=tmp_path) as api:
        await second(api)
