"""Installing a tool: one way after the other, by one process at a time, in place only when it works."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import directories, events
from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import FileError, Location, StackyardError, UsageError
from stackyard.base.locks import exclusive
from stackyard.engine.tools import managed
from stackyard.engine.tools.methods import InstallMethod, InstallMethodFailedError
from stackyard.engine.tools.probe import Health, Probe, probe
from stackyard.engine.tools.shipped import DEFAULT_TOFU_VERSION
from stackyard.engine.tools.table import TOFU_INSTALL
from stackyard.engine.version import Version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.base.events import Emit, Step
    from stackyard.engine.tools.table import InstallableTool

__all__ = [
    "DEFAULT_TOFU_VERSION",
    "InstalledTool",
    "ToolInstallError",
    "ToolVersionError",
    "install_tofu",
    "install_tool",
    "read_version",
]


class ToolVersionError(UsageError):
    """The version that was asked for is no version, or one that stackyard cannot work with."""

    code = "E-TOOL-VERSION"
    summary = "That version cannot be installed"
    default_remedy = "Leave the version out to get the one that stackyard is tested with."


class ToolInstallError(StackyardError):
    """No way to install a tool worked; the text lists each one and why it failed.

    Args:
        tool: The tool.
        version: Its version.
        failures: The ways that were tried, each with what went wrong.
    """

    code = "E-TOOL-INSTALL"
    summary = "A tool cannot be installed"
    default_remedy = "Install it with your system's packages; `stackyard tools list` shows what is found."

    def __init__(
        self,
        tool: InstallableTool,
        version: Version,
        failures: Sequence[tuple[str, InstallMethodFailedError]],
    ) -> None:
        listed = "\n".join(f"- {title}: {failure.detail}" for title, failure in failures)
        super().__init__(
            f"{tool.label} {version} cannot be installed. Tried:\n{listed}", remedy=tool.elsewhere
        )
        self._failures = tuple(failure for _, failure in failures)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What went wrong, one finding for each way."""
        return tuple(
            Diagnostic(
                kind=Kind(code=failure.code, summary=failure.summary, remedy=failure.remedy),
                detail=failure.detail,
            )
            for failure in self._failures
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledTool:
    """A tool that is in place and works.

    Attributes:
        name: What we call it.
        version: Its version, as it says itself.
        path: The program.
        way: How it was created, in words; nothing when it was there already.
    """

    name: str
    version: str
    path: Path
    way: str | None


def read_version(tool: InstallableTool, text: str) -> Version:
    """Return the version of a tool that a user asks for.

    Raises:
        ToolVersionError: It is not written like `1.12.6`, or too old to work with.
    """
    try:
        version = Version.parse(text)
    except ValueError as err:
        raise ToolVersionError(f"{text!r} is not a version of {tool.label} such as {tool.version}.") from err
    oldest = tool.tool.minimum
    if oldest is not None and version < oldest:
        raise ToolVersionError(f"{tool.label} {version} is too old: {oldest} is the oldest that works.")
    return version


async def install_tofu(
    version: str = DEFAULT_TOFU_VERSION,
    *,
    emit: Emit,
    releases_url: str | None = None,
    ways: Sequence[InstallMethod] = (),
) -> InstalledTool:
    """Put a managed copy of OpenTofu in place, unless one that works is there; see `install_tool`."""
    return await install_tool(TOFU_INSTALL, version, emit=emit, releases_url=releases_url, ways=ways)


async def install_tool(
    tool: InstallableTool,
    version: str | None = None,
    *,
    emit: Emit,
    releases_url: str | None = None,
    ways: Sequence[InstallMethod] = (),
) -> InstalledTool:
    """Put a managed copy of a tool in place, unless one that works is there.

    Two processes that do this at once do it once: the second waits for the first and takes its result.

    Args:
        tool: Which tool.
        version: Which version, written like `1.12.6`; the tested one when absent.
        emit: Takes the events.
        releases_url: Where the releases are; the mirror of the settings, else the project's own.
        ways: How to get it, the best way first; when absent, the release and then the Go module.

    Raises:
        ToolVersionError: The version is not one that can be installed.
        ToolInstallError: No way worked.
        FileError: The folder of the managed copies cannot be written, or the disk is full.
    """
    wanted = read_version(tool, tool.version if version is None else version)
    with events.step(emit, f"tools.{tool.name}", f"Install {tool.label} {wanted}") as step:
        if present := await _present(tool, wanted):
            return present
        try:
            return await _install_once(tool, wanted, step, ways or tool.list_ways(releases_url))
        except OSError as err:
            raise _unwritable(tool, err) from err


def _unwritable(tool: InstallableTool, err: OSError) -> FileError:
    folder = managed.tool_folder(tool.name)
    return FileError(
        f"Cannot install into {folder}: {err.strerror or err}.",
        where=Location(str(folder)),
        remedy="Free some space there, or set XDG_CACHE_HOME to a folder with room that you may write.",
    )


async def _present(tool: InstallableTool, version: Version) -> InstalledTool | None:
    """Return the managed copy of a version if it is there and works."""
    path = managed.find_copy(tool.name, version)
    if path is None or _problem(await probe(path, tool.tool), tool, version):
        return None
    return InstalledTool(name=tool.name, version=str(version), path=path, way=None)


async def _install_once(
    tool: InstallableTool, version: Version, step: Step, ways: Sequence[InstallMethod]
) -> InstalledTool:
    folder = directories.ensure_private(managed.tool_folder(tool.name))
    note = f"the stackyard process {os.getpid()}, which installs {tool.label} {version}"
    async with exclusive(folder / ".lock", note, step.waiting):
        if present := await _present(tool, version):
            return present
        await managed.remove_stale_work(tool.name, step.waiting)
        async with managed.work_folder(tool.name, step.waiting) as work:
            return await _try_each(tool, version, work, step, ways)


async def _try_each(
    tool: InstallableTool, version: Version, work: Path, step: Step, ways: Sequence[InstallMethod]
) -> InstalledTool:
    failures: list[tuple[str, InstallMethodFailedError]] = []
    for number, way in enumerate(ways):
        folder = work / str(number)
        folder.mkdir()
        try:
            program = await way.provide(version, folder, step.emit)
            await asyncio.to_thread(managed.make_executable, program)
            found = await probe(program, tool.tool, from_memory=False)
            if problem := _problem(found, tool, version):
                raise InstallMethodFailedError(f"What it gave does not work: {problem}")
        except InstallMethodFailedError as err:
            failures.append((way.title, err))
            step.log(f"{way.title} did not work: {err.detail}", events.LogLevel.WARNING)
            continue
        path = managed.put_in_place(tool.name, program, version)
        return InstalledTool(name=tool.name, version=str(version), path=path, way=way.title)
    raise ToolInstallError(tool, version, failures)


def _problem(found: Probe, tool: InstallableTool, version: Version) -> str:
    """Return what is wrong with a program as a copy of that version; nothing when all is well."""
    if found.health is not Health.OK or found.said is None:
        return found.reason
    if (found.said.product, found.said.version) != (tool.name, str(version)):
        return f"It says that it is {found.said.product} {found.said.version}."
    return ""
