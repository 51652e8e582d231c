"""Downloads: really made from this machine, stood in for from anywhere else."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import done, failed, used, with_lab

S = "/nodes/pve1/storage"
PUBLIC = "https://images.example.org/noble/noble-server-cloudimg-amd64.img"
PATH = "/var/lib/vz/template/iso/x.img"


@contextlib.asynccontextmanager
async def file_server(**files: bytes) -> AsyncIterator[str]:
    """Serve files by name at a loopback address and give its URL; anything else is not found."""

    async def handle(request: web.Request) -> web.Response:
        name = request.match_info["name"].replace(".", "_")
        if name not in files:
            raise web.HTTPNotFound
        headers = {"Content-Disposition": 'attachment; filename="told.img"'} if name == "told_img" else {}
        return web.Response(body=files[name], content_type="application/x-test", headers=headers)

    app = web.Application()
    app.router.add_get("/{name}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def download(api: LabClient, url: str, **params: str) -> str:
    given = {"content": "iso", "filename": "x.img", "url": url, **params}
    upid: str = await api.post(f"{S}/local/download-url", **given)
    return upid


async def sizes(api: LabClient) -> dict[str, int]:
    return {row["volid"]: row["size"] for row in await api.get(f"{S}/local/content")}


async def test_a_url_of_this_machine_is_really_fetched() -> None:
    async with with_lab() as api, file_server(disk_img=b"content " * 1000, told_img=b"abc") as base:
        upid = await download(api, f"{base}/disk.img", verify__certificates="1")
        await done(api, upid)
        assert upid.split(":")[5:7] == ["download", "x.img"]
        assert f"download of '{base}/disk.img' to '{PATH}' finished" in await api.log(upid)
        assert await sizes(api) == {"local:iso/x.img": 8000}
        metadata = await api.get("/nodes/pve1/query-url-metadata", url=f"{base}/disk.img")
        assert metadata == {"filename": "disk.img", "size": 8000, "mimetype": "application/x-test"}
        metadata = await api.get("/nodes/pve1/query-url-metadata", url=f"{base}/told.img?x=1")
        assert metadata["filename"] == "told.img"
        with pytest.raises(Refused, match="500 invalid server response: '404 Not Found'"):
            await api.get("/nodes/pve1/query-url-metadata", url=f"{base}/gone.img")


async def test_a_file_that_cannot_be_had_fails_the_task_with_what_wget_says() -> None:
    async with with_lab() as api:
        async with file_server() as base:
            assert (await failed(api, await download(api, f"{base}/gone.img"))).endswith(
                "ERROR 404: Not Found."
            )
        where = base.removeprefix("http://")
        text = await failed(api, await download(api, f"{base}/gone.img"))
        assert text == f"download failed: Connecting to {where}... failed: Connection refused."
        with pytest.raises(Refused, match=r"500 invalid server response: '500 Can't connect to .*refused\)'"):
            await api.get("/nodes/pve1/query-url-metadata", url=f"{base}/gone.img")
        assert await sizes(api) == {}


async def test_a_certificate_that_nobody_signed_is_believed_only_when_told_so() -> None:
    async with with_lab() as api:
        url = f"{api.running.url}/x.img"
        text = await failed(api, await download(api, url))
        assert text == "download failed: To connect to 127.0.0.1 insecurely, use `--no-check-certificate'."
        text = await failed(api, await download(api, url, verify__certificates="0"))
        assert text.endswith("ERROR 501: no such uri.")


async def test_a_download_is_compared_with_its_checksum() -> None:
    async with with_lab() as api, file_server(disk_img=b"content") as base:
        right = hashlib.sha256(b"content").hexdigest()
        checked = {"checksum__algorithm": "sha256", "checksum": right}
        wrong = {**checked, "checksum": "0" * 64}
        text = await failed(api, await download(api, f"{base}/disk.img", **wrong))
        assert text == f"checksum mismatch: got '{right}' != expect '{'0' * 64}'"
        await done(api, await download(api, f"{base}/disk.img", **checked))
        upid = await download(api, f"{base}/disk.img", **checked)
        await done(api, upid)
        assert any("no need to download" in line for line in await api.log(upid))
        text = await failed(api, await download(api, f"{base}/disk.img", **wrong))
        assert text == f"checksum mismatch: got '{right}' != expect '{'0' * 64}', aborting"
        text = await failed(api, await download(api, f"{base}/disk.img"))
        assert text == f"refusing to override existing file '{PATH}'"


async def test_packed_files_are_unpacked() -> None:
    async with with_lab() as api:
        plain = b"content " * 1000
        files = {"a_gz": gzip.compress(plain), "b_bz2": bz2.compress(plain), "c_gz": b"no gzip at all"}
        async with file_server(**files) as base:
            for name, kind in (("a.gz", "gz"), ("b.bz2", "bz2")):
                await done(
                    api, await download(api, f"{base}/{name}", filename=f"{kind}.img", compression=kind)
                )
            assert await sizes(api) == {"local:iso/bz2.img": 8000, "local:iso/gz.img": 8000}
            for params, text in (
                ({"compression": "gz"}, "command 'zcat"),
                ({"compression": "zst"}, "the lab cannot decompress 'zst'"),
                ({"compression": "rar"}, "no decompression method found"),
                (
                    {"compression": "gz", "content": "import", "filename": "x.raw"},
                    "decompression not supported for",
                ),
            ):
                assert text in await failed(api, await download(api, f"{base}/c.gz", **params))


async def test_a_url_of_another_machine_gets_a_stand_in_of_the_size_that_was_told() -> None:
    async with with_lab() as api:
        metadata = await api.get("/nodes/pve1/query-url-metadata", url=PUBLIC)
        assert metadata["filename"] == "noble-server-cloudimg-amd64.img"
        assert metadata == await api.get("/nodes/pve1/query-url-metadata", url=PUBLIC)
        checked = {"checksum__algorithm": "sha256", "checksum": "a" * 64}
        await done(api, await download(api, PUBLIC, **checked))
        assert await sizes(api) == {"local:iso/x.img": metadata["size"]}
        assert await used(api, "local") == metadata["size"]
        await done(api, await download(api, PUBLIC, **checked))
        wrong = {**checked, "checksum": "b" * 64}
        assert "checksum mismatch" in await failed(api, await download(api, PUBLIC, **wrong))


async def test_a_download_that_does_not_fit_fails() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            api.world.store.put("capacities", "pve1|local", {"total": 1000})
        text = f"download failed: Cannot write to '{PATH}' (No space left on device)."
        assert await failed(api, await download(api, PUBLIC)) == text
        async with file_server(disk_img=b"x" * 1001) as base:
            assert await failed(api, await download(api, f"{base}/disk.img")) == text
        assert await sizes(api) == {}


@pytest.mark.parametrize(
    ("path", "params", "text"),
    [
        ("local-lvm", {}, "500 can't upload to storage type 'lvmthin', not a file based storage!"),
        ("local", {"filename": "x.txt"}, "400 .*wrong file extension"),
        ("local", {"url": "ftp://x/y.iso"}, "400 .*value does not match the regex pattern"),
        ("one", {}, "500 storage 'one' is not configured for content-type 'iso'"),
    ],
)
async def test_a_download_that_cannot_be_is_refused(path: str, params: dict[str, str], text: str) -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="one", type="dir", path="/srv", content="backup")
        given = {"content": "iso", "filename": "x.iso", "url": PUBLIC, **params}
        with pytest.raises(Refused, match=text):
            await api.post(f"{S}/{path}/download-url", **given)


async def test_templates_of_the_list_can_be_had() -> None:
    async with with_lab() as api:
        names = [row["template"] for row in await api.get("/nodes/pve1/aplinfo")]
        assert "debian-13-standard_13.1-2_amd64.tar.zst" in names
        for _ in range(2):
            await done(api, await api.post("/nodes/pve1/aplinfo", storage="local", template=names[0]))
        assert list(await sizes(api)) == [f"local:vztmpl/{names[0]}"]
        with pytest.raises(Refused, match=r"400 .*no such template"):
            await api.post("/nodes/pve1/aplinfo", storage="local", template="nonsense")


async def test_images_of_registries_are_pulled_once() -> None:
    async with with_lab() as api:
        params = {"reference": "registry.example.org/team/app:1.0"}
        await done(api, await api.post(f"{S}/local/oci-registry-pull", **params))
        await done(api, await api.post(f"{S}/local/oci-registry-pull", filename="mine", **params))
        assert set(await sizes(api)) == {"local:vztmpl/app_1.0.tar", "local:vztmpl/mine.tar"}
        with pytest.raises(Refused, match=r"500 refusing to override existing file 'mine.tar'"):
            await api.post(f"{S}/local/oci-registry-pull", filename="mine", **params)
        with pytest.raises(Refused, match=r"400 .*value does not match the regex pattern"):
            await api.post(f"{S}/local/oci-registry-pull", reference="no tag")
