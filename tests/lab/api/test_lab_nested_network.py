"""How nested nodes and their guests are reached: from outside, through jump hosts, and from inside guests."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncssh
import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.lab_nested import PASSWORD, make_node, nested_node, sessions
from tests.support.lab_ssh import OWN, said, ssh_to

from pvelab.machines.bubblewrap import find_bubblewrap
from pvelab.machines.machine import Execution, Kind
from pvelab.ssh.shell.streams import BytesSource, CaptureSink, Streams

_STATIC = "ip=10.0.12.{}/24,gw=10.0.12.1"


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


async def _run(api: LabClient, vmid: int, line: str) -> Said:
    """Run a command line in a guest, as root."""
    guest = api.world.guests.get(vmid)
    assert guest is not None
    machine = await api.world.machines.of(guest)
    out, err = CaptureSink(), CaptureSink()
    status = await machine.run(Execution(line=line), Streams(stdin=BytesSource(b""), stdout=out, stderr=err))
    return Said(status, out.data.decode(), err.data.decode())


def _ask(url: str) -> str:
    """Return a command that prints the HTTP status of an address."""
    code = (
        "import ssl,sys,urllib.request as r,urllib.error as e\n"
        "try: print(r.urlopen(sys.argv[1],context=ssl._create_unverified_context(),timeout=20).status)\n"
        "except e.HTTPError as x: print(x.code)\n"
        "except Exception as x: print(x)\n"
    )
    return f"/usr/bin/python3 -c '{code}' {url}"


def _address(api: LabClient) -> str:
    """Return the address of the first node of a lab."""
    return str(next(iter(api.world.cluster.nodes().values()))["ip"])


@contextlib.asynccontextmanager
async def _sandboxed(**options: object) -> AsyncIterator[LabClient]:
    found = await find_bubblewrap()
    if isinstance(found, str):
        pytest.skip(found)
    async with lab_client(guests=Kind.SANDBOX, ssh_port=0, **options) as api:
        yield api


async def test_a_node_is_reached_at_its_own_address_through_the_nodes_around_it() -> None:
    async with lab_client(guests=Kind.RECORDED, ssh_port=0) as api, sessions() as session:
        inner = await nested_node(api, 100, session, ipconfig0=_STATIC.format(5))
        deeper = await nested_node(inner, 100, session)
        login = {**OWN, "username": "root", "password": PASSWORD}
        async with (
            ssh_to(api) as outermost,
            asyncssh.connect("10.0.12.5", tunnel=outermost, **login) as first,
            asyncssh.connect(_address(deeper), tunnel=first, **login) as second,
        ):
            assert (await said(second, "hostname"))[1] == "inner100\n"
            assert (await said(second, "qm list"))[0] == 0
            listener = await outermost.forward_local_port("127.0.0.1", 0, _address(deeper), 8006)
            where = f"https://127.0.0.1:{listener.get_port()}/api2/json/version"
            headers = {"Authorization": f"PVEAPIToken={deeper.running.api_token}"}
            async with session.get(where, headers=headers) as answer:
                assert answer.status == 200


async def test_an_address_that_nobody_has_and_a_port_that_nobody_listens_on_are_told_apart() -> None:
    async with lab_client(guests=Kind.RECORDED, ssh_port=0) as api, sessions() as session:
        await nested_node(api, 100, session, ipconfig0=_STATIC.format(5))
        async with ssh_to(api) as jump:
            with pytest.raises(asyncssh.ChannelOpenError, match="No route to host"):
                await jump.open_connection("10.0.12.77", 22)
            with pytest.raises(asyncssh.ChannelOpenError, match="Connection refused"):
                await jump.open_connection("10.0.12.5", 81)


async def test_programs_in_guests_reach_apis_of_nodes_of_every_depth() -> None:
    async with _sandboxed() as api, sessions() as session:
        inner = await nested_node(api, 100, session, ipconfig0=_STATIC.format(5))
        await make_node(api, 101, scsi0="local-lvm:1", name="plain", ipconfig0=_STATIC.format(6))
        deeper = await nested_node(inner, 100, session)
        deepest = await nested_node(deeper, 100, session)
        refused = "401\n"
        for vmid, client in ((100, inner), (101, inner), (101, api), (100, deepest)):
            url = f"https://{_address(client)}:8006/api2/json/version"
            assert (await _run(api, vmid, _ask(url))).out == refused, (vmid, url)
        outwards = await _run(deeper, 100, _ask("https://10.0.12.5:8006/api2/json/version"))
        assert outwards.out == refused
        own = await _run(deeper, 100, _ask("https://127.0.0.1:8006/api2/json/version"))
        assert own.out == refused


async def test_what_listens_in_a_guest_is_reached_by_others_under_its_address() -> None:
    async with _sandboxed() as api:
        for vmid in (100, 101):
            disk, address = f"local-lvm:{vmid - 99}", _STATIC.format(vmid - 95)
            await make_node(api, vmid, scsi0=disk, name=f"plain{vmid}", ipconfig0=address)
        serving = (
            "import http.server as h,os\n"
            's=h.HTTPServer(("",44443),h.SimpleHTTPRequestHandler)\n'
            "os.fork() and os._exit(0); s.serve_forever()"
        )
        started = await _run(api, 100, f"/usr/bin/python3 -c '{serving}' >/dev/null 2>&1 </dev/null")
        assert started.status == 0, started
        assert (await _run(api, 101, _ask("http://10.0.12.5:44443/"))).out == "200\n"
        assert "refused" in (await _run(api, 101, _ask("http://10.0.12.5:5000/"))).out


async def test_guests_reach_only_those_ports_of_this_machine_that_are_exposed() -> None:
    hello = b"HTTP/1.0 204 No Content\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(hello)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        async with _sandboxed(expose=(port,)) as api:
            await make_node(api, 101, scsi0="local-lvm:1", name="plain", ipconfig0=_STATIC.format(6))
            assert (await _run(api, 101, _ask(f"http://10.0.12.1:{port}/"))).out == "204\n"
        async with _sandboxed() as api:
            await make_node(api, 101, scsi0="local-lvm:1", name="plain", ipconfig0=_STATIC.format(6))
            assert "refused" in (await _run(api, 101, _ask(f"http://10.0.12.1:{port}/"))).out


async def test_a_guest_without_a_gateway_reaches_its_own_network_only() -> None:
    async with _sandboxed() as api:
        await api.post("/nodes/pve1/network", iface="vmbr1", type="bridge", autostart=1)
        await api.done(await api.put("/nodes/pve1/network"))
        plain = "local-lvm:1"
        await make_node(
            api, 100, name="alone", net0="virtio,bridge=vmbr1", ipconfig0="ip=10.9.0.5/24", scsi0=plain
        )
        await make_node(
            api, 101, name="near", net0="virtio,bridge=vmbr1", ipconfig0="ip=10.9.0.6/24", scsi0=plain
        )
        await make_node(api, 102, name="other", ipconfig0="ip=10.9.0.7/24", scsi0=plain)
        probe = "timeout 20 bash -c '</dev/tcp/{}/22' && echo open"
        assert (await _run(api, 100, probe.format("10.9.0.6"))).out == "open\n"
        other = await _run(api, 100, probe.format("10.9.0.7"))
        assert (other.out, "No route to host" in other.err) == ("", True)


async def test_the_shell_of_a_nested_node_has_its_commands_and_its_storage() -> None:
    async with _sandboxed() as api, sessions() as session:
        inner = await nested_node(api, 100, session)
        made = await _run(api, 100, "qm create 700 --memory 512 && pvesh get /nodes --output-format json")
        assert made.status == 0, made
        assert '"node":"inner100"' in made.out
        assert [vm["vmid"] for vm in await inner.get("/nodes/inner100/qemu")] == [700]
        snippet = "/var/lib/vz/snippets/user.yaml"
        written = await _run(api, 100, f"mkdir -p /var/lib/vz/snippets && echo '#cloud-config' > {snippet}")
        assert written.status == 0, written
        content = "/nodes/inner100/storage/local/content"
        assert [one["volid"] for one in await inner.get(content)] == ["local:snippets/user.yaml"]
        assert (await _run(api, 100, f"rm {snippet}; ln -s /etc/shadow {snippet}")).status == 0
        assert await inner.get(content) == []
        assert (await _run(api, 100, "su nobody -s /bin/sh -c 'qm list'")).status != 0
        # Scripts and rules of sudo name them by their whole paths; what the machine has is there too.
        whole = await _run(
            api, 100, "/usr/sbin/qm list && /usr/sbin/pvesm path local:iso/x.img && useradd me"
        )
        assert (whole.status, whole.out.splitlines()[-1]) == (0, "/var/lib/vz/template/iso/x.img"), whole


async def test_the_api_of_a_nested_node_has_a_port_of_this_machine() -> None:
    async with lab_client(guests=Kind.RECORDED, ssh_port=0) as api, sessions() as session:
        inner = await nested_node(api, 100, session)
        listed = await api.raw("GET", "/guests", base="/_lab")
        [guest] = listed.json["guests"]
        where = f"https://{guest['host']}:{guest['ports']['8006']}/api2/json/version"
        headers = {"Authorization": f"PVEAPIToken={inner.running.api_token}"}
        async with session.get(where, headers=headers, timeout=aiohttp.ClientTimeout(60)) as answer:
            assert answer.status == 200


_OPERATE = """
set -e
mkdir -p /root/.ssh
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
quote='import sys, urllib.parse as u; print(u.quote(sys.stdin.read().strip(), safe=""))'
keys=$(/usr/bin/python3 -c "$quote" < /root/.ssh/id_ed25519.pub)
pvesh create /nodes/inner100/qemu --vmid 300 --name leaf --memory 512 --ide2 local-lvm:cloudinit \\
    --net0 virtio,bridge=vmbr0 --ipconfig0 ip=10.0.12.30/24,gw=10.0.12.1 --ciuser ops --sshkeys "$keys" >&2
qm start 300 >&2
trust='-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
ssh $trust ops@10.0.12.30 'hostname; id -un'
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ("ssh", "scp", "ssh-keygen"))), reason="OpenSSH is not installed"
)
async def test_an_operator_sends_files_to_a_nested_node_and_works_there_with_its_guests(
    tmp_path: Path,
) -> None:
    key = tmp_path / "key"
    await _program("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    public = urllib.parse.quote(key.with_suffix(".pub").read_text().strip(), safe="")
    archive = tmp_path / "archive.bin"
    archive.write_bytes(os.urandom(2**20) * 8)
    (tmp_path / "operate.sh").write_text(_OPERATE)
    async with _sandboxed() as api, sessions() as session:
        inner = await nested_node(api, 100, session, ipconfig0=_STATIC.format(5), sshkeys=public)
        [guest] = (await api.raw("GET", "/guests", base="/_lab")).json["guests"]
        options = ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={tmp_path}/known"]
        options += ["-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes", "-i", str(key), "-F", "none"]
        files = [str(archive), str(tmp_path / "operate.sh")]
        await _program("scp", *options, "-P", str(guest["port"]), *files, "root@127.0.0.1:/root/")
        login = ["ssh", *options, "-p", str(guest["port"]), "root@127.0.0.1"]
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        assert (await _program(*login, "sha256sum /root/archive.bin")).split()[0] == digest
        assert await _program(*login, "sh /root/operate.sh") == "leaf\nops\n"
        assert [vm["name"] for vm in await inner.get("/nodes/inner100/qemu")] == ["leaf"]


async def _program(*argv: str) -> str:
    """Run a program of this machine beside the lab, and return what it prints."""
    started = await asyncio.create_subprocess_exec(
        *argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(started.communicate(), 100)
    assert started.returncode == 0, (argv, out, err)
    return out.decode()
