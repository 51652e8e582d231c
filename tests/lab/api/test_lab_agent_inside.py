"""The guest agent inside VMs of the lab: programs, files and passwords, by way of the guest's machine."""

from __future__ import annotations

import asyncio
import base64
import shutil
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, done, make, with_lab

from pvelab.machines.machine import Kind

AGENT = f"{Q}/100/agent"


async def boot(api: LabClient, **params: Any) -> None:
    """Start a VM whose agent answers at once."""
    await make(api, agent="1", name="web", **params)
    await done(api, await api.post(f"{Q}/100/status/start"))


async def run(api: LabClient, *command: str, **params: Any) -> dict[str, Any]:
    """Run a program to its end and return what the agent says of it."""
    pid = (await api.post(f"{AGENT}/exec", command=list(command), **params))["pid"]
    while True:
        status = await api.get(f"{AGENT}/exec-status", pid=pid)
        if status["exited"]:
            return dict(status)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("method", "path", "params"),
    [
        ("POST", "exec", {"command": "true"}),
        ("GET", "exec-status", {"pid": 1}),
        ("GET", "file-read", {"file": "/etc/hostname"}),
        ("POST", "file-write", {"file": "/x", "content": "x"}),
        ("POST", "set-user-password", {"username": "root", "password": "secret-word"}),
        ("POST", "suspend-ram", {}),
    ],
)
async def test_agent_that_cannot_answer_says_why(method: str, path: str, params: dict[str, Any]) -> None:
    async with with_lab(guests=Kind.RECORDED) as api:
        await make(api)
        with pytest.raises(Refused, match="500 No QEMU guest agent configured"):
            await api.call(method, f"{AGENT}/{path}", params)
        await api.put(f"{Q}/100/config", agent="1")
        with pytest.raises(Refused, match="500 VM 100 is not running"):
            await api.call(method, f"{AGENT}/{path}", params)


async def test_program_runs_and_its_end_is_told_once() -> None:
    async with with_lab(guests=Kind.RECORDED) as api:
        await boot(api)
        ended = await run(api, "echo", "hello")
        assert ended["exitcode"] == 0
        assert ended["out-data"] == "hello\n"
        missing = await run(api, "no-such-program")
        assert missing["exitcode"] == 127
        with pytest.raises(Refused, match="Agent error: PID 700 does not exist"):
            await api.get(f"{AGENT}/exec-status", pid=700)


async def test_files_of_records_are_read_and_not_written() -> None:
    async with with_lab(guests=Kind.RECORDED) as api:
        await boot(api)
        whole = await api.get(f"{AGENT}/file-read", file="/etc/os-release")
        assert "Debian" in whole["content"]
        part = await api.get(f"{AGENT}/file-read", file="/etc/os-release", count=4, offset=2, decode=0)
        assert base64.b64decode(part["content"]).decode() == whole["content"][2:6]
        assert (part["truncated"], part["bytes-read"]) == (1, 4)
        with pytest.raises(Refused, match=r"failed to open file '/none' \(mode: 'r'\): No such file"):
            await api.get(f"{AGENT}/file-read", file="/none")
        with pytest.raises(Refused, match="Read-only file system"):
            await api.post(f"{AGENT}/file-write", file="/x", content="x")
        with pytest.raises(Refused, match="Invalid parameter 'buf-b64'"):
            await api.post(f"{AGENT}/file-write", file="/x", content="%%%", encode=0)


async def test_sleeping_is_refused_and_commands_are_listed() -> None:
    async with with_lab(guests=Kind.RECORDED) as api:
        await boot(api)
        for path, params in ((f"{AGENT}/suspend-disk", {}), (AGENT, {"command": "suspend-ram"})):
            with pytest.raises(Refused, match="the requested suspend mode is not supported by the guest"):
                await api.post(path, **params)
        listed = {row["name"] for row in await api.get(AGENT)}
        assert {"exec", "exec-status", "file-read", "file-write", "set-user-password", "ping"} <= listed
        info = await api.get(f"{AGENT}/info")
        known = {command["name"] for command in info["result"]["supported_commands"]}
        assert {"guest-exec", "guest-file-open", "guest-ping"} <= known


async def test_running_programs_in_guests_needs_its_own_privilege() -> None:
    async with with_lab(guests=Kind.RECORDED) as api:
        await boot(api)
        await api.post("/access/users", userid="ann@pve", password="secret-word")
        await api.put("/access/acl", path="/vms/100", users="ann@pve", roles="PVEAuditor")
        ann = await api.with_password("ann@pve", "secret-word")
        with pytest.raises(Refused, match=r"403 .*VM\.GuestAgent\.Unrestricted"):
            await ann.post(f"{AGENT}/exec", command="true")
        with pytest.raises(Refused, match=r"403 .*VM\.GuestAgent\.FileRead"):
            await ann.get(f"{AGENT}/file-read", file="/etc/hostname")


async def test_sandboxed_guest_really_runs_programs_and_keeps_files() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")

    async with with_lab() as api:
        await boot(api)
        if await api.world.machines.kind() is not Kind.SANDBOX:
            pytest.skip("bubblewrap does not work here")
        await api.post(f"{AGENT}/file-write", file="/root/note", content="written\n")
        assert (await api.get(f"{AGENT}/file-read", file="/root/note"))["content"] == "written\n"
        assert (await run(api, "cat", "/root/note"))["out-data"] == "written\n"
        given = await run(api, "sh", "-c", "cat; exit 3", input__data="fed")
        assert (given["exitcode"], given["out-data"]) == (3, "fed")
        await api.post(f"{AGENT}/set-user-password", username="root", password="another-word")
        assert (await run(api, "grep", "-c", "^root:[$]", "/etc/shadow"))["out-data"] == "1\n"
