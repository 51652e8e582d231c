"""Proxmox's own commands as programs of a node's shell; each is a table in a module of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.lab.problems import PveError
from stackyard.lab.ssh.programs.backup import QMRESTORE, VZDUMP
from stackyard.lab.ssh.programs.cli.model import FAILED
from stackyard.lab.ssh.programs.cli.running import tell_problem
from stackyard.lab.ssh.programs.ha_manager import HA_MANAGER
from stackyard.lab.ssh.programs.pct import PCT
from stackyard.lab.ssh.programs.pveam import PVEAM
from stackyard.lab.ssh.programs.pvecm import PVECM
from stackyard.lab.ssh.programs.pvenode import PVENODE
from stackyard.lab.ssh.programs.pvesh import run_pvesh
from stackyard.lab.ssh.programs.pvesm import PVESM
from stackyard.lab.ssh.programs.pveum import PVEUM
from stackyard.lab.ssh.programs.qm import QM
from stackyard.lab.ssh.programs.system import Door

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.ssh.programs.cli.running import Tool
    from stackyard.lab.ssh.seat import Seat
    from stackyard.lab.ssh.shell.interpreter import Program, Shell
    from stackyard.lab.ssh.shell.streams import Streams

__all__ = ["proxmox_programs"]

_TOOLS = (HA_MANAGER, PCT, PVEAM, PVECM, PVENODE, PVESM, PVEUM, QM, QMRESTORE, VZDUMP)


def proxmox_programs(seat: Seat) -> Mapping[str, Program]:
    """Return the commands for somebody at a node."""

    async def pvesh(_shell: Shell, words: list[str], streams: Streams) -> int:
        return await run_pvesh(seat, words, streams)

    async def pveversion(_shell: Shell, words: list[str], streams: Streams) -> int:
        return await _print_version(seat, words[1:], streams)

    tools = {tool.name: _as_root(_of(seat, tool)) for tool in _TOOLS}
    return {**tools, "pvesh": _as_root(pvesh), "pveversion": pveversion}


def _of(seat: Seat, tool: Tool) -> Program:
    async def program(shell: Shell, words: list[str], streams: Streams) -> int:
        return await tool.run(seat, shell, words, streams)

    return program


def _as_root(run: Program) -> Program:
    """Let only root run a command."""

    async def program(shell: Shell, words: list[str], streams: Streams) -> int:
        if not (isinstance(shell.files, Door) and shell.files.as_root):
            await streams.complain("please run as root")
            return FAILED
        return await run(shell, words, streams)

    return program


async def _print_version(seat: Seat, words: list[str], streams: Streams) -> int:
    """Tell the version, with `-v` that of each package."""
    is_verbose = words in (["-v"], ["--verbose"], ["-verbose"], ["--v"])
    if words and not is_verbose:
        await streams.complain("USAGE: pveversion [--verbose]")
        return FAILED
    try:
        version = await seat.call("GET", "/version")
        status = await seat.call("GET", f"/nodes/{seat.node}/status")
        kernel = status["current-kernel"]["release"]
        if not is_verbose:
            manager = f"pve-manager/{version['version']}/{version['repoid']}"
            await streams.say(f"{manager} (running kernel: {kernel})")
            return 0
        for row in await seat.call("GET", f"/nodes/{seat.node}/apt/versions"):
            await streams.say(_package_line(row))
    except PveError as err:
        return await tell_problem(err, streams)
    return 0


def _package_line(row: Mapping[str, str]) -> str:
    version = "not correctly installed"
    if row.get("OldVersion") and row.get("CurrentState") == "Installed":
        version = row["OldVersion"]
    elif row.get("CurrentState") == "ConfigFiles":
        version = "residual config"
    for key, what in (("RunningKernel", "kernel"), ("ManagerVersion", "version")):
        if row.get(key):
            return f"{row['Package']}: {version} (running {what}: {row[key]})"
    return f"{row['Package']}: {version}"
