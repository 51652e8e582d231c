"""A lab that is killed with -9 while it has nested nodes: on its data they come back as they were."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.lab_process import LabProcess, start_lab
from tests.support.processes import PATIENCE_S

from pvelab.machines.bubblewrap import find_bubblewrap

PASSWORD = "open-sesame"
SEED = f"""
nodes: [pve1]
files:
  - {{volume: "local:import/debian-13-pve.qcow2", size: 1048576}}
calls:
  - path: /nodes/{{node1}}/qemu
    parameters:
      vmid: 100
      name: inner
      memory: 8192
      cores: 4
      scsi0: local-lvm:0,import-from=local:import/debian-13-pve.qcow2
      ide2: local-lvm:cloudinit
      net0: virtio,bridge=vmbr0
      ipconfig0: ip=10.0.12.5/24,gw=10.0.12.1
      ciuser: root
      cipassword: {PASSWORD}
  - path: /nodes/{{node1}}/qemu/100/status/start
"""


class Inner:
    """The API of the nested node, as somebody outside of the lab calls it."""

    def __init__(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> None:
        self._session = session
        self._url = url
        self._headers = headers

    async def call(self, method: str, path: str, **parameters: Any) -> Any:
        async with self._session.request(
            method, f"{self._url}/api2/json{path}", data=parameters or None, headers=self._headers
        ) as answer:
            assert answer.status == 200, await answer.text()
            return (await answer.json())["data"]

    async def done(self, path: str, **parameters: Any) -> None:
        """Make a call that starts a task, and wait for its end: what goes on is lost with the lab."""
        upid = await self.call("POST", path, **parameters)
        while True:
            task = await self.call("GET", f"/nodes/inner/tasks/{upid}/status")
            if task["status"] == "stopped":
                break
            await asyncio.sleep(0.02)
        assert task["exitstatus"] == "OK"


async def _inner(session: aiohttp.ClientSession, running: LabProcess) -> Inner:
    """Log in to the nested node, once it is up."""
    url = f"{running.ready['url']}/_lab/guests"
    async with session.get(
        url, headers={"Authorization": f"PVEAPIToken={running.ready['api_token']}"}
    ) as said:
        [guest] = (await said.json())["guests"]
    where = f"https://127.0.0.1:{guest['ports']['8006']}"
    login = {"username": "root@pam", "password": PASSWORD}
    async with session.post(f"{where}/api2/json/access/ticket", data=login) as answer:
        ticket = (await answer.json())["data"]
    cookie = f"PVEAuthCookie={ticket['ticket']}"
    return Inner(session, where, {"Cookie": cookie, "CSRFPreventionToken": ticket["CSRFPreventionToken"]})


@contextlib.asynccontextmanager
async def _lab(data: Path, *options: str) -> AsyncIterator[LabProcess]:
    running = await start_lab(data, *options)
    try:
        yield running
    finally:
        await running.kill()


@pytest.mark.parametrize("guests", ["recorded", "sandbox"])
async def test_nested_nodes_come_back_with_their_guests_after_the_lab_was_killed(
    tmp_path: Path, guests: str
) -> None:
    found = await find_bubblewrap()
    if guests == "sandbox" and isinstance(found, str):
        pytest.skip(found)
    data, seed = tmp_path / "data", tmp_path / "seed.yaml"
    seed.write_text(SEED)
    connector = aiohttp.TCPConnector(ssl=False, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.timeout(PATIENCE_S * 4):
        async with _lab(data, "--guests", guests, "--seed", str(seed)) as running:
            inner = await _inner(session, running)
            await inner.done("/nodes/inner/qemu", vmid=200, name="leaf", memory=512)
            await inner.done("/nodes/inner/qemu/200/status/start")
            before = await inner.call("GET", "/nodes/inner/certificates/info")
        async with _lab(data, "--guests", guests) as running:
            inner = await _inner(session, running)
            [leaf] = await inner.call("GET", "/nodes/inner/qemu")
            assert (leaf["vmid"], leaf["name"], leaf["status"]) == (200, "leaf", "running")
            assert await inner.call("GET", "/nodes/inner/certificates/info") == before
