"""Programs of systemd and of the network of a node: transient timers, services at boot, `ifreload`."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from pvelab.api.nodes.network.files import bring_up
from pvelab.ssh.boot_units import disable_unit, enable_unit, is_enabled

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
    programs = _UnitPrograms(session, timers)
    return {
        "systemd-run": programs.systemd_run,
        "systemctl": programs.systemctl,
        "ifreload": programs.ifreload,
    }


class _UnitPrograms:
    def __init__(self, session: ShellSession, timers: Timers) -> None:
        self._session = session
        self._timers = timers

    async def systemd_run(self, shell: Shell, words: list[str], streams: Streams) -> int:
        options, command = _split(words[1:])
        after = _SECONDS.fullmatch(options.get("--on-active", ""))
        unit = options.get("--unit", "").removesuffix(".timer")
        problem = ""
        if after is None or not unit or not command:
            problem = "the lab knows --unit=NAME --on-active=SECONDS COMMAND ..."
        elif not _is_root(self._session, shell):
            problem = "Interactive authentication required."
        elif self._timers.is_set(self._session.node, unit):
            problem = f"Unit {unit}.timer was already loaded or has a fragment file."
        if problem or after is None:
            await streams.complain(f"Failed to start transient timer unit: {problem}")
            return 1
        self._timers.set(self._session.node, unit, float(after[1]) * _UNITS[after[2]], command)
        if not {"--quiet", "-q"}.intersection(words):
            await streams.complain(f"Running timer as unit: {unit}.timer")
        return 0

    async def systemctl(self, shell: Shell, words: list[str], streams: Streams) -> int:
        rest = [word for word in words[1:] if word not in _FLAGS]
        if rest == ["daemon-reload"]:
            return 0
        if len(rest) > 1 and rest[0] in ("enable", "disable", "is-enabled"):
            return max([await self._enable(rest[0], unit, shell, streams) for unit in rest[1:]])
        if len(rest) < 2 or rest[0] not in ("stop", "is-active"):
            await streams.complain(
                "systemctl: the lab knows stop and is-active for transient timers; enable, disable and "
                "is-enabled for services; daemon-reload"
            )
            return 1
        if rest[0] == "is-active":
            found = [one for unit in rest[1:] for one in self._find(unit)]
            await streams.say("active" if found else "inactive")
            return 0 if found else 3
        if not _is_root(self._session, shell):
            await streams.complain("Failed to stop unit: Interactive authentication required.")
            return 1
        return max([await self._stop(unit, streams) for unit in rest[1:]])

    async def _enable(self, verb: str, unit: str, shell: Shell, streams: Streams) -> int:
        name = unit if "." in unit else f"{unit}.service"
        world, node = self._session.world, self._session.node
        if verb == "is-enabled":
            found = is_enabled(world, node, name)
            await streams.say("enabled" if found else "disabled")
            return 0 if found else 1
        problem = ""
        if not _is_root(self._session, shell):
            problem = "Interactive authentication required."
        elif verb == "enable":
            problem = enable_unit(world, node, name)
        elif not is_enabled(world, node, name):
            problem = f"Unit file {name} does not exist."
        else:
            disable_unit(world, node, name)
        if problem:
            await streams.complain(f"Failed to {verb} unit: {problem}")
        return 1 if problem else 0

    def _find(self, unit: str) -> list[str]:
        known = self._timers.names(self._session.node)
        return [one for one in known if fnmatch.fnmatchcase(f"{one}.timer", unit)]

    async def _stop(self, unit: str, streams: Streams) -> int:
        found = self._find(unit)
        for one in found:
            self._timers.stop(self._session.node, one)
        if found or re.search(r"[*?\[]", unit):
            return 0
        await streams.complain(f"Failed to stop {unit}: Unit {unit} not loaded.")
        return 5

    async def ifreload(self, shell: Shell, words: list[str], streams: Streams) -> int:
        if words[1:] != ["-a"] or not _is_root(self._session, shell):
            await streams.complain("ifreload: the lab knows `ifreload -a`, for root")
            return 1
        with self._session.world.store.transaction():
            bring_up(self._session.world, self._session.node)
        return 0


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
