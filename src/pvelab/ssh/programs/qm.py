"""`qm`: virtual machines."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError, bad_parameter
from pvelab.ssh.disk_import import import_disk
from pvelab.ssh.programs.cli.model import BOOLEAN, INTEGER, STRING, WORDS, Alias, Command, Tree, optional
from pvelab.ssh.programs.cli.output import pretty_json
from pvelab.ssh.programs.cli.run import Tool
from pvelab.ssh.programs.guest_shared import (
    VMID,
    encode_text,
    make_refusal,
    print_pending,
    rescan_command,
    shared_verbs,
    unlock_command,
)
from pvelab.ssh.programs.inputs import file_content, password_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.programs.cli.model import CommandCall, PrintedAnswer

__all__ = ["QM"]

_BASE = "/nodes/{node}/qemu"
_GUEST = f"{_BASE}/{{vmid}}"
_MIB, _GIB = 2**20, 2**30
_EXEC_TIMEOUT_S = 30
_MOST_INPUT = 2**20
_CONSOLE = "there is no screen or serial line behind its guests"


async def _print_list(shown: PrintedAnswer) -> None:
    if not shown.data:
        return
    heads = ("VMID", "NAME", "STATUS", "MEM(MB)", "BOOTDISK(GB)", "PID")
    await shown.streams.say("{:>10} {:<20} {:<10} {:<10} {:>12} {:<10}".format(*heads))
    for row in sorted(shown.data, key=lambda row: int(row["vmid"])):
        state = row.get("qmpstatus") or row["status"]
        memory = f"{(row.get('maxmem') or 0) / _MIB:g}"
        disk = f"{(row.get('maxdisk') or 0) / _GIB:.2f}"
        pid = row.get("pid") or 0
        await shown.streams.say(
            f"{row['vmid']:>10} {row['name']:<20} {state:<10} {memory:<10} {disk:>12} {pid:<10}"
        )


async def _print_config(shown: PrintedAnswer) -> None:
    for key in sorted(shown.data):
        if key != "digest":
            value = shown.data[key]
            await shown.streams.say(f"{key}: {encode_text(value) if key == 'description' else value}")


async def _print_agent_answer(shown: PrintedAnswer) -> None:
    data = shown.data
    await _print_result(shown, data.get("result", data) if isinstance(data, dict) else data)


async def _print_result(shown: PrintedAnswer | CommandCall, result: Any) -> None:
    if result is None or result == {} or (isinstance(result, str) and not result.strip()):
        return
    text = pretty_json(result) if isinstance(result, dict | list) else str(result)
    await shown.streams.say(text.removesuffix("\n"))


async def _print_text(shown: PrintedAnswer) -> None:
    await shown.streams.say(str(shown.data))


async def _status(asked: CommandCall) -> int:
    status = await asked.session.call("GET", f"/nodes/{asked.session.node}/qemu/{asked.vmid}/status/current")
    if not asked.parameters.get("verbose"):
        await asked.streams.say(f"status: {status.get('qmpstatus') or 'unknown'}")
        return 0
    for key in sorted(status):
        if key not in ("cpu", "relcpu"):
            for line in _format_tree("", status[key], key):
                await asked.streams.say(line)
    return 0


def _format_tree(prefix: str, value: Any, key: str | None) -> list[str]:
    """Return a value with all that is inside it, one line each, deeper ones further to the right."""
    if isinstance(value, dict | list):
        lines = [] if key is None else [f"{prefix}{key}:"]
        inner = sorted(value.items()) if isinstance(value, dict) else [(None, entry) for entry in value]
        return lines + [line for name, entry in inner for line in _format_tree(f"\t{prefix}", entry, name)]
    return [f"{prefix}{value}" if key is None else f"{prefix}{key}: {value}"]


async def _wait(asked: CommandCall) -> int:
    world, vmid = asked.session.world, asked.vmid
    guest = world.guests.require("qemu", asked.session.node, vmid)
    if guest["status"] != "running":
        return 0
    await asked.streams.say(f"waiting until VM {vmid} stops (PID {guest['run'].get('pid', 0)})")
    limit = asked.parameters.get("timeout")
    waited = 0
    while (limit is None or waited < int(limit)) and _is_running(asked):
        waited += 1
        await world.clock.sleep(1)
    if _is_running(asked):
        raise PveError("wait failed - got timeout")
    return 0


def _is_running(asked: CommandCall) -> bool:
    guest = asked.session.world.guests.get(asked.vmid)
    return guest is not None and guest["status"] == "running"


async def _import(asked: CommandCall) -> int:
    given, session = asked.parameters, asked.session
    await asked.streams.say(f"importing disk '{given['source']}' to VM {asked.vmid} ...")
    key, volid = await import_disk(
        session, asked.vmid, str(given["source"]), str(given["storage"]), given.get("format")
    )
    target = str(given.get("target-disk") or "")
    if target and not target.startswith("unused"):
        path = f"/nodes/{session.node}/qemu/{asked.vmid}/config"
        await session.call("PUT", path, {target: volid})
        key, volid = target, (await session.call("GET", path))[target]
    await asked.streams.say(f"{key}: successfully imported disk '{volid}'")
    return 0


async def _settings(asked: CommandCall) -> Mapping[str, Any]:
    """Read the keys that `--sshkeys` names as a file, and a password that is not on the command line."""
    given = dict(asked.parameters)
    if "sshkeys" in given:
        given["sshkeys"] = urllib.parse.quote(await file_content(asked, str(given["sshkeys"])), safe="")
    if given.get("cipassword") == "":
        given["cipassword"] = await password_from(asked)
    return given


async def _set(asked: CommandCall) -> int:
    given = dict(await _settings(asked))
    sent = {key: value for key, value in given.items() if key not in ("vmid", "node")}
    await asked.session.call("PUT", f"/nodes/{asked.session.node}/qemu/{given['vmid']}/config", sent)
    told = {
        key: "<hidden>" if key == "cipassword" else value for key, value in sent.items() if key != "digest"
    }
    words = " ".join(f"-{key} {told[key]}" for key in sorted(told))
    await asked.streams.say(f"update VM {given['vmid']}: {words}")
    return 0


async def _guest_exec(asked: CommandCall) -> int:
    given, session = asked.parameters, asked.session
    is_waiting = int(given.get("synchronous", 1))
    if "timeout" in given and not is_waiting:
        raise bad_parameter("synchronous", "needs to be set for 'timeout'")
    base = f"/nodes/{session.node}/qemu/{asked.vmid}/agent"
    sent: dict[str, Any] = {"command": list(given.get("extra-args") or ())}
    if given.get("pass-stdin"):
        data = await asked.streams.read_all()
        if len(data) > _MOST_INPUT:
            raise PveError("'input-data' (STDIN) is limited to 1 MiB, aborting")
        sent["input-data"] = data.decode("utf-8", "replace")
    answer = await session.call("POST", f"{base}/exec", sent)
    if is_waiting:
        answer = await _wait_for_exit(asked, base, answer)
    await _print_result(asked, answer)
    return 0


async def _wait_for_exit(asked: CommandCall, base: str, started: Mapping[str, Any]) -> Any:
    limit = int(asked.parameters.get("timeout", _EXEC_TIMEOUT_S))
    waited = 0
    while limit == 0 or waited < limit:
        answer = await asked.session.call("GET", f"{base}/exec-status", {"pid": started["pid"]})
        if answer.get("exited"):
            return answer
        waited += 1
        await asked.session.world.clock.sleep(1)
    await asked.streams.complain("timeout reached, returning pid")
    return started


async def _new_password(asked: CommandCall) -> Mapping[str, Any]:
    given = dict(asked.parameters)
    return {**given, "password": given.get("password") or await password_from(asked)}


_DISK: Tree = {
    "import": Command(
        own=_import,
        arguments=("vmid", "source", "storage"),
        parameters={
            "vmid": VMID,
            "source": STRING,
            "storage": STRING,
            "format": optional(STRING),
            "target-disk": optional(STRING),
        },
    ),
    "move": Command(
        route=f"POST {_GUEST}/move_disk", arguments=("vmid", "disk", "storage"), follows_task=True
    ),
    "rescan": rescan_command("qemu"),
    "resize": Command(route=f"PUT {_GUEST}/resize", arguments=("vmid", "disk", "size")),
    "unlink": Command(route=f"PUT {_GUEST}/unlink", arguments=("vmid",)),
}

_INSIDE: Tree = {
    "cmd": Command(route=f"POST {_GUEST}/agent", arguments=("vmid", "command"), show=_print_agent_answer),
    "exec": Command(
        own=_guest_exec,
        arguments=("vmid", "extra-args"),
        parameters={
            "vmid": VMID,
            "extra-args": WORDS,
            "synchronous": BOOLEAN,
            "timeout": optional(INTEGER),
            "pass-stdin": BOOLEAN,
        },
    ),
    "exec-status": Command(
        route=f"GET {_GUEST}/agent/exec-status", arguments=("vmid", "pid"), show=_print_agent_answer
    ),
    "passwd": Command(
        route=f"POST {_GUEST}/agent/set-user-password",
        arguments=("vmid", "username"),
        parameters={"password": optional(STRING)},
        adapt=_new_password,
    ),
}

_TREE: Tree = {
    **shared_verbs("qemu"),
    "agent": Alias("guest cmd"),
    "cleanup": make_refusal("there is no QEMU process to clean up after"),
    "cloudinit": {
        "dump": Command(route=f"GET {_GUEST}/cloudinit/dump", arguments=("vmid", "type"), show=_print_text),
        "pending": Command(route=f"GET {_GUEST}/cloudinit", arguments=("vmid",), show=print_pending),
        "update": Command(route=f"PUT {_GUEST}/cloudinit", arguments=("vmid",)),
    },
    "config": Command(route=f"GET {_GUEST}/config", arguments=("vmid",), show=_print_config),
    "create": Command(route=f"POST {_BASE}", arguments=("vmid",), adapt=_settings, follows_task=True),
    "disk": _DISK,
    "guest": _INSIDE,
    "enroll-efi-keys": make_refusal("its EFI disks hold no keys"),
    "import": make_refusal("make the VM with `qm create` and `import-from`"),
    "importdisk": Alias("disk import"),
    "importovf": make_refusal("it reads no OVF manifests"),
    "list": Command(route=f"GET {_BASE}", show=_print_list),
    "monitor": make_refusal("there is no QEMU monitor behind its guests"),
    "move-disk": Alias("disk move"),
    "move_disk": Alias("disk move"),
    "mtunnel": make_refusal("no other cluster migrates to it by SSH"),
    "nbdstop": make_refusal("there is no QEMU process behind its guests"),
    "remote-migrate": make_refusal("there is no other cluster that it could migrate to"),
    "rescan": Alias("disk rescan"),
    "reset": Command(route=f"POST {_GUEST}/status/reset", arguments=("vmid",), follows_task=True),
    "resize": Alias("disk resize"),
    "sendkey": Command(route=f"PUT {_GUEST}/sendkey", arguments=("vmid", "key")),
    "set": Command(
        route=f"PUT {_GUEST}/config",
        own=_set,
        arguments=("vmid",),
    ),
    "showcmd": make_refusal("its guests are not started by a command line"),
    "status": Command(own=_status, arguments=("vmid",), parameters={"vmid": VMID, "verbose": BOOLEAN}),
    "terminal": make_refusal(_CONSOLE),
    "unlink": Alias("disk unlink"),
    "unlock": unlock_command("qemu"),
    "vncproxy": make_refusal(_CONSOLE),
    "wait": Command(own=_wait, arguments=("vmid",), parameters={"vmid": VMID, "timeout": optional(INTEGER)}),
}

QM = Tool("qm", _TREE)
