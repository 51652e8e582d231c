"""Many clients at once on one lab, each sure of what it was told: who owns which guest, and what it has.

A client makes VMs and containers, changes them, takes snapshots, clones and destroys. It writes down only
what the lab confirmed, so that afterwards everything written down must be true; what was under way when the
lab went is in doubt.
"""

from __future__ import annotations

import asyncio
import json
import random
import urllib.parse
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

__all__ = ["Crowd", "Door", "LostError", "Member", "RefusedError"]

TEMPLATE = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
CHANGED = "checksum mismatch"
NODES = ("pve1", "pve2")
_GONE = (aiohttp.ClientError, ConnectionError, TimeoutError)


class RefusedError(Exception):
    """The lab said no; the text is its reason."""

    def must_say(self, text: str) -> None:
        """Fail unless this is the refusal that was to be expected."""
        assert text in str(self), self


class LostError(Exception):
    """The lab went before it answered: the call may have been done or not."""


class Door:
    """The way to a lab that may be replaced by another one on the same data."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._url = ""
        self._token = ""
        self._session: aiohttp.ClientSession | None = None
        self._answered = asyncio.Semaphore(0)

    async def open(self, url: str, token: str) -> None:
        """Lead to this lab from now on."""
        await self.close()
        self._url, self._token = url, token
        # Nobody gives up for being one of many.
        timeout, connector = aiohttp.ClientTimeout(total=600), aiohttp.TCPConnector(ssl=False, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        self._open.set()

    async def close(self) -> None:
        """Lead nowhere for now; who calls waits."""
        self._open.clear()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def wait_for_answers(self, count: int) -> None:
        """Wait until so many more calls have been answered."""
        while not self._answered.locked():
            await self._answered.acquire()
        for _ in range(count):
            await self._answered.acquire()

    async def call(self, method: str, path: str, **params: Any) -> Any:
        """Make a call and return its data.

        Raises:
            RefusedError: The lab refused.
            LostError: The lab went meanwhile.
        """
        await self._open.wait()
        session = self._session
        assert session is not None
        url, body = f"{self._url}/api2/json{path}", None
        if method in ("POST", "PUT"):
            body = urllib.parse.urlencode(params).encode() or None
        elif params:
            url = f"{url}?{urllib.parse.urlencode(params)}"
        headers = {"Authorization": f"PVEAPIToken={self._token}"}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            async with session.request(method, url, data=body, headers=headers) as response:
                content = await response.read()
        except (*_GONE, RuntimeError) as err:
            # A session that was closed under the call is a RuntimeError.
            raise LostError(f"{method} {path}") from err
        self._answered.release()
        document = json.loads(content)
        if response.status >= 400:
            raise RefusedError(f"{response.reason} {document.get('errors', '')}".strip())
        return document["data"]

    async def finish(self, upid: str) -> None:
        """Wait for the end of a task that must end well.

        Raises:
            RefusedError: It failed.
            LostError: The lab went meanwhile.
        """
        node = upid.split(":")[1]
        while True:
            status = await self.call("GET", f"/nodes/{node}/tasks/{upid}/status")
            if status["status"] == "stopped":
                break
            await asyncio.sleep(0.02)
        if status["exitstatus"] == "unexpected status":
            raise LostError(upid)
        if status["exitstatus"] != "OK":
            raise RefusedError(status["exitstatus"])


@dataclass
class Crowd:
    """What all clients know together.

    Attributes:
        door: The way to the lab.
        owned: The guests that are there for sure, by vmid: their path.
        noted: What each of these has in its description for sure.
        doubts: How many calls are under way, or were when the lab went, that make, change or remove a guest.
        counts: How often what was done.
    """

    door: Door
    owned: dict[int, str] = field(default_factory=dict)
    noted: dict[int, str] = field(default_factory=dict)
    doubts: Counter[int] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    shared: list[str] = field(default_factory=list)
    joined: dict[str, set[str]] = field(default_factory=dict)

    async def prepare(self, shared: int) -> None:
        """Put templates on the nodes and make the guests that everybody changes."""
        for node in NODES:
            upid = await self.door.call(
                *("POST", f"/nodes/{node}/storage/local/download-url"),
                content="vztmpl",
                filename=TEMPLATE.rpartition("/")[2],
                url=f"https://templates.example/{TEMPLATE.rpartition('/')[2]}",
            )
            await self.door.finish(upid)
        for number in range(shared):
            path = f"/nodes/{NODES[number % 2]}/qemu/{900_000 + number}"
            upid = await self.door.call("POST", path.rpartition("/")[0], vmid=900_000 + number)
            await self.door.finish(upid)
            self.shared.append(path)
            self.joined[path] = set()

    @property
    def doubtful(self) -> set[int]:
        """Guests that may be there or not, whole or locked."""
        return set(+self.doubts)

    def own(self, vmid: int, path: str) -> None:
        """Write down a guest that the lab said was made for one client: nobody else may have it."""
        assert vmid not in self.owned, f"{vmid} was given twice: {path} and {self.owned[vmid]}"
        self.owned[vmid] = path

    def disown(self, vmid: int) -> str:
        """Strike out a guest before it is destroyed."""
        self.noted.pop(vmid, None)
        return self.owned.pop(vmid)


class Member:
    """One client of the crowd."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._door = crowd.door
        self._number = number
        self._random = random.Random(number)

    async def work(self, rounds: int) -> None:
        """Do a round of everything, several times."""
        for _ in range(rounds):
            await self._do_everything()

    async def work_until(self, enough: asyncio.Event) -> None:
        """Do rounds of everything until told to stop; what the lab's end interrupts is left as it is."""
        while not enough.is_set():
            try:
                await self._do_everything()
            except LostError:
                self._crowd.counts["interrupted"] += 1

    async def _do_everything(self) -> None:
        vmid = await self.create()
        await self.note(vmid)
        await self.snapshot(vmid)
        copy = await self.clone(vmid)
        await self.join()
        await self.destroy(copy)
        if self._random.random() < 0.5:
            await self.destroy(vmid)

    async def create(self) -> int:
        """Make a VM or a container under a free number."""
        kind, node = self._random.choice(("qemu", "lxc")), self._random.choice(NODES)
        while True:
            vmid = await self._free_number()
            try:
                await self._make(f"/nodes/{node}/{kind}", vmid, **_new(kind, vmid, self._random))
            except RefusedError as err:
                self._count_refusal(err)
                continue
            self._crowd.own(vmid, f"/nodes/{node}/{kind}/{vmid}")
            self._crowd.counts["created"] += 1
            return vmid

    async def note(self, vmid: int) -> None:
        """Write something into the description of a guest."""
        path, text = self._crowd.owned[vmid], f"by {self._number} {self._random.random()}"
        self._crowd.noted.pop(vmid, None)
        await self._door.call("PUT", f"{path}/config", description=text)
        self._crowd.noted[vmid] = text
        self._crowd.counts["changed"] += 1

    async def snapshot(self, vmid: int) -> None:
        """Take a snapshot and remove it again, half of the time."""
        path = f"{self._crowd.owned[vmid]}/snapshot"
        await self._task(vmid, "POST", path, snapname="one")
        self._crowd.counts["snapshots"] += 1
        if self._random.random() < 0.5:
            await self._task(vmid, "DELETE", f"{path}/one")

    async def clone(self, vmid: int) -> int:
        """Make a full copy of a guest under a free number."""
        path = self._crowd.owned[vmid]
        while True:
            newid = await self._free_number()
            self._crowd.doubts.update((vmid, newid))
            try:
                upid = await self._door.call("POST", f"{path}/clone", newid=newid, full=1)
                await self._door.finish(upid)
            except RefusedError as err:
                self._crowd.doubts.subtract((vmid, newid))
                self._count_refusal(err)
                continue
            self._crowd.doubts.subtract((vmid, newid))
            self._crowd.own(newid, f"{path.rpartition('/')[0]}/{newid}")
            self._crowd.counts["cloned"] += 1
            return newid

    async def join(self) -> None:
        """Add a tag of one's own to a guest that many change at once; who was too late tries again."""
        path, tag = (
            self._random.choice(self._crowd.shared),
            f"t{self._number}-{self._random.randrange(10**9)}",
        )
        while True:
            config = await self._door.call("GET", f"{path}/config")
            tags = ";".join(filter(None, (config.get("tags"), tag)))
            try:
                await self._door.call("PUT", f"{path}/config", tags=tags, digest=config["digest"])
            except RefusedError as err:
                err.must_say(CHANGED)
                self._crowd.counts["conflicts"] += 1
                continue
            self._crowd.joined[path].add(tag)
            self._crowd.counts["joined"] += 1
            return

    async def destroy(self, vmid: int) -> None:
        """Remove a guest."""
        path = self._crowd.disown(vmid)
        await self._task(vmid, "DELETE", path, purge=1)
        self._crowd.counts["destroyed"] += 1

    def _count_refusal(self, err: RefusedError) -> None:
        """Take note of what many clients must expect: another has the number, or the storage for too long."""
        if "got timeout" in str(err):
            self._crowd.counts["lock timeouts"] += 1
        else:
            err.must_say("already exists")
            self._crowd.counts["numbers taken"] += 1

    async def _free_number(self) -> int:
        """Ask for the next free number, as some clients do, or for one of our own choice, as others do."""
        if self._number % 10 == 0:
            return int(await self._door.call("GET", "/cluster/nextid"))
        return self._random.randrange(1000, 100_000)

    async def _make(self, path: str, vmid: int, **params: Any) -> None:
        self._crowd.doubts[vmid] += 1
        try:
            await self._door.finish(await self._door.call("POST", path, vmid=vmid, **params))
        except RefusedError:
            self._crowd.doubts[vmid] -= 1
            raise
        self._crowd.doubts[vmid] -= 1

    async def _task(self, vmid: int, method: str, path: str, **params: Any) -> None:
        self._crowd.doubts[vmid] += 1
        await self._door.finish(await self._door.call(method, path, **params))
        self._crowd.doubts[vmid] -= 1


def _new(kind: str, vmid: int, randomness: random.Random) -> dict[str, Any]:
    """Return the parameters of a new guest with disks of odd sizes."""
    size = randomness.choice(("0.1", "0.03", "0.0017", "0.0271828"))
    if kind == "lxc":
        return {
            "ostemplate": TEMPLATE,
            "rootfs": f"local-lvm:{size}",
            "net0": "name=eth0,bridge=vmbr0,ip=dhcp",
            "hostname": f"c{vmid}",
        }
    return {
        "name": f"v{vmid}",
        "scsi0": f"local-lvm:{size}",
        "virtio1": f"local:{size},format=qcow2",
        "net0": "virtio,bridge=vmbr0",
    }
