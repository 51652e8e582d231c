"""Proxmox's own commands as programs of a node's shell; each is a table in a module of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.ssh.programs.backup import QMRESTORE, VZDUMP
from pvelab.ssh.programs.cli.model import FAILED
from pvelab.ssh.programs.cli.run import tell_problem
from pvelab.ssh.programs.ha_manager import HA_MANAGER
from pvelab.ssh.programs.pct import PCT
from pvelab.ssh.programs.pveam import PVEAM
from pvelab.ssh.programs.pvecm import PVECM
from pvelab.ssh.programs.pvenode import PVENODE
from pvelab.ssh.programs.pvesh import run_pvesh
from pvelab.ssh.programs.pvesm import PVESM
from pvelab.ssh.programs.pveum import PVEUM
from pvelab.ssh.programs.qm import QM
from pvelab.ssh.programs.system import ShellFileAccess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.programs.cli.run import Tool
    from pvelab.ssh.shell.interpreter import Program, Shell
    from pvelab.ssh.shell.streams import Streams
    from pvelab.ssh.shell_session import ShellSession

__all__ = ["proxmox_programs"]

_TOOLS = (HA_MANAGER, PCT, PVEAM, PVECM, PVENODE, PVESM, PVEUM, QM, QMRESTORE, VZDUMP)


def proxmox_programs(session: ShellSession) -> Mapping[str, Program]:
    """Return the commands for someone at a node."""

    async def pvesh(_shell: Shell, words: list[str], streams: Streams) -> int:
        return await run_pvesh(session, words, streams)

    async def pveversion(_shell: Shell, words: list[str], streams: Streams) -> int:
        return await _print_version(session, words[1:], streams)

    tools = {tool.name: _as_root(_of(session, tool)) for tool in _TOOLS}
    return {**tools, "pvesh": _as_root(pvesh), "pveversion": pveversion}


def _of(session: ShellSession, tool: Tool) -> Program:
    async def program(shell: Shell, words: list[str], streams: Streams) -> int:
        return await tool.run(session, shell, words, streams)

    return program


def _as_root(run: Program) -> Program:
    """Let only root run a command."""

    async def program(shell: Shell, words: list[str], streams: Streams) -> int:
        if not (isinstance(shell.files, ShellFileAccess) and shell.files.as_root):
            await streams.complain("please run as root")
            return FAILED
        return await run(shell, words, streams)

    return program


async def _print_version(session: ShellSession, words: list[str], streams: Streams) -> int:
    """Tell the version, with `-v` that of each package."""
    is_verbose = words in (["-v"], ["--verbose"], ["-verbose"], ["--v"])
    if words and not is_verbose:
        await streams.complain("USAGE: pveversion [--verbose]")
        return FAILED
    try:
        version = await session.call("GET", "/version")
        status = await session.call("GET", f"/nodes/{session.node}/status")
        kernel = status["current-kernel"]["release"]
        if not is_verbose:
            manager = f"pve-manager/{version['version']}/{version['repoid']}"
            await streams.say(f"{manager} (running kernel: {kernel})")
            return 0
        for row in await session.call("GET", f"/nodes/{session.node}/apt/versions"):
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
