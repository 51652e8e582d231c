"""Further programs: the name of the file that is released, its sum, and what the program answers."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.support.releases import ReleaseServer, tarred, whole

from stackyard.base import events
from stackyard.engine.tools.install import ToolInstallError, install_tool
from stackyard.engine.tools.release import ReleaseArchive, platform_name
from stackyard.engine.tools.table import SOPS_INSTALL, TALOSCTL_INSTALL, TASK_INSTALL, InstallableTool

SYSTEM, ARCHITECTURE = platform_name().split("_")
TALOS = (TALOSCTL_INSTALL, f"talosctl-{SYSTEM}-{ARCHITECTURE}", "sha256sum.txt", "Client:\nTalos v{}")
SOPS = (SOPS_INSTALL, "sops-v{}." + f"{SYSTEM}.{ARCHITECTURE}", "sops-v{}.checksums.txt", "sops {} (latest)")
TASK = (TASK_INSTALL, f"task_{SYSTEM}_{ARCHITECTURE}.tar.gz", "task_checksums.txt", "{}")
EACH = pytest.mark.parametrize(
    ("tool", "file", "sums", "answer"), [TALOS, SOPS, TASK], ids=["talosctl", "sops", "task"]
)


def publish(releases: ReleaseServer, tool: InstallableTool, file: str, sums: str, program: bytes) -> None:
    folder = f"/releases/v{tool.version}"
    name = file.format(tool.version)
    released = tarred({"LICENSE": b"text", tool.name: program}) if name.endswith(".tar.gz") else program
    releases.answers[f"{folder}/{name}"] = whole(released)
    lines = f"{'0' * 64}  other\n{hashlib.sha256(released).hexdigest()}  {name}\n"
    releases.answers[f"{folder}/{sums.format(tool.version)}"] = whole(lines.encode())


@EACH
def test_a_release_is_found_by_its_name_checked_and_installed(
    tool: InstallableTool, file: str, sums: str, answer: str, releases: ReleaseServer, cache: Path
) -> None:
    program = f"#!/bin/sh\nprintf '%s\\n' '{answer.format(tool.version)}'\n".encode()
    publish(releases, tool, file, sums, program)
    way = ReleaseArchive(base_url=releases.url, releases=tool.releases)
    done = asyncio.run(install_tool(tool, emit=events.ignore, ways=(way,)))
    assert (done.version, done.way) == (tool.version, "the release archive")
    assert done.path == cache / "tools" / tool.name / tool.version / tool.name
    assert done.path.read_bytes() == program


@EACH
def test_a_program_of_another_version_is_not_installed(
    tool: InstallableTool, file: str, sums: str, answer: str, releases: ReleaseServer, cache: Path
) -> None:
    program = f"#!/bin/sh\nprintf '%s\\n' '{answer.format('9.9.9')}'\n".encode()
    publish(releases, tool, file, sums, program)
    way = ReleaseArchive(base_url=releases.url, releases=tool.releases)
    with pytest.raises(ToolInstallError) as caught:
        asyncio.run(install_tool(tool, emit=events.ignore, ways=(way,)))
    assert f"It says that it is {tool.name} 9.9.9." in caught.value.detail
    assert not list((cache / "tools" / tool.name).glob("[0-9]*"))
