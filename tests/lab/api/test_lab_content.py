"""What storages hold: files that are uploaded, volumes that are allocated, notes, removal."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.lab import LabClient, Refused, Reply
from tests.support.lab_lxc import done, failed, used, with_lab

S = "/nodes/pve1/storage"
GIB = 2**30


async def send(api: LabClient, data: bytes, /, storage: str = "local", **fields: str) -> Reply:
    """Upload a file as the web interface does; the name is `filename` among the fields."""
    name = fields.pop("filename", "test.iso")
    body = aiohttp.MultipartWriter("form-data")
    for key, value in {"content": "iso", **fields}.items():
        body.append(value).set_content_disposition("form-data", name=key.replace("__", "-"))
    part = body.append(data)
    part.set_content_disposition("form-data", quote_fields=False, name="filename", filename=name)
    return await api.raw("POST", f"{S}/{storage}/upload", data=body)


async def upload(api: LabClient, data: bytes, /, **fields: str) -> str:
    reply = await send(api, data, **fields)
    if reply.status >= 400:
        raise Refused(reply)
    return str(reply.data)


def kept_bytes(api: LabClient, volid: str, node: str = "pve1") -> bytes:
    volume = api.world.volumes.require(volid, node)
    return api.world.blobs.read(volume["sha256"])


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def put_backup(api: LabClient, name: str, **fields: Any) -> str:
    volid = f"local:backup/{name}"
    with api.world.store.transaction():
        given = {"content": "backup", "format": "vma.zst", "vmid": 100, **fields}
        api.world.volumes.add(volid, "pve1", 1000, **given)
    return volid


async def test_an_upload_keeps_its_bytes_and_their_size() -> None:
    async with with_lab() as api:
        data = bytes(range(256)) * 4000
        upid = await upload(api, data, filename="my image.iso")
        await done(api, upid)
        assert ":imgcopy::root@pam!lab:" in upid
        rows = await api.get(f"{S}/local/content", content="iso")
        assert [(row["volid"], row["size"], row["format"]) for row in rows] == [
            ("local:iso/my_image.iso", len(data), "iso")
        ]
        assert kept_bytes(api, "local:iso/my_image.iso") == data
        assert await used(api, "local") == len(data)
        one = await api.get(f"{S}/local/content/local:iso/my_image.iso")
        assert one == {
            "path": "/var/lib/vz/template/iso/my_image.iso",
            "size": len(data),
            "used": len(data),
            "format": "raw",
        }
        assert await api.get(f"{S}/local/content/iso%2Fmy_image.iso") == one
        assert await api.get("/nodes/pve2/storage/local/content") == []


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
async def test_an_upload_is_compared_with_its_checksum(algorithm: str) -> None:
    async with with_lab() as api:
        right = hashlib.new(algorithm, b"content").hexdigest()
        await done(api, await upload(api, b"content", checksum=right.upper(), checksum__algorithm=algorithm))
        wrong = "0" * len(right)
        upid = await upload(api, b"content", filename="b.iso", checksum=wrong, checksum__algorithm=algorithm)
        assert await failed(api, upid) == f"checksum mismatch: got '{right}' != expect '{wrong}'"
        assert [row["volid"] for row in await api.get(f"{S}/local/content")] == ["local:iso/test.iso"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"filename": "x.txt"}, "400 .*wrong file extension"),
        ({"content": "vztmpl", "filename": "x.iso"}, "400 .*wrong file extension"),
        ({"content": "import", "filename": "x.iso"}, "400 .*invalid filename or wrong extension"),
        ({"content": "snippets", "filename": "x.yaml"}, "400 .*does not have a value in the enumeration"),
        ({"checksum": "00"}, "400 .*missing property required by 'checksum'"),
        ({"storage": "local-lvm"}, "500 can't upload to storage type 'lvmthin'"),
        ({"storage": "nowhere"}, "500 storage 'nowhere' does not exist"),
    ],
)
async def test_an_upload_that_cannot_be_is_refused_and_kept_nowhere(
    fields: dict[str, str], text: str
) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=text):
            await upload(api, b"content", **fields)
        assert await api.get(f"{S}/local/content") == []


async def test_a_file_of_the_server_cannot_be_named_as_the_upload() -> None:
    async with with_lab() as api:
        params = {"content": "iso", "filename": "x.iso"}
        with pytest.raises(Refused, match="500 temporary file '/var/tmp/pveupload-0a' does not exist"):
            await api.post(f"{S}/local/upload", tmpfilename="/var/tmp/pveupload-0a", **params)
        with pytest.raises(Refused, match="500 missing temporary file name"):
            await api.post(f"{S}/local/upload", **params)
        with pytest.raises(Refused, match=r"400 .*value does not match the regex pattern"):
            await api.post(f"{S}/local/upload", tmpfilename="/etc/passwd", **params)


async def test_an_image_that_is_none_is_refused_by_its_content() -> None:
    async with with_lab() as api:
        upid = await upload(api, b"no image", content="import", filename="disk.qcow2")
        assert await failed(api, upid) == "failed to query file information with qemu-img"
        header = b"QFI\xfb" + bytes(20) + (5 * GIB).to_bytes(8, "big") + bytes(480)
        await done(api, await upload(api, header, content="import", filename="disk.qcow2"))
        one = await api.get(f"{S}/local/content/local:import/disk.qcow2")
        assert (one["size"], one["used"], one["format"]) == (5 * GIB, 512, "qcow2")
        row = (await api.get(f"{S}/local/content", content="import"))[0]
        assert (row["size"], row["format"]) == (512, "qcow2")


async def test_a_file_of_the_same_name_is_replaced_and_its_bytes_go(tmp_path: Path) -> None:
    async with with_lab(data=tmp_path) as api:
        await done(api, await upload(api, b"first"))
        await done(api, await upload(api, b"second one"))
        assert kept_bytes(api, "local:iso/test.iso") == b"second one"
        assert await used(api, "local") == 10
        assert files_in(tmp_path / "files") == [hashlib.sha256(b"second one").hexdigest()]
        await done(api, await upload(api, b"second one", filename="same.iso"))
        await done(api, await api.delete(f"{S}/local/content/local:iso/test.iso"))
        assert kept_bytes(api, "local:iso/same.iso") == b"second one"
        await done(api, await api.delete(f"{S}/local/content/local:iso/same.iso"))
        assert files_in(tmp_path / "files") == []


async def test_files_outlive_the_lab_and_leftovers_do_not(tmp_path: Path) -> None:
    async def first(api: LabClient) -> None:
        await done(api, await upload(api, b"content"))
        (tmp_path / "files" / "new-left-behind").write_bytes(b"half an upload")

    async def second(api: LabClient) -> None:
        assert kept_bytes(api, "local:iso/test.iso") == b"content"
        assert files_in(tmp_path / "files") == [hashlib.sha256(b"content").hexdigest()]
        assert await used(api, "local") == 7

    async with with_lab(data=tmp_path) as api:
        await first(api)
    async with with_lab(data=tmp_path) as api:
        await second(api)


async def test_a_file_that_does_not_fit_fails_its_task(tmp_path: Path) -> None:
    async with with_lab(data=tmp_path) as api:
        with api.world.store.transaction():
            api.world.store.put("capacities", "pve1|local", {"total": 100})
        await done(api, await upload(api, b"x" * 60))
        upid = await upload(api, b"y" * 60, filename="more.iso")
        assert await failed(api, upid) == (
            "import failed: cp: error writing '/var/lib/vz/template/iso/more.iso': No space left on device"
        )
        await done(api, await upload(api, b"z" * 90))
        assert await used(api, "local") == 90
        assert len(files_in(tmp_path / "files")) == 1


async def test_removing_a_missing_file_succeeds_and_a_missing_disk_does_not() -> None:
    async with with_lab() as api:
        for volume in ("local:iso/gone.iso", "iso%2Fgone.iso", "iso/gone.iso"):
            upid = await api.delete(f"{S}/local/content/{volume}")
            await done(api, upid)
            assert "disk image '/var/lib/vz/template/iso/gone.iso' does not exist" in await api.log(upid)
        upid = await api.delete(f"{S}/local-lvm/content/vm-100-disk-0")
        assert "Failed to find logical volume" in await failed(api, upid)
        for volume, text in (
            ("local:nonsense", "500 unable to parse directory volume name 'nonsense'"),
            ("other:iso/x.iso", r"400 .*storage ID mismatch \(other != local\)"),
        ):
            with pytest.raises(Refused, match=text):
                await api.delete(f"{S}/local/content/{volume}")


async def test_a_removal_with_a_delay_answers_when_it_is_done() -> None:
    async with with_lab() as api:
        await done(api, await upload(api, b"content"))
        assert await api.delete(f"{S}/local/content/iso/test.iso", delay=5) is None
        assert await api.get(f"{S}/local/content") == []
        with pytest.raises(Refused, match="500 lvremove 'pve/vm-1-disk-0' error:"):
            await api.delete(f"{S}/local-lvm/content/vm-1-disk-0", delay=5)


async def test_volumes_are_allocated_by_name() -> None:
    async with with_lab() as api:
        volid = await api.post(f"{S}/local-lvm/content", filename="vm-100-data", vmid=100, size="512M")
        assert volid == "local-lvm:vm-100-data"
        volid = await api.post(f"{S}/local/content", filename="vm-100-disk-3.qcow2", vmid=100, size="2G")
        assert volid == "local:100/vm-100-disk-3.qcow2"
        one = await api.get(f"{S}/local/content/{volid}")
        assert (one["path"], one["format"]) == ("/var/lib/vz/images/100/vm-100-disk-3.qcow2", "qcow2")
        row = (await api.get(f"{S}/local/content"))[0]
        assert (row["content"], row["vmid"], row["format"]) == ("images", 100, "qcow2")
        for storage, name, more, text in (
            ("local-lvm", "vm-101-x", {}, "500 illegal name 'vm-101-x' - should be 'vm-100-\\*'"),
            ("local", "x.raw", {"format": "qcow2"}, r"400 .*different storage formats \(qcow2 != raw\)"),
            ("local", "vm-100-disk-3.qcow2", {}, "500 disk image 'vm-100-disk-3.qcow2' already exists"),
            ("local-lvm", "vm-100-y", {"size": "\uff11G"}, "400 .*value does not match the regex pattern"),
            ("local", "vm-100-disk-4.raw", {"size": "9999G"}, "500 unable to create image: .*No space left"),
        ):
            with pytest.raises(Refused, match=text):
                await api.post(
                    f"{S}/{storage}/content", **{"filename": name, "vmid": 100, "size": "1G", **more}
                )


async def test_a_volume_is_copied_to_another_node_by_root_alone() -> None:
    async with with_lab() as api:
        await done(api, await upload(api, b"content"))
        with pytest.raises(Refused, match="403 Permission check failed"):
            await api.post(f"{S}/local/content/iso/test.iso", target="iso/copy.iso", target_node="pve2")
        root = await api.with_password("root@pam", api.running.password)
        params = {"target": "iso/copy.iso", "target_node": "pve2"}
        await done(api, await root.post(f"{S}/local/content/iso/test.iso", **params))
        assert kept_bytes(api, "local:iso/copy.iso", "pve2") == b"content"
        assert (await api.get("/nodes/pve2/storage/local/content"))[0]["size"] == 7


async def test_backups_have_notes_and_can_be_protected() -> None:
    async with with_lab() as api:
        volid = put_backup(api, "vzdump-qemu-100-2026_01_02-03_04_05.vma.zst")
        path = f"{S}/local/content/{volid}"
        assert (await api.get(path))["notes"] == ""
        await api.put(path, notes="before the update\nreally", protected=1)
        assert (await api.get(path))["notes"] == "before the update\nreally"
        row = (await api.get(f"{S}/local/content", content="backup"))[0]
        assert (row["notes"], row["protected"], row["subtype"]) == ("before the update", 1, "qemu")
        upid = await api.delete(path)
        assert await failed(api, upid) == (
            "cannot remove protected volume 'backup/vzdump-qemu-100-2026_01_02-03_04_05.vma.zst' on 'local'"
        )
        await api.put(path, protected=0)
        await done(api, await api.delete(path))
        await done(api, await upload(api, b"content"))
        with pytest.raises(Refused, match="500 only backups can have notes"):
            await api.put(f"{S}/local/content/iso/test.iso", notes="x")


async def test_pruning_keeps_what_the_rules_say_and_what_is_protected() -> None:
    async with with_lab() as api:
        days = [f"vzdump-qemu-100-2026_01_0{day}-03_00_00.vma.zst" for day in range(1, 6)]
        volids = [put_backup(api, name) for name in days]
        put_backup(api, "vzdump-qemu-100-my-own.vma.zst")
        await api.put(f"{S}/local/content/{volids[0]}", protected=1)
        query = {"prune__backups": "keep-last=1,keep-daily=1"}
        marks = {row["volid"]: row["mark"] for row in await api.get(f"{S}/local/prunebackups", **query)}
        assert [marks[volid] for volid in volids] == ["protected", "remove", "remove", "keep", "keep"]
        assert marks["local:backup/vzdump-qemu-100-my-own.vma.zst"] == "renamed"
        await done(api, await api.delete(f"{S}/local/prunebackups", vmid=100, **query))
        left = {row["volid"] for row in await api.get(f"{S}/local/content", content="backup")}
        assert left == {volids[0], volids[3], volids[4], "local:backup/vzdump-qemu-100-my-own.vma.zst"}


async def test_only_who_may_use_a_storage_sees_and_changes_its_files() -> None:
    async with with_lab() as api:
        await done(api, await upload(api, b"content"))
        await api.post("/access/users", userid="eve@pve", password="password")
        eve = await api.with_password("eve@pve", "password")
        with pytest.raises(Refused, match="403 Permission check failed"):
            await eve.get(f"{S}/local/content")
        await api.put("/access/acl", path="/storage/local", roles="PVEDatastoreUser", users="eve@pve")
        put_backup(api, "vzdump-qemu-100-2026_01_02-03_04_05.vma.zst")
        assert [row["content"] for row in await eve.get(f"{S}/local/content")] == ["iso"]
        with pytest.raises(
            Refused, match=r"403 Permission check failed \(/storage/local, Datastore.Allocate\)"
        ):
            await eve.delete(f"{S}/local/content/iso/test.iso")
        with pytest.raises(Refused, match="403 Permission check failed"):
            await upload(eve, b"content")
