"""Installing OpenTofu: one way after the other, by one process at a time, in place only when it works."""

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
from stackyard.engine.tools.catalogue import TOFU
from stackyard.engine.tools.gobuild import GoModule
from stackyard.engine.tools.methods import InstallMethod, InstallMethodFailedError
from stackyard.engine.tools.probe import Health, Probe, probe
from stackyard.engine.tools.release import ReleaseArchive
from stackyard.engine.tools.shipped import DEFAULT_TOFU_VERSION
from stackyard.engine.version import OLDEST, Flavour, Version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.base.events import Emit, Step

__all__ = [
    "DEFAULT_TOFU_VERSION",
    "InstalledTool",
    "ToolInstallError",
    "ToolVersionError",
    "install_tofu",
    "read_tofu_version",
]


class ToolVersionError(UsageError):
    """The version that was asked for is no version, or one that stackyard cannot work with."""

    code = "E-TOOL-VERSION"
    summary = "That version cannot be installed"
    default_remedy = f"Leave the version out to get {DEFAULT_TOFU_VERSION}."


class ToolInstallError(StackyardError):
    """No way to install a tool worked; the text lists each one and why it failed.

    Args:
        what: The tool and its version.
        failures: The ways that were tried, each with what went wrong.
    """

    code = "E-TOOL-INSTALL"
    summary = "A tool cannot be installed"
    default_remedy = (
        "Install OpenTofu with your system's packages, or name a program with STACKYARD_TOFU; "
        "`stackyard tools list` shows what is found."
    )

    def __init__(self, what: str, failures: Sequence[tuple[str, InstallMethodFailedError]]) -> None:
        listed = "\n".join(f"- {title}: {failure.detail}" for title, failure in failures)
        super().__init__(f"{what} cannot be installed. Tried:\n{listed}")
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


def read_tofu_version(text: str) -> Version:
    """Return the version of OpenTofu that a user asks for.

    Raises:
        ToolVersionError: It is not written like `1.12.6`, or too old to work with.
    """
    try:
        version = Version.parse(text)
    except ValueError as err:
        raise ToolVersionError(
            f"{text!r} is not a version of OpenTofu such as {DEFAULT_TOFU_VERSION}."
        ) from err
    if version < OLDEST[Flavour.TOFU]:
        raise ToolVersionError(
            f"OpenTofu {version} is too old: {OLDEST[Flavour.TOFU]} is the oldest that works."
        )
    return version


async def install_tofu(
    version: str = DEFAULT_TOFU_VERSION,
    *,
    emit: Emit,
    releases_url: str | None = None,
    ways: Sequence[InstallMethod] = (),
) -> InstalledTool:
    """Put a managed copy of OpenTofu in place, unless one that works is there.

    Two processes that do this at once do it once: the second waits for the first and takes its result.

    Args:
        version: Which version, written like `1.12.6`.
        emit: Takes the events.
        releases_url: Where the release archives are; `STACKYARD_RELEASES_URL`, else the project's own.
        ways: How to get it, the best way first; when absent, the release archive and then the Go module.

    Raises:
        ToolVersionError: The version is not one that can be installed.
        ToolInstallError: No way worked.
        FileError: The folder of the managed copies cannot be written, or the disk is full.
    """
    wanted = read_tofu_version(version)
    with events.step(emit, "tools.tofu", f"Install OpenTofu {wanted}") as step:
        if present := await _present(wanted):
            return present
        try:
            usual = (ReleaseArchive(base_url=releases_url), GoModule())
            return await _install_once(wanted, step, ways or usual)
        except OSError as err:
            raise _unwritable(err) from err


def _unwritable(err: OSError) -> FileError:
    folder = managed.tofu_folder()
    return FileError(
        f"Cannot install into {folder}: {err.strerror or err}.",
        where=Location(str(folder)),
        remedy="Free some space there, or set XDG_CACHE_HOME to a folder with room that you may write.",
    )


async def _present(version: Version) -> InstalledTool | None:
    """Return the managed copy of a version if it is there and works."""
    path = managed.find_copy(version)
    if path is None or _problem(await probe(path, TOFU), version):
        return None
    return InstalledTool(name=TOFU.name, version=str(version), path=path, way=None)


async def _install_once(version: Version, step: Step, ways: Sequence[InstallMethod]) -> InstalledTool:
    folder = directories.ensure_private(managed.tofu_folder())
    note = f"the stackyard process {os.getpid()}, which installs OpenTofu {version}"
    async with exclusive(folder / ".lock", note, step.waiting):
        if present := await _present(version):
            return present
        await managed.remove_stale_work(step.waiting)
        async with managed.work_folder(step.waiting) as work:
            return await _try_each(version, work, step, ways)


async def _try_each(version: Version, work: Path, step: Step, ways: Sequence[InstallMethod]) -> InstalledTool:
    failures: list[tuple[str, InstallMethodFailedError]] = []
    for number, way in enumerate(ways):
        folder = work / str(number)
        folder.mkdir()
        try:
            program = await way.provide(version, folder, step.emit)
            await asyncio.to_thread(managed.make_executable, program)
            if problem := _problem(await probe(program, TOFU, from_memory=False), version):
                raise InstallMethodFailedError(f"What it gave does not work: {problem}")
        except InstallMethodFailedError as err:
            failures.append((way.title, err))
            step.log(f"{way.title} did not work: {err.detail}", events.LogLevel.WARNING)
            continue
        path = managed.put_in_place(program, version)
        return InstalledTool(name=TOFU.name, version=str(version), path=path, way=way.title)
    raise ToolInstallError(f"OpenTofu {version}", failures)


def _problem(found: Probe, version: Version) -> str:
    """Return what is wrong with a program as a copy of that version; nothing when all is well."""
    if found.health is not Health.OK or found.said is None:
        return found.reason
    if (found.said.product, found.said.version) != (TOFU.name, str(version)):
        return f"It says that it is {found.said.product} {found.said.version}."
    return ""
