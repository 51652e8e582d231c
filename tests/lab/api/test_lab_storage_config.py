"""Definitions of storages: what each type takes, what is added, what never comes back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import Refused
from tests.support.lab_lxc import L, make, used, with_lab

GIB = 2**30
FINGERPRINT = ":".join(["ab"] * 32)


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"type": "dir", "path": "/srv//data/"}, {"path": "/srv/data", "content": "images,rootdir"}),
        (
            {"type": "nfs", "server": "10.0.0.9", "export": "/x"},
            {"path": "/mnt/pve/one", "shared": 1, "content": "images"},
        ),
        (
            {"type": "cifs", "server": "10.0.0.9", "share": "x", "username": "me", "password": "hush"},
            {"path": "/mnt/pve/one", "shared": 1, "username": "me"},
        ),
        ({"type": "btrfs", "path": "/srv/b"}, {"content": "images,rootdir"}),
        ({"type": "cephfs", "monhost": "10.0.0.1", "keyring": "hush"}, {"content": "backup", "shared": 1}),
        ({"type": "lvm", "vgname": "vg1", "shared": 1}, {"content": "images", "shared": 1}),
        ({"type": "lvmthin", "vgname": "vg1", "thinpool": "data"}, {"content": "images,rootdir"}),
        ({"type": "zfspool", "pool": "tank/x", "sparse": 1}, {"mountpoint": "/tank/x", "sparse": 1}),
        ({"type": "rbd", "pool": "rbd", "krbd": 1, "keyring": "hush"}, {"content": "images", "shared": 1}),
        ({"type": "iscsi", "portal": "10.0.0.1", "target": "iqn.x"}, {"content": "images", "shared": 1}),
        (
            {"type": "pbs", "server": "10.0.0.1", "datastore": "d", "username": "a@pbs", "password": "hush"},
            {"content": "backup", "shared": 1, "datastore": "d"},
        ),
        (
            {"type": "esxi", "server": "10.0.0.1", "username": "me", "password": "hush"},
            {"content": "import", "shared": 1},
        ),
    ],
)
async def test_every_type_is_defined_with_what_proxmox_adds(
    params: dict[str, Any], shown: dict[str, Any]
) -> None:
    async with with_lab() as api:
        answer = await api.post("/storage", storage="one", **params)
        assert (answer["storage"], answer["type"]) == ("one", params["type"])
        config = await api.get("/storage/one")
        assert {key: config[key] for key in shown} == shown
        assert {"storage", "type", "digest"} <= set(config)
        assert "hush" not in str(config)
        assert [
            row["storage"]
            for row in await api.get("/storage", type=params["type"])
            if row["storage"] == "one"
        ]
        status = await api.get("/nodes/pve1/storage/one/status")
        assert (status["active"], status["shared"]) == (1, shown.get("shared", 0))


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"type": "dir"}, "500 missing value for required option 'path'"),
        ({"type": "dir", "path": "/x y"}, "500 illegal path for directory storage: /x y"),
        ({"type": "dir", "path": "/x", "pool": "p"}, "500 unexpected property 'pool'"),
        (
            {"type": "lvm", "vgname": "v1", "content": "iso"},
            "500 storage does not support content type 'none'",
        ),
        (
            {"type": "dir", "path": "/x", "content": "none,iso"},
            "500 unable to combine 'none' with other content",
        ),
        (
            {"type": "lvm", "vgname": "v1", "base": "gone:x"},
            "500 create storage failed: base storage ID 'gone' does not",
        ),
        ({"type": "esxi", "server": "h", "username": "u"}, "500 create storage failed: missing password"),
        ({"type": "nonsense"}, "400 .*does not have a value in the enumeration"),
        ({"type": "dir", "path": "relative"}, "400 .*value does not look like a valid absolute path"),
        (
            {"storage": "local", "type": "dir", "path": "/x"},
            "500 create storage failed: storage ID 'local' already defined",
        ),
    ],
)
async def test_a_definition_that_cannot_be_is_refused(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=text):
            await api.post("/storage", **{"storage": "one", **params})
        assert [row["storage"] for row in await api.get("/storage")] == ["local", "local-lvm"]


async def test_a_definition_is_changed_as_far_as_its_type_allows() -> None:
    async with with_lab() as api:
        await api.post(
            "/storage", storage="one", type="dir", path="/srv", nodes="pve1", prune__backups="keep-last=2"
        )
        digest = (await api.get("/storage/one"))["digest"]
        await api.put("/storage/one", content="iso,backup", disable=1, delete="nodes", digest=digest)
        config = await api.get("/storage/one")
        assert (config["content"], config["disable"], "nodes" in config) == ("iso,backup", 1, False)
        for params, text in (
            ({"digest": digest, "disable": 0}, "update storage failed: detected modified configuration"),
            ({"delete": "path"}, "update storage failed: unable to delete required option 'path'"),
            ({"delete": "pool"}, "update storage failed: no such option 'pool'"),
            (
                {"delete": "disable", "disable": 0},
                "update storage failed: cannot set and delete property 'disable'",
            ),
            (
                {"snapshot__as__volume__chain": 1},
                "update storage failed: can't change value of fixed parameter",
            ),
        ):
            with pytest.raises(Refused, match=f"500 {text}"):
                await api.put("/storage/one", **params)
        with pytest.raises(Refused, match="500 storage 'one' is disabled"):
            await api.get("/nodes/pve1/storage/one/content")


async def test_an_encryption_key_is_told_once_and_then_only_its_fingerprint() -> None:
    async with with_lab() as api:
        params = {"type": "pbs", "server": "10.0.0.1", "datastore": "d", "fingerprint": FINGERPRINT}
        answer = await api.post("/storage", storage="one", encryption__key="autogen", **params)
        key = answer["config"]["encryption-key"]
        shown = (await api.get("/storage/one"))["encryption-key"]
        assert shown in key
        assert '"data"' in key
        assert '"data"' not in str(shown)
        with pytest.raises(
            Refused, match="500 update storage failed: Value does not seems like a valid, JSON"
        ):
            await api.put("/storage/one", encryption__key="nonsense")


async def test_a_definition_that_goes_takes_its_permissions_along_and_leaves_the_content() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="one", type="dir", path="/srv", content="rootdir")
        await make(api, rootfs="one:1")
        await api.delete("/storage/one")
        with pytest.raises(Refused, match="500 storage 'one' does not exist"):
            await api.get("/storage/one")
        with pytest.raises(Refused, match="500 delete storage failed: storage 'one' does not exist"):
            await api.delete("/storage/one")
        assert "storage 'one' does not exist" in await api.done(await api.post(f"{L}/100/status/start"))
        await api.post("/storage", storage="one", type="dir", path="/srv", content="rootdir")
        assert await used(api, "one") == GIB


async def test_the_first_storage_comes_back_in_its_first_state() -> None:
    async with with_lab() as api:
        await api.put("/storage/local", content="iso", nodes="pve1")
        assert "nodes" not in await api.get("/storage/local")
        await api.delete("/storage/local")
        config = await api.get("/storage/local")
        assert (config["path"], config["content"]) == (
            "/var/lib/vz",
            "backup,images,iso,rootdir,snippets,vztmpl",
        )


async def test_a_storage_made_shared_is_seen_by_all_nodes() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="one", type="dir", path="/srv")
        await api.post("/nodes/pve1/storage/one/content", filename="vm-100-disk-0.raw", vmid=100, size="1G")
        assert await used(api, "one", "pve2") == 0
        await api.put("/storage/one", shared=1)
        assert await used(api, "one", "pve2") == GIB
        assert len(await api.get("/nodes/pve2/storage/one/content")) == 1


async def test_only_who_may_see_a_storage_finds_it_listed() -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="eve@pve", password="password")
        await api.put("/access/acl", path="/storage/local", roles="PVEDatastoreUser", users="eve@pve")
        eve = await api.with_password("eve@pve", "password")
        assert [row["storage"] for row in await eve.get("/storage")] == ["local"]
        with pytest.raises(
            Refused, match=r"403 Permission check failed \(/storage/local, Datastore.Allocate\)"
        ):
            await eve.get("/storage/local")
        with pytest.raises(Refused, match=r"403 Permission check failed \(/storage, Datastore.Allocate\)"):
            await eve.post("/storage", storage="one", type="dir", path="/x")
