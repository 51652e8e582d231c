"""SFTP on a node: files are content of storages, and no file of the machine can be reached."""

from __future__ import annotations

import contextlib
import inspect
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.lab_ssh import said, ssh_to

from pvelab.seeds import parse_seed
from pvelab.ssh.sftp import NodeSftp

SNIPPETS = "/var/lib/vz/snippets"


@contextlib.asynccontextmanager
async def with_sftp(**options: Any) -> AsyncIterator[tuple[LabClient, asyncssh.SFTPClient]]:
    async with (
        lab_client(ssh_port=0, **options) as api,
        ssh_to(api) as ssh,
        ssh.start_sftp_client() as sftp,
    ):
        yield (api, sftp)


async def write(sftp: asyncssh.SFTPClient, path: str, content: bytes) -> None:
    async with sftp.open(path, "wb") as file:
        await file.write(content)


async def read(sftp: asyncssh.SFTPClient, path: str) -> Any:
    async with sftp.open(path, "rb") as file:
        return await file.read()


async def test_an_upload_in_the_manner_of_the_provider_is_listed_with_its_size_and_mode() -> None:
    async with with_sftp() as (api, sftp):
        await sftp.makedirs(SNIPPETS, exist_ok=True)
        content = bytes(range(256)) * 4096
        await write(sftp, f"{SNIPPETS}/user.yaml", content)
        await sftp.chmod(f"{SNIPPETS}/user.yaml", 0o600)
        attributes = await sftp.stat(f"{SNIPPETS}/user.yaml")
        assert (attributes.size, attributes.permissions) == (len(content), stat.S_IFREG | 0o600)
        [listed] = await api.get("/nodes/pve1/storage/local/content", content="snippets")
        assert (listed["volid"], listed["size"]) == ("local:snippets/user.yaml", len(content))
        assert await read(sftp, f"{SNIPPETS}/user.yaml") == content


async def test_what_is_written_is_there_once_it_is_closed_and_replaces_what_was() -> None:
    async with with_sftp() as (api, sftp):
        await write(sftp, f"{SNIPPETS}/a", b"first, and longer")
        file = await sftp.open(f"{SNIPPETS}/a", "wb")
        await file.write(b"second")
        assert (await file.stat()).size == 6
        assert (await sftp.stat(f"{SNIPPETS}/a")).size == 17
        await file.close()
        assert (await sftp.stat(f"{SNIPPETS}/a")).size == 6
        async with sftp.open(f"{SNIPPETS}/a", "ab") as more:
            await more.write(b" and third")
        async with sftp.open(f"{SNIPPETS}/a", "r+b") as patch:
            await patch.write(b"S", 0)
        assert await read(sftp, f"{SNIPPETS}/a") == b"Second and third"
        await sftp.truncate(f"{SNIPPETS}/a", 6)
        used = (await api.get("/nodes/pve1/storage/local/status"))["used"]
        assert used == 6


async def test_folders_show_what_the_storages_hold() -> None:
    async with with_sftp(seed=parse_seed({"files": [{"volume": "local:iso/debian.iso", "size": 5000}]})) as (
        _api,
        sftp,
    ):
        assert sorted(await sftp.listdir("/var/lib/vz")) == [
            *(".", ".."),
            *("dump", "images", "import", "snippets", "template"),
        ]
        assert sorted(await sftp.listdir("/var/lib/vz/template/iso"))[2:] == ["debian.iso"]
        assert (await sftp.stat("/var/lib/vz/template/iso/debian.iso")).size == 5000
        assert await read(sftp, "/var/lib/vz/template/iso/debian.iso") == bytes(5000)
        assert await sftp.isdir("/var/lib/vz/template")
        assert not await sftp.exists("/var/lib/vz/nothing")
        assert await sftp.realpath(".") == "/root"
        assert await sftp.realpath("/var/../etc/./pve") == "/etc/pve"


async def test_the_file_of_a_vm_is_its_configuration() -> None:
    async with with_sftp() as (api, sftp):
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, name="web", cores=2, description="a b"))
        async with sftp.open("/etc/pve/qemu-server/100.conf", "r") as file:
            text = str(await file.read())
        assert text.startswith("#a b\n")
        assert "\ncores: 2\n" in text
        async with sftp.open("/etc/pve/nodes/pve1/qemu-server/100.conf", "w") as file:
            await file.write(text.replace("cores: 2", "cores: 3"))
        assert (await api.get("/nodes/pve1/qemu/100/config"))["cores"] == 3
        with pytest.raises(asyncssh.SFTPFailure, match="unable to parse line"):
            async with sftp.open("/etc/pve/qemu-server/100.conf", "w") as file:
                await file.write("nonsense")


async def test_files_are_renamed_and_removed() -> None:
    async with with_sftp() as (api, sftp):
        for name in "ab":
            await write(sftp, f"{SNIPPETS}/{name}", name.encode())
        with pytest.raises(asyncssh.SFTPFailure):
            await sftp.rename(f"{SNIPPETS}/a", f"{SNIPPETS}/b")
        await sftp.posix_rename(f"{SNIPPETS}/a", f"{SNIPPETS}/b")
        [left] = await api.get("/nodes/pve1/storage/local/content")
        assert (left["volid"], left["size"]) == ("local:snippets/b", 1)
        await sftp.remove(f"{SNIPPETS}/b")
        assert await api.get("/nodes/pve1/storage/local/content") == []
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.remove(f"{SNIPPETS}/b")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/../../etc/passwd",
        f"{SNIPPETS}/../../../../etc/passwd",
        "../../../../../../etc/shadow",
        "/proc/self/environ",
    ],
)
async def test_no_file_of_the_machine_can_be_read(path: str) -> None:
    async with with_sftp() as (_api, sftp):
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.open(path, "rb")
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.stat(path)


async def test_nothing_can_be_written_outside_the_storages(tmp_path: Path) -> None:
    async def test(_api: LabClient, sftp: asyncssh.SFTPClient) -> None:
        for path in (str(tmp_path / "made"), f"{SNIPPETS}/../../../..{tmp_path}/made", f"{SNIPPETS}/deep/er"):
            with pytest.raises(asyncssh.SFTPNoSuchFile):
                await sftp.open(path, "wb")
        for path in ("/var/lib/vz/free", "/var/lib/vz/template/iso/x.txt", "/etc/hostname2"):
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await sftp.open(path, "wb")
        with pytest.raises(asyncssh.SFTPPermissionDenied):
            await sftp.mkdir("/var/lib/vz/mine")
        with pytest.raises(asyncssh.SFTPOpUnsupported):
            await sftp.symlink("/etc", f"{SNIPPETS}/link")

    async with with_sftp() as (_api, sftp):
        await test(_api, sftp)
    assert list(tmp_path.iterdir()) == []


def test_no_operation_of_the_library_works_on_the_machine() -> None:
    inherited = [
        name
        for name, function in inspect.getmembers(asyncssh.SFTPServer, inspect.isfunction)
        if not name.startswith("_") and getattr(NodeSftp, name) is function
    ]
    # These two only put together what the others say.
    assert inherited == ["convert_attrs", "format_longname"]


async def test_a_full_storage_takes_no_file() -> None:
    async with with_sftp() as (api, sftp):
        await api.raw("POST", "/faults", base="/_lab", json={"kind": "storage-full", "storage": "local"})
        with pytest.raises(asyncssh.SFTPFailure, match="No space left on device"):
            await write(sftp, f"{SNIPPETS}/a", b"x")
        async with ssh_to(api) as ssh:
            status, _, err = await said(ssh, f"tee {SNIPPETS}/b", b"x")
        assert (status, err) == (1, f"tee: {SNIPPETS}/b: No space left on device\n")
        assert await api.get("/nodes/pve1/storage/local/content") == []


async def test_a_file_survives_a_restart_of_the_lab(tmp_path: Path) -> None:
    async def put(_api: LabClient, sftp: asyncssh.SFTPClient) -> None:
        await write(sftp, f"{SNIPPETS}/a", b"kept")
        await sftp.chmod(f"{SNIPPETS}/a", 0o640)

    async def check(_api: LabClient, sftp: asyncssh.SFTPClient) -> None:
        assert await read(sftp, f"{SNIPPETS}/a") == b"kept"
        assert (await sftp.stat(f"{SNIPPETS}/a")).permissions == stat.S_IFREG | 0o640

    async with with_sftp(data=tmp_path) as (_api, sftp):
        await put(_api, sftp)
    async with with_sftp(data=tmp_path) as (_api, sftp):
        await check(_api, sftp)
