"""Recorded calls of the Proxmox VE API, made again to a lab whose time stands still.

A file `fixtures/lab/NAME.calls` begins with `# seed: NAME`, followed by `, by password` where a token is not
enough. Each line is a call: the method, the path and the parameters as a shell would read them. `{upid}` is
the last task, and tasks are waited for. `PASS 30` lets half a minute of the lab's time pass.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import unittest.mock
import urllib.parse
from typing import Any

from tests.compatibility.golden import FIXTURES
from tests.compatibility.normalising import Names, normalised
from tests.support.lab import LabClient, Reply, lab_client

from stackyard import lab

__all__ = ["CALLS", "answers"]

CALLS = {path.stem: path for path in sorted((FIXTURES / "lab").glob("*.calls"))}
# 2040-01-01: later than any day on which this runs, and time only goes forward.
NOW = 2_208_988_800
# What is random or belongs to this process, by the name of its field.
FIELDS = {
    "ticket": "ticket",
    "CSRFPreventionToken": "token",
    "notafter": "time",
    "notbefore": "time",
    "pem": "certificate",
    "pstart": "start",
    "uid": "id",
}


async def answers(name: str) -> list[dict[str, Any]]:
    """Make the calls of a file; return each with its answer."""
    first, *lines = CALLS[name].read_text().splitlines()
    seed, _, login = first.removeprefix("# seed: ").partition(", ")
    async with lab_client(seed=_seed(seed), guests=lab.Kind.RECORDED) as api:
        await _begin(api)
        running = api.running
        if login:
            api = await api.with_password(running.username, running.password)
        names = Names(
            {
                running.url: "URL",
                f":{running.port}": ":PORT",
                running.password: "PASSWORD",
                running.fingerprint: "FINGERPRINT",
                running.api_token.rpartition("=")[2]: "TOKEN",
            }
        )
        made, upid = [], ""
        for line in lines:
            if line.startswith("PASS "):
                await api.pass_time(int(line.removeprefix("PASS ")))
            elif line and not line.startswith("#"):
                answer = await _answer(api, line.replace("{upid}", upid))
                upid = _task(answer) or upid
                made.append({"call": line, **normalised(answer, names, FIELDS)})
        return made


def _seed(name: str) -> lab.Seed:
    """Return a seed of the lab, or one that is kept beside the calls."""
    return lab.load_seed(str(FIXTURES / "lab" / name) if name.endswith(".yaml") else name)


async def _begin(api: LabClient) -> None:
    """Let the lab begin again at a fixed time, which then stands still."""
    clock = await _control(api, "/clock", {"held": True})
    await _control(api, "/clock", {"advance": NOW - clock["time"]})
    # A lab that begins again lets time run; here it stands still from the first moment on.
    with unittest.mock.patch.object(api.world.clock, "release"):
        await _control(api, "/reset", {})


async def _control(api: LabClient, path: str, body: dict[str, Any]) -> Any:
    reply = await api.raw("POST", path, base="/_lab", json=body)
    assert reply.status == 200, reply.body
    return reply.json


async def _answer(api: LabClient, line: str) -> dict[str, Any]:
    method, path, *words = shlex.split(line)
    pairs = [word.partition("=") for word in words]
    encoded = urllib.parse.urlencode([(name, value) for name, _, value in pairs])
    if method in ("GET", "DELETE"):
        reply = await api.raw(method, f"{path}?{encoded}" if encoded else path)
    else:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        reply = await api.raw(method, path, data=encoded.encode(), headers=form if encoded else {})
    answer = {"status": reply.status, **_body(reply)}
    upid = _task(answer)
    if upid:
        answer["task"] = await _ended(api, upid)
    return answer


def _body(reply: Reply) -> dict[str, Any]:
    try:
        document = json.loads(reply.body) if reply.body else {}
    except ValueError:
        return {"text": reply.body.decode(errors="replace")}
    refused = {} if reply.status < 400 else {"reason": reply.reason}
    return {**refused, **document}


def _task(answer: dict[str, Any]) -> str:
    data = answer.get("data")
    return data if isinstance(data, str) and data.startswith("UPID:") else ""


async def _ended(api: LabClient, upid: str) -> dict[str, Any]:
    """Wait for the end of a task; return how it ended and what it wrote."""
    place = f"/nodes/{upid.split(':')[1]}/tasks/{upid}"
    while (status := (await api.get(f"{place}/status"))["status"]) != "stopped":
        assert status == "running"
        await asyncio.sleep(0.005)
    ended = await api.get(f"{place}/status")
    log = await api.get(f"{place}/log", limit=200)
    return {"exitstatus": ended["exitstatus"], "log": [line["t"] for line in log]}
