"""Programs of systemd and of the network of a node: transient timers, and `ifreload`."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from pvelab.api.nodes.network.files import bring_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.shell.interpreter import Program, Shell
    from pvelab.ssh.shell.streams import Streams
    from pvelab.ssh.shell_session import ShellSession
    from pvelab.ssh.timers import Timers

__all__ = ["unit_programs"]

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)(s|sec|min|h)?")
_UNITS = {"s": 1, "sec": 1, "min": 60, "h": 3600, None: 1}
_FLAGS = ("--quiet", "-q", "--collect", "-G", "--no-block")


def unit_programs(session: ShellSession, timers: Timers) -> Mapping[str, Program]:
    """Return the programs for someone at a node."""

    async def systemd_run(shell: Shell, words: list[str], streams: Streams) -> int:
        options, command = _split(words[1:])
        after = _SECONDS.fullmatch(options.get("--on-active", ""))
        unit = options.get("--unit", "").removesuffix(".timer")
        if not _is_root(session, shell):
            await streams.complain(
                "Failed to start transient timer unit: Interactive authentication required."
            )
            return 1
        if after is None or not unit or not command:
            await streams.complain("systemd-run: the lab knows --unit=NAME --on-active=SECONDS COMMAND ...")
            return 1
        if timers.is_set(session.node, unit):
            text = f"Unit {unit}.timer was already loaded or has a fragment file."
            await streams.complain(f"Failed to start transient timer unit: {text}")
            return 1
        timers.set(session.node, unit, float(after[1]) * _UNITS[after[2]], command)
        if not {"--quiet", "-q"}.intersection(words):
            await streams.complain(f"Running timer as unit: {unit}.timer")
        return 0

    async def systemctl(shell: Shell, words: list[str], streams: Streams) -> int:
        rest = [word for word in words[1:] if word not in _FLAGS]
        if len(rest) < 2 or rest[0] not in ("stop", "is-active"):
            await streams.complain("systemctl: the lab knows stop and is-active, for transient timers")
            return 1
        return await _control(shell, rest[0], rest[1:], streams)

    async def _control(shell: Shell, verb: str, units: list[str], streams: Streams) -> int:
        if verb == "stop" and not _is_root(session, shell):
            await streams.complain("Failed to stop unit: Interactive authentication required.")
            return 1
        status = 0
        for unit in units:
            found = [one for one in timers.names(session.node) if fnmatch.fnmatchcase(f"{one}.timer", unit)]
            for one in found if verb == "stop" else ():
                timers.stop(session.node, one)
            if verb == "is-active":
                await streams.say("active" if found else "inactive")
                status = 0 if found else 3
            elif not found and not re.search(r"[*?\[]", unit):
                await streams.complain(f"Failed to stop {unit}: Unit {unit} not loaded.")
                status = 5
        return status

    async def ifreload(shell: Shell, words: list[str], streams: Streams) -> int:
        if words[1:] != ["-a"] or not _is_root(session, shell):
            await streams.complain("ifreload: the lab knows `ifreload -a`, for root")
            return 1
        with session.world.store.transaction():
            bring_up(session.world, session.node)
        return 0

    return {"systemd-run": systemd_run, "systemctl": systemctl, "ifreload": ifreload}


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of systemd-run and the command after them."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name, sign, value = rest.pop(0).partition("=")
        if not sign and name not in _FLAGS and rest:
            value = rest.pop(0)
        options[name] = value
    return options, rest


def _is_root(session: ShellSession, shell: Shell) -> bool:
    return bool(getattr(shell.files, "as_root", session.is_root))
