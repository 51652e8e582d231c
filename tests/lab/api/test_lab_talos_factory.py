"""The image factory of the lab: schematics, images, refusals, faults, and VMs that boot what it gives."""

from __future__ import annotations

import contextlib
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.talos import boot_talos, free_network, wait_for_stage

from pvelab.talos.factory import VERSIONS

AGENT = "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}"
ID = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
IMAGE = f"/image/{ID}/v1.12.1/nocloud-amd64.iso"


def factory_lab() -> contextlib.AbstractAsyncContextManager[LabClient]:
    """Run a lab with a factory, whose guests are on loopback."""
    return lab_client(factory_port=0, guest_network=f"{free_network()}.0.0/16")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(api: LabClient, method: str, path: str, **options: Any) -> Answer:
    url = f"{api.running.factory_url}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, allow_redirects=False, **options) as response,
    ):
        return Answer(response.status, response.headers, await response.read())


async def download(api: LabClient, path: str = IMAGE, **options: Any) -> str:
    parameters = {"url": f"{api.running.factory_url}{path}", "content": "iso", "filename": "talos.iso"}
    upid = await api.post("/nodes/pve1/storage/local/download-url", **{**parameters, **options})
    return await api.done(upid)


async def test_a_schematic_is_kept_under_its_id() -> None:
    async with factory_lab() as api:
        for data in (AGENT, '{"customization": {"systemExtensions": {"officialExtensions": ["a/b"]}}}'):
            posted = await ask(api, "POST", "/schematics", data=data)
            assert posted.status == 201
            found = await ask(api, "GET", f"/schematics/{posted.json['id']}")
            assert (found.status, found.body.decode()) == (200, posted.json["schematic"])
        assert (await ask(api, "POST", "/schematics", data=AGENT)).json["id"] == ID
        assert (await ask(api, "POST", "/schematics", data="customization: {x: 1}")).status == 400
        assert (await ask(api, "GET", f"/schematics/{'0' * 64}")).status == 404


async def test_versions_extensions_and_overlays_are_listed() -> None:
    async with factory_lab() as api:
        assert (await ask(api, "GET", "/versions")).json == list(VERSIONS)
        extensions = (await ask(api, "GET", "/version/v1.12.1/extensions/official")).json
        assert "siderolabs/qemu-guest-agent" in [one["name"] for one in extensions]
        overlays = (await ask(api, "GET", "/version/v1.12.1/overlays/official")).json
        assert "rpi_generic" in [one["name"] for one in overlays]
        assert (await ask(api, "GET", "/version/v9.9.9/extensions/official")).status == 404


async def test_an_image_is_found_by_head_and_led_to_by_get() -> None:
    async with factory_lab() as api:
        await ask(api, "POST", "/schematics", data=AGENT)
        head = await ask(api, "HEAD", f"{IMAGE}?filename=mine.iso")
        assert head.status == 200
        assert head.headers["Content-Disposition"] == 'attachment; filename="mine.iso"'
        get = await ask(api, "GET", IMAGE)
        assert get.status == 302
        body = (await ask(api, "GET", get.headers["Location"])).body
        assert len(body) == int(head.headers["Content-Length"])
        packed = await ask(api, "GET", f"/cached/{ID}/v1.12.1/nocloud-amd64.raw.xz")
        plain = await ask(api, "GET", f"/cached/{ID}/v1.12.1/nocloud-amd64.raw")
        assert lzma.decompress(packed.body) == plain.body


REFUSED = {
    f"{IMAGE}.sha256": 402,
    f"/image/{ID}/latest/nocloud-amd64.iso": 500,
    f"/image/{ID}/v1.12.1/nocloud.iso": 400,
    f"/image/{ID}/v1.12.1": 400,
    f"/image/{'0' * 64}/v1.12.1/nocloud-amd64.iso": 404,
    f"/image/{ID}/v9.9.9/nocloud-amd64.iso": 404,
    "/else": 404,
}


async def test_what_is_no_image_is_refused_as_the_public_factory_does() -> None:
    async with factory_lab() as api:
        await ask(api, "POST", "/schematics", data=AGENT)
        assert {path: (await ask(api, "GET", path)).status for path in REFUSED} == REFUSED


async def test_a_vm_boots_what_a_node_downloads_from_the_factory() -> None:
    async with factory_lab() as api:
        await ask(api, "POST", "/schematics", data=AGENT)
        url = f"{api.running.factory_url}{IMAGE}"
        known = await api.get("/nodes/pve1/query-url-metadata", url=url)
        assert known == {
            "filename": "nocloud-amd64.iso",
            "size": 524288,
            "mimetype": "application/octet-stream",
        }
        assert await download(api) == "OK"
        machine = await boot_talos(api, ipconfig0="ip=dhcp")
        await wait_for_stage(machine, "maintenance")
        assert machine.image["schematic"] == ID
        # The network of the guests is on loopback: even an address by DHCP is reached directly.
        assert machine.address is not None
        assert machine.address[0].startswith(free_network())
        assert machine.address[1] == 50000
        packed = f"/image/{ID}/v1.12.1/nocloud-amd64.raw.zst"
        assert await download(api, packed, filename="talos.img", compression="zst") == "OK"
        assert api.world.volumes.require("local:iso/talos.img", "pve1")["talos"]["schematic"] == ID
        image = f"/image/{ID}/v1.12.1/nocloud-amd64.qcow2"
        assert await download(api, image, filename="talos.qcow2", content="import") == "OK"
        disk = "local-lvm:0,import-from=local:import/talos.qcow2"
        other = await boot_talos(api, 101, ide2=None, scsi0=disk, boot="order=scsi0")
        await wait_for_stage(other, "maintenance")


async def test_a_stand_in_for_the_public_factory_boots_too() -> None:
    async with lab_client() as api:
        url = f"https://factory.example.org{IMAGE}"
        parameters = {"url": url, "content": "iso", "filename": "talos.iso"}
        upid = await api.post("/nodes/pve1/storage/local/download-url", **parameters)
        assert await api.done(upid) == "OK"
        await wait_for_stage(await boot_talos(api), "maintenance")


FAULTS = {
    "down": "Server disconnected",
    "redirect-loop": "20 redirections exceeded",
    "half-download": "Not enough data",
}


@pytest.mark.parametrize("how", FAULTS)
async def test_a_fault_of_the_factory_fails_the_download(how: str) -> None:
    async with factory_lab() as api:
        await ask(api, "POST", "/schematics", data=AGENT)
        name = api.running.add_fault("factory", how=how, path="/image/*")
        assert FAULTS[how] in await download(api)
        api.running.remove_fault(name)
        assert await download(api) == "OK"


async def test_wrong_bytes_are_seen_by_who_knows_the_checksum() -> None:
    async with factory_lab() as api:
        await ask(api, "POST", "/schematics", data=AGENT)
        assert await download(api) == "OK"
        volume = api.world.volumes.require("local:iso/talos.iso", "pve1")
        api.running.add_fault("factory", how="wrong-bytes", times=1)
        pinned = {"checksum": volume["sha256"], "checksum__algorithm": "sha256", "filename": "other.iso"}
        assert "checksum mismatch" in await download(api, **pinned)
        assert await download(api, **pinned) == "OK"


async def test_a_slow_factory_takes_the_time_of_the_lab() -> None:
    async with factory_lab() as api:
        api.running.add_fault("factory", how="slow", seconds=0.1)
        begun = api.world.clock.now()
        assert (await ask(api, "GET", "/versions")).status == 200
        assert api.world.clock.now() - begun >= 0.1


async def test_schematics_outlive_a_restart(tmp_path: Any) -> None:
    async with lab_client(factory_port=0, data=tmp_path) as api:
        await ask(api, "POST", "/schematics", data=AGENT)
    async with lab_client(factory_port=0, data=tmp_path) as api:
        assert (await ask(api, "HEAD", IMAGE)).status == 200
        assert api.running.document()["factory_url"] == api.running.factory_url
