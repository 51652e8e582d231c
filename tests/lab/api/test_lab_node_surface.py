"""What nodes of the lab tell and do beside their guests: certificates, subscription, figures."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.support import lab_lxc
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import as_root
from tests.support.lab_qemu import Q, done, failed, make, with_lab

from stackyard.base import serving

N = "/nodes/pve1"
CERTIFICATES = f"{N}/certificates"


def pair(name: str = "web.example.com") -> tuple[str, str]:
    """Return a certificate and its key."""
    made = serving.make_certificate([name])
    return made.certificate_pem.decode(), made.key_pem.decode()


async def names(api: LabClient) -> list[str]:
    """Return the files of a node's certificates."""
    return [row["filename"] for row in await api.get(f"{CERTIFICATES}/info")]


# --- certificates


async def test_served_certificate_is_the_one_that_is_listed() -> None:
    async with with_lab() as api:
        rows = await api.get(f"{CERTIFICATES}/info")
        assert [row["filename"] for row in rows] == ["pve-root-ca.pem", "pve-ssl.pem"]
        assert rows[1]["fingerprint"] == api.running.fingerprint
        assert rows[1]["notafter"] > rows[1]["notbefore"]


async def test_custom_certificate_is_taken_shown_and_removed() -> None:
    async with with_lab() as api:
        pem, key = pair()
        shown = await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=key)
        assert (shown["filename"], shown["san"]) == ("pveproxy-ssl.pem", ["web.example.com"])
        assert (await names(api))[-1] == "pveproxy-ssl.pem"
        with pytest.raises(Refused, match="force flag is not set"):
            await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=key)
        await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=key, force=1)
        await api.delete(f"{CERTIFICATES}/custom")
        assert "pveproxy-ssl.pem" not in await names(api)
        await api.delete(f"{CERTIFICATES}/custom")


async def test_certificate_and_key_must_belong_together() -> None:
    async with with_lab() as api:
        pem, _ = pair()
        _, other = pair()
        with pytest.raises(Refused, match="key does not match the certificate"):
            await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=other)
        with pytest.raises(Refused, match=r"without .existing. key"):
            await api.post(f"{CERTIFICATES}/custom", certificates=pem)
        with pytest.raises(Refused, match="400"):
            await api.post(f"{CERTIFICATES}/custom", certificates="nothing", key=other)


async def test_certificate_is_ordered_renewed_and_revoked() -> None:
    async with with_lab() as api:
        root, path = await as_root(api), f"{CERTIFICATES}/acme/certificate"
        with pytest.raises(Refused, match="400 ACME domain list in node configuration is missing!"):
            await api.post(path)
        await api.put(f"{N}/config", acme="domains=pve1.example.com")
        assert "account config file 'default' does not exist" in await failed(api, await api.post(path))
        account = {"contact": "a@example.com", "directory": "https://127.0.0.1/directory"}
        await done(api, await root.post("/cluster/acme/account", **account))
        await done(api, await api.post(path))
        [first] = [
            row for row in await api.get(f"{CERTIFICATES}/info") if row["filename"] == "pveproxy-ssl.pem"
        ]
        assert first["san"] == ["pve1.example.com"]
        with pytest.raises(Refused, match="400"):
            await api.post(path)
        with pytest.raises(Refused, match="does not expire within the next 30 days"):
            await api.put(path)
        await done(api, await api.put(path, force=1))
        [second] = [
            row for row in await api.get(f"{CERTIFICATES}/info") if row["filename"] == "pveproxy-ssl.pem"
        ]
        assert second["fingerprint"] != first["fingerprint"]
        await done(api, await api.delete(path))
        assert "pveproxy-ssl.pem" not in await names(api)


# --- subscription


async def test_subscription_is_set_checked_and_removed() -> None:
    async with with_lab() as api:
        assert (await api.get(f"{N}/subscription"))["status"] == "notfound"
        with pytest.raises(Refused, match="400"):
            await api.put(f"{N}/subscription", key="nonsense")
        await api.put(f"{N}/subscription", key="pve4p-00000000aa")
        shown = await api.get(f"{N}/subscription")
        assert (shown["status"], shown["level"], shown["key"]) == ("active", "p", "pve4p-00000000aa")
        await api.post(f"{N}/subscription", force=1)
        assert (await api.get("/nodes/pve2/subscription"))["status"] == "notfound"
        await api.delete(f"{N}/subscription")
        assert (await api.get(f"{N}/subscription"))["status"] == "notfound"


# --- figures


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (N, "memused"),
        (f"{N}/storage/local", "used"),
        (f"{Q}/100", "mem"),
        ("/nodes/pve1/lxc/200", "mem"),
    ],
)
@pytest.mark.parametrize(("frame", "step", "count"), [("hour", 60, 60), ("week", 1800, 336)])
async def test_series_are_even_and_the_same_at_the_same_time(
    path: str, field: str, frame: str, step: int, count: int
) -> None:
    async with with_lab() as api:
        api.world.clock.hold()
        await make(api)
        await lab_lxc.make(api, 200)
        await done(api, await api.post(f"{Q}/100/status/start"))
        await done(api, await api.post("/nodes/pve1/lxc/200/status/start"))
        api.world.clock.advance(3600)
        series = await api.get(f"{path}/rrddata", timeframe=frame, cf="AVERAGE")
        times = [point["time"] for point in series]
        assert len(times) == count
        assert {later - earlier for earlier, later in itertools.pairwise(times)} == {step}
        assert field in series[-1]
        assert series == await api.get(f"{path}/rrddata", timeframe=frame)


async def test_stopped_guest_has_no_load_before_its_start() -> None:
    async with with_lab() as api:
        await make(api)
        series = await api.get(f"{Q}/100/rrddata", timeframe="hour")
        assert "cpu" not in series[-1]
        assert series[-1]["maxmem"] > 0
        with pytest.raises(Refused, match="500"):
            await api.get(f"{Q}/999/rrddata", timeframe="hour")


# --- all guests of a node at once


async def test_all_guests_go_to_another_node() -> None:
    async with with_lab() as api:
        await make(api, 100)
        await make(api, 101)
        await done(api, await api.post(f"{Q}/101/status/start"))
        await lab_lxc.make(api, 200)
        with pytest.raises(Refused, match="'max-workers' parameter or max_workers in"):
            await api.post(f"{N}/migrateall", target="pve2")
        with pytest.raises(Refused, match="target is local node"):
            await api.post(f"{N}/migrateall", target="pve1", maxworkers=1)
        await done(api, await api.post(f"{N}/migrateall", target="pve2", maxworkers=2))
        places = {row["vmid"]: row["node"] for row in await api.get("/cluster/resources", type="vm")}
        assert places == {100: "pve2", 101: "pve2", 200: "pve2"}
        status = await api.get("/nodes/pve2/qemu/101/status/current")
        assert status["status"] == "running"
        await api.post("/access/users", userid="ann@pve", password="secret-word")
        ann = await api.with_password("ann@pve", "secret-word")
        with pytest.raises(Refused, match="403"):
            await ann.post("/nodes/pve2/migrateall", target="pve1", maxworkers=1)


# --- what a node can do


@pytest.mark.parametrize(
    ("path", "params", "expected"),
    [
        ("capabilities/qemu/cpu", {}, {"name": "host", "custom": 0, "vendor": "default"}),
        ("capabilities/qemu/cpu", {"arch": "aarch64"}, {"name": "cortex-a57", "custom": 0, "vendor": "ARM"}),
        ("capabilities/qemu/machines", {}, {"id": "pc-q35-9.0", "type": "q35", "version": "9.0"}),
        ("capabilities/qemu", {}, {"name": "machines"}),
    ],
)
async def test_capabilities_are_listed(path: str, params: dict[str, Any], expected: dict[str, Any]) -> None:
    async with with_lab() as api:
        assert expected in await api.get(f"{N}/{path}", **params)


async def test_graphics_card_can_be_divided_and_others_cannot() -> None:
    async with with_lab() as api:
        kinds = await api.get(f"{N}/hardware/pci/0000:01:00.0/mdev")
        assert kinds[0]["type"] == "nvidia-230"
        assert await api.get(f"{N}/hardware/pci/0000:02:00.0/mdev") == []
        with pytest.raises(Refused, match="500"):
            await api.get(f"{N}/hardware/pci/nothing/mdev")


async def test_tags_of_images_are_told() -> None:
    async with with_lab() as api:
        assert "latest" in await api.get(f"{N}/query-oci-repo-tags", reference="library/debian")
