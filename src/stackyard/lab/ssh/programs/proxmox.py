"""Proxmox's own commands, `qm`, `pct`, `pvesm`, `pvesh` and `pveversion`, as calls of the API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.lab.problems import PveError
from stackyard.lab.ssh.importing import import_disk
from stackyard.lab.ssh.inside import run_in_container
from stackyard.lab.ssh.programs.system import Door
from stackyard.lab.volume_names import path_of
from stackyard.lab.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.lab.ssh.seat import Seat
    from stackyard.lab.ssh.shell.interpreter import Program, Shell
    from stackyard.lab.ssh.shell.streams import Streams

__all__ = ["proxmox_programs"]

# What Perl's die ends with, and so every command of Proxmox that fails.
_FAILED = 255
_API_VERSION = 13
_API_AGE = 4


@dataclass(frozen=True, slots=True)
class _Verb:
    """A subcommand that is one call: the method, the path below the node, and its plain arguments."""

    method: str
    path: str
    arguments: tuple[str, ...] = ("vmid",)


_GUEST_VERBS: Mapping[str, _Verb] = {
    "clone": _Verb("POST", "/{vmid}/clone", ("vmid", "newid")),
    "create": _Verb("POST", "", ("vmid",)),
    "delsnapshot": _Verb("DELETE", "/{vmid}/snapshot/{snapname}", ("vmid", "snapname")),
    "destroy": _Verb("DELETE", "/{vmid}"),
    "reboot": _Verb("POST", "/{vmid}/status/reboot"),
    "resize": _Verb("PUT", "/{vmid}/resize", ("vmid", "disk", "size")),
    "resume": _Verb("POST", "/{vmid}/status/resume"),
    "rollback": _Verb("POST", "/{vmid}/snapshot/{snapname}/rollback", ("vmid", "snapname")),
    "set": _Verb("PUT", "/{vmid}/config"),
    "shutdown": _Verb("POST", "/{vmid}/status/shutdown"),
    "snapshot": _Verb("POST", "/{vmid}/snapshot", ("vmid", "snapname")),
    "start": _Verb("POST", "/{vmid}/status/start"),
    "stop": _Verb("POST", "/{vmid}/status/stop"),
    "suspend": _Verb("POST", "/{vmid}/status/suspend"),
    "template": _Verb("POST", "/{vmid}/template"),
}
_METHODS = {"get": "GET", "create": "POST", "set": "PUT", "delete": "DELETE"}


def proxmox_programs(seat: Seat) -> Mapping[str, Program]:
    """Return the commands for somebody at a node."""
    commands = _Commands(seat)
    return {
        name: _as_root(name, run)
        for name, run in {
            "pct": commands.pct,
            "pvesh": commands.pvesh,
            "pvesm": commands.pvesm,
            "pveversion": commands.pveversion,
            "qm": commands.qm,
        }.items()
    }


def _as_root(name: str, run: Callable[[Shell, list[str], Streams], Awaitable[int]]) -> Program:
    """Let only root run a command, and print what goes wrong in it as Proxmox does."""

    async def program(shell: Shell, words: list[str], streams: Streams) -> int:
        if not (isinstance(shell.files, Door) and shell.files.as_root):
            await streams.complain("please run as root")
            return _FAILED
        try:
            return await run(shell, words, streams)
        except _UsageProblem as problem:
            await streams.complain(f"ERROR: {problem}")
            await streams.complain(f"USAGE: {name} <COMMAND> [ARGS] [OPTIONS]")
            return _FAILED
        except PveError as err:
            for key, text in (err.errors or {}).items():
                await streams.complain(f"{key}: {text}")
            await streams.complain(f"{err.status} {err.text.strip()}" if err.errors else err.text.strip())
            return _FAILED

    return program


class _UsageProblem(Exception):  # noqa: N818 - read as the text of a usage message
    """A command line that a command does not understand."""


class _Commands:
    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    async def qm(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        """Manage virtual machines."""
        match words[1:]:
            case ["disk", "import", *rest] | ["importdisk", *rest]:
                return await self._import_disk(rest, streams)
            case ["--help" | "help", *_]:
                await streams.say("USAGE: qm <COMMAND> [ARGS] [OPTIONS]")
                return 0
        return await self._guest("qemu", words, streams)

    async def pct(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        """Manage containers."""
        match words[1:]:
            case ["exec", vmid, "--", *command] | ["exec", vmid, *command] if vmid.isdecimal():
                return await run_in_container(self._seat, int(vmid), command, streams)
        return await self._guest("lxc", words, streams)

    async def pvesm(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        """Manage storages."""
        seat = self._seat
        match words[1:]:
            case ["apiinfo"]:
                await streams.say(f"APIVER {_API_VERSION}\nAPIAGE {_API_AGE}")
            case ["path", volid]:
                storage, _ = parse_volume_id(volid)
                config = seat.world.storages.require(storage, seat.node)
                await streams.say(path_of(config, volid))
            case ["free", volid, *_]:
                storage, _ = parse_volume_id(volid)
                await self._perform(
                    "DELETE", f"/nodes/{seat.node}/storage/{storage}/content/{volid}", {}, streams
                )
            case ["list", storage, *_]:
                rows = await seat.call("GET", f"/nodes/{seat.node}/storage/{storage}/content")
                await streams.say(f"{'Volid':<40} {'Format':<8} {'Type':<10} {'Size':>14} VMID")
                for row in rows:
                    shown = f"{row['volid']:<40} {row['format']:<8} {row['content']:<10} {row['size']:>14}"
                    await streams.say(f"{shown} {row.get('vmid', '')}".rstrip())
            case ["status", *_]:
                rows = await seat.call("GET", f"/nodes/{seat.node}/storage")
                await streams.say(f"{'Name':<16} {'Type':<10} {'Status':<10} {'Total':>14} {'Used':>14}")
                for row in rows:
                    state = "active" if row.get("active") else "inactive"
                    figures = f"{row['total'] // 1024:>14} {row['used'] // 1024:>14}"
                    await streams.say(f"{row['storage']:<16} {row['type']:<10} {state:<10} {figures}")
            case _:
                raise _UsageProblem(f"unknown command 'pvesm {' '.join(words[1:])}'")
        return 0

    async def pvesh(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        """Call the API by its path."""
        if len(words) < 3 or words[1] not in _METHODS:
            raise _UsageProblem("use pvesh get|create|set|delete PATH [OPTIONS]")
        options = _options(words[3:])
        as_json = str(options.pop("output-format", "text")).startswith("json")
        for flag in ("noborder", "noheader", "quiet"):
            options.pop(flag, None)
        data = await self._seat.call(_METHODS[words[1]], f"/{words[2].strip('/')}", options)
        if isinstance(data, str) and data.startswith("UPID:"):
            outcome = await self._seat.finish(data)
            if outcome.problem is not None:
                raise PveError(outcome.problem)
        if data is None:
            return 0
        await streams.say(orjson.dumps(data).decode() if as_json else _plain(data))
        return 0

    async def pveversion(self, _shell: Shell, _words: list[str], streams: Streams) -> int:
        """Tell the version."""
        version = await self._seat.call("GET", "/version")
        await streams.say(f"pve-manager/{version['version']}/{version['repoid']} (running kernel: lab)")
        return 0

    async def _guest(self, kind: str, words: list[str], streams: Streams) -> int:
        base = f"/nodes/{self._seat.node}/{kind}"
        match words[1:]:
            case ["config", vmid, *_]:
                config = await self._seat.call("GET", f"{base}/{vmid}/config")
                await streams.say(
                    "\n".join(f"{key}: {config[key]}" for key in sorted(config) if key != "digest")
                )
                return 0
            case ["status", vmid, *_]:
                status = await self._seat.call("GET", f"{base}/{vmid}/status/current")
                await streams.say(f"status: {status['status']}")
                return 0
            case ["list", *_]:
                await streams.say(f"{'VMID':>10} {'NAME':<20} STATUS")
                for row in sorted(await self._seat.call("GET", base), key=lambda row: int(row["vmid"])):
                    await streams.say(f"{row['vmid']:>10} {row.get('name', '-'):<20} {row['status']}")
                return 0
            case ["unlock", vmid, *_]:
                parameters = {"delete": "lock", "skiplock": 1} if kind == "qemu" else {"delete": "lock"}
                await self._perform("PUT", f"{base}/{vmid}/config", parameters, streams)
                return 0
        verb = _GUEST_VERBS.get(words[1] if len(words) > 1 else "")
        if verb is None:
            raise _UsageProblem(f"unknown command '{' '.join(words[:2])}'")
        plain, rest = words[2 : 2 + len(verb.arguments)], words[2 + len(verb.arguments) :]
        if len(plain) < len(verb.arguments) or any(word.startswith("-") for word in plain):
            raise _UsageProblem("not enough arguments")
        named = dict(zip(verb.arguments, plain, strict=True))
        path = verb.path.format(**named)
        in_path = set(re.findall(r"{(\w+)}", verb.path))
        sent = {key: value for key, value in named.items() if key not in in_path}
        await self._perform(verb.method, f"{base}{path}", {**sent, **_options(rest)}, streams)
        return 0

    async def _perform(self, method: str, path: str, parameters: Mapping[str, Any], streams: Streams) -> None:
        """Make a call, and wait for the task that it starts as commands do, showing its log."""
        if path.endswith("/config") and method == "PUT":
            shown = " ".join(f"-{key} {value}" for key, value in sorted(parameters.items()))
            await streams.say(f"update VM {path.split('/')[4]}: {shown}")
        data = await self._seat.call(method, path, parameters)
        if isinstance(data, str) and data.startswith("UPID:"):
            outcome = await self._seat.finish(data)
            for line in outcome.lines:
                await streams.say(line)
            if outcome.problem is not None:
                raise PveError(outcome.problem)

    async def _import_disk(self, words: list[str], streams: Streams) -> int:
        if len(words) < 3 or not words[0].isdecimal():
            raise _UsageProblem("use qm disk import <vmid> <source> <storage> [OPTIONS]")
        vmid, source, storage = words[:3]
        options = _options(words[3:])
        await streams.say(f"importing disk '{source}' to VM {vmid} ...")
        wanted = options.get("format")
        key, volid = await import_disk(self._seat, int(vmid), source, storage, wanted)
        await streams.say(f"{key}: successfully imported disk '{volid}'")
        return 0


def _options(words: list[str]) -> dict[str, Any]:
    """Read `-key value`, `--key value` and `--key=value`; a key without a value is switched on."""
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = re.fullmatch(r"--?([A-Za-z][A-Za-z0-9_-]*)(?:=(.*))?", word, re.DOTALL)
        if name is None:
            raise _UsageProblem(f"too many arguments: '{word}'")
        value: Any = name[2]
        if value is None:
            value = rest.pop(0) if rest and not re.match(r"--?[A-Za-z]", rest[0]) else "1"
        known = found.get(name[1])
        found[name[1]] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
    return found


def _plain(data: Any) -> str:
    if isinstance(data, dict):
        return "\n".join(f"{key}: {value}" for key, value in sorted(data.items()))
    if isinstance(data, list):
        return "\n".join(_plain(row) for row in data)
    return str(data)
