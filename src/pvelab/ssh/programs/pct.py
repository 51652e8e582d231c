"""`pct`: containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import MachineError
from pvelab.server.params.formats import parse_size
from pvelab.server.problems import PveError
from pvelab.ssh.inside import run_in_container
from pvelab.ssh.programs.cli.model import BOOLEAN, STRING, WORDS, Alias, Command, Tree, optional
from pvelab.ssh.programs.cli.run import Tool
from pvelab.ssh.programs.guest_shared import (
    VMID,
    encode_text,
    make_refusal,
    rescan_command,
    shared_verbs,
    unlock_command,
)
from pvelab.ssh.programs.inputs import file_bytes, file_content, password_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.machines.machine import GuestMachine
    from pvelab.ssh.programs.cli.model import CommandCall, PrintedAnswer

__all__ = ["PCT"]

_BASE = "/nodes/{node}/lxc"
_GUEST = f"{_BASE}/{{vmid}}"
_MOST_PULLED_MIB = 64
_NO_SHELL = "it has no interactive shells; run a command with `pct exec`"
_NO_MOUNT = "the file systems of its containers are not on the node"


async def _print_list(shown: PrintedAnswer) -> None:
    if not shown.data:
        return
    await shown.streams.say(f"{'VMID':<10} {'Status':<10} {'Lock':<12} {'Name':<20}")
    for row in sorted(shown.data, key=lambda row: int(row["vmid"])):
        lock = row.get("lock") or ""
        await shown.streams.say(f"{row['vmid']:<10} {row['status']:<10} {lock:<12} {row['name']:<20}")


async def _print_config(shown: PrintedAnswer) -> None:
    for key in sorted(shown.data):
        if key not in ("digest", "lxc"):
            value = shown.data[key]
            await shown.streams.say(f"{key}: {encode_text(value) if key == 'description' else value}")
    for key, value in shown.data.get("lxc", ()):
        await shown.streams.say(f"{key}: {value}")


async def _status(asked: CommandCall) -> int:
    status = await asked.session.call("GET", f"/nodes/{asked.session.node}/lxc/{asked.vmid}/status/current")
    if not asked.parameters.get("verbose"):
        await asked.streams.say(f"status: {status.get('status') or 'unknown'}")
        return 0
    for key in sorted(status):
        if status[key] is not None and key not in ("cpu", "ha"):
            await asked.streams.say(f"{key}: {status[key]}")
    return 0


async def _exec(asked: CommandCall) -> int:
    command = list(asked.parameters.get("extra-args") or ())
    return await run_in_container(asked.session, asked.vmid, command, asked.streams)


async def _machine(asked: CommandCall) -> GuestMachine:
    guest = asked.session.world.guests.require("lxc", asked.session.node, asked.vmid)
    if guest["status"] != "running":
        raise PveError(f"can't push or pull a file: CT {asked.vmid} not running")
    return await asked.session.world.machines.of(guest)


async def _push(asked: CommandCall) -> int:
    source, target = str(asked.parameters["file"]), str(asked.parameters["destination"])
    machine = await _machine(asked)
    content = await file_bytes(asked, source)
    try:
        await machine.write_file(target, content)
    except OSError as err:
        raise PveError(f"failed to create file: {target}: {err.strerror}") from err
    except MachineError as err:
        raise PveError(err.detail) from err
    return 0


async def _pull(asked: CommandCall) -> int:
    source, target = str(asked.parameters["path"]), str(asked.parameters["destination"])
    machine = await _machine(asked)
    try:
        content = await machine.read_file(source, _MOST_PULLED_MIB * 2**20 + 1)
    except OSError as err:
        raise PveError(f"failed to open {source}: {err.strerror}") from err
    except MachineError as err:
        raise PveError(err.detail) from err
    if len(content) > _MOST_PULLED_MIB * 2**20:
        raise PveError(f"failed to pull {source}: the lab pulls files of {_MOST_PULLED_MIB} MiB at most")
    if target in ("-", "/dev/stdout"):
        await asked.streams.stdout.write(content)
        return 0
    try:
        sink = await asked.shell.files.sink(target, append=False)
        await sink.write(content)
        await sink.close()
    except OSError as err:
        raise PveError(f"failed to create file: {target}: {err.strerror}") from err
    return 0


async def _df(asked: CommandCall) -> int:
    config = await asked.session.call("GET", f"/nodes/{asked.session.node}/lxc/{asked.vmid}/config")
    rows = [("MP", "Volume", "Size", "Used", "Avail", "Use%", "Path")]
    for key in sorted((key for key in config if _is_mount(key)), key=lambda key: (key != "rootfs", key)):
        volume, *options = str(config[key]).split(",")
        told = dict(option.partition("=")[::2] for option in options)
        size = _human(parse_size(str(told.get("size", "0"))) or 0)
        # The disks of a lab have no bytes in them that a container has written.
        path = "/" if key == "rootfs" else told.get("mp", "")
        rows.append((key, volume, size, "0", size, "0.0", path))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[2:6], widths[2:], strict=True)]
        await asked.streams.say(" ".join([*left, *right, row[6]]))
    return 0


def _is_mount(key: str) -> bool:
    return key == "rootfs" or (key.startswith("mp") and key[2:].isdecimal())


def _human(size: float) -> str:
    if size < 1024:
        return str(int(size))
    for unit in "KMGT":
        size /= 1024
        if size < 1024 or unit == "T":
            return f"{size:.1f}{unit}"
    return ""


async def _settings(asked: CommandCall) -> Mapping[str, Any]:
    """Read the keys that are named as a file, and a password that is not on the command line."""
    given = dict(asked.parameters)
    if "ssh-public-keys" in given:
        given["ssh-public-keys"] = await file_content(asked, str(given["ssh-public-keys"]))
    if given.get("password") == "":
        given["password"] = await password_from(asked)
    return given


_TO_FILE = {"user": optional(STRING), "group": optional(STRING), "perms": optional(STRING)}
_CREATE = Command(route=f"POST {_BASE}", arguments=("vmid", "ostemplate"), adapt=_settings, follows_task=True)

_TREE: Tree = {
    **shared_verbs("lxc"),
    "config": Command(route=f"GET {_GUEST}/config", arguments=("vmid",), show=_print_config),
    "console": make_refusal(_NO_SHELL),
    "cpusets": make_refusal("its containers have no CPU sets"),
    "create": _CREATE,
    "df": Command(own=_df, arguments=("vmid",), parameters={"vmid": VMID}),
    "enter": make_refusal(_NO_SHELL),
    "exec": Command(
        own=_exec,
        arguments=("vmid", "extra-args"),
        parameters={"vmid": VMID, "extra-args": WORDS, "keep-env": BOOLEAN},
    ),
    "fsck": make_refusal(_NO_MOUNT),
    "fstrim": make_refusal(_NO_MOUNT),
    "list": Command(route=f"GET {_BASE}", show=_print_list),
    "mount": make_refusal(_NO_MOUNT),
    "move-volume": Command(
        route=f"POST {_GUEST}/move_volume",
        arguments=("vmid", "volume", "storage", "target-vmid", "target-volume"),
        follows_task=True,
    ),
    "move_volume": Alias("move-volume"),
    "pull": Command(
        own=_pull,
        arguments=("vmid", "path", "destination"),
        parameters={"vmid": VMID, "path": STRING, "destination": STRING, **_TO_FILE},
    ),
    "push": Command(
        own=_push,
        arguments=("vmid", "file", "destination"),
        parameters={"vmid": VMID, "file": STRING, "destination": STRING, **_TO_FILE},
    ),
    "remote-migrate": make_refusal("there is no other cluster that it could migrate to"),
    "rescan": rescan_command("lxc"),
    "resize": Command(route=f"PUT {_GUEST}/resize", arguments=("vmid", "disk", "size")),
    "restore": Command(
        route=f"POST {_BASE}",
        arguments=("vmid", "ostemplate"),
        fixed={"restore": 1},
        adapt=_settings,
        follows_task=True,
    ),
    "set": Command(route=f"PUT {_GUEST}/config", arguments=("vmid",)),
    "status": Command(own=_status, arguments=("vmid",), parameters={"vmid": VMID, "verbose": BOOLEAN}),
    "unlock": unlock_command("lxc"),
    "unmount": make_refusal(_NO_MOUNT),
}

PCT = Tool("pct", _TREE)
