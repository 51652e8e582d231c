"""A lab under made-up requests: what is sent, what must hold of every answer, and of the lab afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import traceback
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.lab import LabClient, Reply, lab_client
from tests.support.lab_consistency import Gone, problems_in
from tests.support.lab_lxc import TEMPLATE, plant_template
from tests.support.lab_qemu import done
from tests.support.lab_requests import MARKER, RequestMaker, Sent
from tests.support.lab_words import NASTY

from pvelab import api as resources
from pvelab.faults.kinds import KINDS
from pvelab.machines.machine import Kind
from pvelab.server import facts
from pvelab.server.control import ControlRoute
from pvelab.server.routing import Endpoint, Table, collect
from pvelab.world.storage.contents import put_stand_in

__all__ = ["Fuzzer", "bound_endpoints", "seeded_lab"]

_ENVELOPE = frozenset(("data", "errors", "message", "total", "changes"))
_STATUSES = frozenset((200, 400, 401, 403, 404, 500, 501, 506, 595))
# What the server below the API answers to what is hardly HTTP.
_PLAIN_STATUSES = frozenset((400, 413, 431, 501))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PCI = "id=8086:0001,iommugroup=1,node=pve1,path=0000:00:02.0"
_THINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/storage", {"storage": "dir1", "type": "dir", "path": "/srv/one", "content": "iso,images,rootdir"}),
    (
        "/storage",
        {
            "storage": "shared",
            "type": "nfs",
            "server": "10.0.0.9",
            "export": "/x",
            "content": "images,rootdir",
        },
    ),
    ("/pools", {"poolid": "one"}),
    ("/pools", {"poolid": "one/two"}),
    ("/access/groups", {"groupid": "admins"}),
    ("/access/roles", {"roleid": "Audit2", "privs": "VM.Audit"}),
    (
        "/access/domains",
        {"realm": "ldap1", "type": "ldap", "server1": "h", "base_dn": "dc=x", "user_attr": "uid"},
    ),
    ("/access/users", {"userid": "ann@pve", "password": MARKER, "groups": "admins"}),
    ("/access/users/ann@pve/token/ci", {"privsep": 0}),
    ("/cluster/firewall/groups", {"group": "good"}),
    ("/cluster/firewall/groups/good", {"type": "in", "action": "DROP"}),
    ("/cluster/firewall/groups/good", {"type": "in", "action": "ACCEPT"}),
    ("/cluster/sdn/zones", {"zone": "zone1", "type": "simple", "ipam": "pve"}),
    ("/cluster/sdn/vnets", {"vnet": "vnet1", "zone": "zone1"}),
    ("/cluster/sdn/vnets/vnet1/subnets", {"subnet": "10.0.0.0/24", "type": "subnet"}),
    ("/cluster/sdn/controllers", {"controller": "evpn1", "type": "evpn", "asn": 65000, "peers": "10.0.0.1"}),
    ("/cluster/mapping/pci", {"id": "one", "map": _PCI}),
    ("/cluster/mapping/usb", {"id": "one", "map": "id=1234:5678,node=pve1"}),
    ("/cluster/metrics/server/one", {"type": "graphite", "server": "10.0.0.1", "port": 2003}),
    ("/cluster/backup", {"id": "one", "storage": "local", "vmid": "100", "schedule": "*/15"}),
)
_CLUSTER_THINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/cluster/ha/resources", {"sid": "vm:101"}),
    ("/cluster/ha/resources", {"sid": "ct:201", "state": "stopped"}),
    (
        "/cluster/ha/rules",
        {"rule": "one", "type": "node-affinity", "resources": "vm:101", "nodes": "pve1:2,pve2"},
    ),
    ("/cluster/replication", {"id": "104-0", "type": "local", "target": "pve2"}),
    ("/cluster/qemu/custom-cpu-models", {"cputype": "one", "reported__model": "Haswell"}),
)
_ORDERS = (
    *("name", "kind", "fault", "path", "method", "node", "status", "reason", "seconds", "times", "nth"),
    *("probability", "seed", "vmid", "storage", "lock", "hold", "advance", "after", "limit", "text"),
)
_NO_OBJECTS = (b"", b"[", b"[]", b"null", b'"x"', b"\xff", b"[" * 5000)
_LAB_DEFECT = "internal error of the lab"


def bound_endpoints() -> list[Endpoint]:
    """Return every method that the lab answers, in the order of the declared API."""
    return [endpoint for endpoint in Table(facts.load(), collect(resources)) if endpoint.route is not None]


@contextlib.asynccontextmanager
async def seeded_lab() -> AsyncIterator[LabClient]:
    """Run a lab with two nodes that has something of everything."""
    # Guests of records: what a sandbox does with made-up programs is another question, and a slower one.
    async with lab_client(nodes=("pve1", "pve2"), guests=Kind.RECORDED) as api:
        for path, params in _THINGS:
            await api.post(path, **params)
        with api.world.store.transaction():
            put_stand_in(api.world, "local:iso/a.iso", "pve1", 2**20)
            put_stand_in(api.world, "local:import/a.qcow2", "pve1", 2**20)
            put_stand_in(api.world, "local:vztmpl/debian-13.tar.zst", "pve1", 2**20)
        plant_template(api)
        await api.put("/access/acl", path="/vms/100", roles="PVEVMUser", users="ann@pve")
        await _plant_guests(api)
        for scope in ("/cluster", "/nodes/pve1/qemu/100", "/nodes/pve1/lxc/200"):
            await api.post(f"{scope}/firewall/aliases", name="web", cidr="10.0.0.1")
            await api.post(f"{scope}/firewall/ipset", name="good")
            await api.post(f"{scope}/firewall/ipset/good", cidr="10.0.0.0/24")
            for _ in range(2):
                await api.post(f"{scope}/firewall/rules", type="in", action="ACCEPT")
        await done(api, await api.put("/cluster/sdn"))
        await _plant_node_things(api)
        await _plant_cluster_things(api)
        yield api


async def _plant_node_things(api: LabClient) -> None:
    """Make what nodes have beside guests: pools of disks, a Ceph cluster, backups, a subscription."""
    node = "/nodes/pve1"
    await done(api, await api.post(f"{node}/disks/zfs", name="tank", devices="/dev/sda", raidlevel="single"))
    await api.post(f"{node}/ceph/init")
    for path in ("ceph/mon/pve1", "ceph/mds/pve1", "ceph/mds/spare"):
        await done(api, await api.post(f"{node}/{path}"))
    root = await api.with_password("root@pam", api.running.password)
    await done(api, await root.post(f"{node}/ceph/osd", dev="/dev/sdc"))
    await done(api, await api.post(f"{node}/ceph/pool", name="pool", add_storages=1, size=1, min_size=1))
    for vmid in (101, 201):
        await done(api, await api.post(f"{node}/vzdump", vmid=vmid, storage="local", compress="zstd"))
    await api.put(f"{node}/subscription", key="pve2c-0123456789")


async def _plant_cluster_things(api: LabClient) -> None:
    """Make what the cluster has beside guests: HA, replication, models."""
    await api.post("/storage", storage="zfs1", type="zfspool", pool="zfs1", content="images,rootdir")
    await done(api, await api.post("/nodes/pve1/qemu", vmid=104, scsi0="zfs1:1"))
    for path, params in _CLUSTER_THINGS:
        await api.post(path, **params)


async def _plant_guests(api: LabClient) -> None:
    qemu, lxc = "/nodes/pve1/qemu", "/nodes/pve1/lxc"
    disk, nic = {"scsi0": "local-lvm:1"}, {"net0": "virtio,bridge=vmbr0"}
    await done(
        api, await api.post(qemu, vmid=100, **disk, **nic, ide2="local-lvm:cloudinit", agent="1", pool="one")
    )
    await done(api, await api.post(qemu, vmid=101, scsi0="local:1,format=qcow2", **nic))
    await done(api, await api.post(qemu, vmid=102, **disk))
    await done(api, await api.post(f"{qemu}/102/template"))
    await done(api, await api.post(f"{qemu}/102/clone", newid=103))
    await done(api, await api.post(f"{qemu}/100/snapshot", snapname="before"))
    await done(api, await api.post(f"{qemu}/100/status/start"))
    root = {"rootfs": "local-lvm:1", "ostemplate": TEMPLATE, "net0": "name=eth0,bridge=vmbr0,ip=dhcp"}
    await done(api, await api.post(lxc, vmid=200, **root, pool="one"))
    await done(api, await api.post(lxc, vmid=201, **root, mp0="local-lvm:1,mp=/data"))
    await done(api, await api.post(f"{lxc}/200/snapshot", snapname="before"))
    await done(api, await api.post(f"{lxc}/200/status/start"))


@dataclass
class Fuzzer:
    """Sends made-up requests to one lab and notes what is wrong with the answers."""

    api: LabClient
    seed: int
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    _defects: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._maker = RequestMaker(self._random, self.api.world)
        self._kept = self._vital()
        self._secrets = self._hidden()
        asyncio.get_running_loop().set_exception_handler(self._note_defect)

    async def run(self, endpoints: list[Endpoint], rounds: int) -> None:
        """Send each method some requests: all methods in another order each time, to the lab as it was."""
        before = self.api.world.store.dump()
        for _ in range(rounds):
            for endpoint in self._random.sample(endpoints, len(endpoints)):
                await self.send(self._maker.make(endpoint.method), endpoint.method.route)
            await self.settle()
            self.api.world.store.replace_all(before)

    async def send(self, sent: Sent, route: str) -> None:
        """Send one request, judge the answer and put right what would end the run."""
        client = self._caller()
        try:
            reply = await asyncio.wait_for(
                client.raw(sent.method, sent.path, base=sent.base, data=sent.body, headers=sent.headers), 30
            )
        except Exception as err:
            self.failures.append(f"{route}: {type(err).__name__} {err} for {sent}")
            return
        self.statuses[reply.status] += 1
        wrong = [*self._wrong(reply, sent), *self._defects]
        self._defects.clear()
        self.failures += [f"{route}: {problem}\n    {sent}" for problem in wrong]
        self._restore()

    async def steer(self, route: ControlRoute) -> None:
        """Send one of the lab's own routes an order that nobody would give."""
        nasty = [*NASTY, 1, -1, 1.5, None, True, [], {}, [1], {"a": 1}, 10**18, *KINDS]
        body = {
            self._random.choice(_ORDERS): self._random.choice(nasty) for _ in range(self._random.randrange(5))
        }
        if "faults" in route.parts:
            body["kind"] = self._random.choice((*KINDS, "nothing"))
        sent = json.dumps(body).encode() if self._random.random() < 0.9 else self._random.choice(_NO_OBJECTS)
        parts = [str(self._random.choice(NASTY)) if part.startswith("{") else part for part in route.parts]
        path = "/".join(urllib.parse.quote(part, safe="", errors="replace") for part in ("", *parts))
        reply = await asyncio.wait_for(self.api.raw(route.verb, path, base="/_lab", data=sent), 30)
        self.statuses[reply.status] += 1
        if self._defects or (reply.status >= 400 and "error" not in json.loads(reply.body)):
            self.failures.append(f"{route.verb} {path} {sent!r}: {reply.status} {self._defects}")
        self._defects.clear()

    async def settle(self) -> None:
        """Wait for the tasks that still run, and look for broken rules."""
        world = self.api.world
        for upid in list(world.store.items("tasks")):
            if world.tasks.is_running(upid):
                world.clock.advance(3600)
                await asyncio.wait_for(world.tasks.wait(upid), 30)
        gone = self._read_journal()
        if MARKER in str([entry.parameters for entry in world.journal.entries()]):
            self.failures.append("the journal shows a password")
        world.journal.clear()
        self.failures += [*self._defects, *problems_in(world, gone)]
        self._defects.clear()

    # --- What must hold of an answer

    def _wrong(self, reply: Reply, sent: Sent) -> list[str]:
        text = reply.body.decode("utf-8", "replace")
        found = [f"answer shows {name}" for name, secret in self._secrets.items() if secret in text]
        if "Traceback" in text or 'File "' in text:
            found.append(f"answer has a traceback: {text[:300]}")
        if _LAB_DEFECT in text or _LAB_DEFECT in reply.reason:
            found.append(f"{reply.status} {reply.reason}")
        if _CONTROL.search(reply.reason) or "X-Injected" in reply.headers:
            found.append(f"reason is not one line: {reply.reason!r}")
        return found + _wrong_form(reply, text, sent)

    def _hidden(self) -> dict[str, str]:
        """Return what nobody may be told, by name."""
        store, running = self.api.world.store, self.api.running
        return {
            "a password": MARKER,
            "the password of root": running.password,
            "the token of root": running.api_token.rpartition("=")[2],
            "the key of tickets": (store.get("secrets", "authkey") or {})["hex"],
            "a hashed password": (store.get("shadow", "root@pam") or {})["hash"].rpartition("$")[2],
        }

    def _note_defect(self, _loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        err = context.get("exception")
        where = "".join(traceback.format_exception(err)) if err is not None else ""
        self._defects.append(f"{context['message']}\n{where}")

    # --- Keeping the lab usable

    def _caller(self) -> LabClient:
        kind = self._random.choices(("ticket", "token", "user", "nobody"), (60, 20, 15, 5))[0]
        tickets = self.api.world.tickets
        if kind == "nobody":
            return self.api.with_headers({})
        if kind == "token":
            return self.api
        userid = "root@pam" if kind == "ticket" else "ann@pve"
        cookie, token = f"PVEAuthCookie={tickets.issue(userid)}", tickets.csrf_token(userid)
        return self.api.with_headers({"Cookie": cookie, "CSRFPreventionToken": token})

    def _vital(self) -> dict[tuple[str, str], Any]:
        """Return the documents without which nothing else can be tried."""
        store = self.api.world.store
        keys = [("users", "root@pam"), ("users", "ann@pve"), ("token_secrets", "root@pam!lab")]
        keys += [(name, key) for name in ("nodes", "storages") for key in store.items(name)]
        return {key: store.get(*key) for key in keys}

    def _restore(self) -> None:
        store = self.api.world.store
        changed = {key: document for key, document in self._kept.items() if store.get(*key) != document}
        if changed:
            with store.transaction():
                for key, document in changed.items():
                    store.put(*key, document)

    def _read_journal(self) -> Gone:
        """Return what clients did that Proxmox lets go astray."""
        volumes, members, locked = set(), set(), set()
        for entry in self.api.world.journal.entries():
            guest = re.match(r"/nodes/[^/]+/(?:qemu|lxc)/(\d+)/", entry.path)
            if entry.status >= 400:
                continue
            if entry.method == "DELETE" and "/content/" in entry.path:
                volumes.add(entry.path.partition("/content/")[2])
            if entry.path.startswith("/pools") and entry.method == "PUT":
                members |= {int(vmid) for vmid in re.findall(r"\d+", str(entry.parameters.get("vms", "")))}
            if guest and "lock" in entry.parameters:
                locked.add(int(guest[1]))
        return Gone(volumes=volumes, members=members, locked=locked, shared=True)


def _wrong_form(reply: Reply, text: str, sent: Sent) -> list[str]:
    """Say what about an answer is not as Proxmox makes them."""
    kind = reply.headers.get("Content-Type", "")
    if not reply.body:
        return [] if reply.status in (401, 595) else [f"{reply.status} has no body"]
    if kind.startswith("text/plain"):
        return [] if reply.status in _PLAIN_STATUSES else [f"{reply.status} {reply.reason} is plain text"]
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return [f"{reply.status} is not JSON: {text[:200]}"]
    if sent.base == "/api2/extjs":
        return [] if reply.status == 200 and document["success"] in (0, 1) else [f"extjs said {reply.status}"]
    return [*_wrong_envelope(reply, document)]


def _wrong_envelope(reply: Reply, document: Any) -> list[str]:
    found = []
    if not isinstance(document, dict) or not {"data"} <= set(document) <= _ENVELOPE:
        return [f"envelope is {str(document)[:200]}"]
    if reply.status not in _STATUSES:
        found.append(f"status is {reply.status}")
    if reply.status == 200:
        return [
            *found,
            *(["a success has a message"] if "message" in document or "errors" in document else []),
        ]
    message, errors = document.get("message"), document.get("errors", {})
    if document["data"] is not None or not isinstance(message, str) or not message.endswith("\n"):
        found.append(f"refusal is {str(document)[:200]}")
    elif not reply.reason and message.strip():
        found.append(f"reason is empty for {message!r}")
    if not isinstance(errors, dict) or not all(isinstance(one, str) for one in errors.values()):
        found.append(f"errors are {errors}")
    return found
