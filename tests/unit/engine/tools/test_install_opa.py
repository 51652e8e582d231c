"""Installing OPA: the same rules as for OpenTofu, and a release that is the program itself."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.support.releases import ReleaseServer, whole

from stackyard.base import events
from stackyard.engine.tools.catalogue import OPA
from stackyard.engine.tools.install import InstalledTool, ToolInstallError, ToolVersionError, install_tool
from stackyard.engine.tools.locations import FoundBy, list_locations
from stackyard.engine.tools.probe import Health
from stackyard.engine.tools.release import ReleaseArchive, platform_name
from stackyard.engine.tools.survey import survey
from stackyard.engine.tools.table import OPA_INSTALL

VERSION = OPA_INSTALL.version
PROGRAM = f"#!/bin/sh\necho 'Version: {VERSION}'\n".encode()


def publish(releases: ReleaseServer, program: bytes, summed: bytes) -> None:
    name = f"opa_{platform_name()}_static"
    folder = f"/releases/v{VERSION}"
    releases.answers[f"{folder}/{name}"] = whole(program)
    line = f"{hashlib.sha256(summed).hexdigest()}  {name}\n"
    releases.answers[f"{folder}/{name}.sha256"] = whole(line.encode())


def install(releases: ReleaseServer, version: str | None = None) -> InstalledTool:
    way = ReleaseArchive(base_url=releases.url, releases=OPA_INSTALL.releases)
    return asyncio.run(install_tool(OPA_INSTALL, version, emit=events.ignore, ways=(way,)))


def test_a_released_program_is_checked_installed_and_found(
    releases: ReleaseServer, cache: Path, path_folder: Path
) -> None:
    publish(releases, PROGRAM, PROGRAM)
    done = install(releases)
    assert (done.name, done.version, done.way) == ("opa", VERSION, "the release archive")
    assert done.path == cache / "tools" / "opa" / VERSION / "opa"
    assert done.path.read_bytes() == PROGRAM
    assert [place.where for place in list_locations(OPA) if place.path] == [FoundBy.MANAGED]
    (found,) = asyncio.run(survey(tools=(OPA,)))
    assert (found.health, found.version, found.path) == (Health.OK, VERSION, done.path)
    assert install(releases).way is None


def test_a_program_that_is_not_the_published_one_is_not_installed(
    releases: ReleaseServer, cache: Path
) -> None:
    publish(releases, PROGRAM + b"# more\n", PROGRAM)
    with pytest.raises(ToolInstallError) as caught:
        install(releases)
    assert "not the file that was published" in caught.value.detail
    assert "`opa`" in caught.value.remedy
    assert not list((cache / "tools" / "opa").glob("[0-9]*"))


def test_a_program_that_is_something_else_is_not_installed(releases: ReleaseServer, cache: Path) -> None:
    other = b"#!/bin/sh\necho 'Version: 1.0.0'\n"
    publish(releases, other, other)
    with pytest.raises(ToolInstallError) as caught:
        install(releases)
    assert "It says that it is opa 1.0.0." in caught.value.detail
    assert not list((cache / "tools" / "opa").glob("[0-9]*"))


@pytest.mark.parametrize("version", ["0.70.0", "latest", ""])
def test_a_version_that_cannot_work_is_refused(releases: ReleaseServer, version: str) -> None:
    with pytest.raises(ToolVersionError):
        install(releases, version)
    assert releases.hits == []


def test_a_mirror_of_opentofu_is_none_of_opa(
    releases: ReleaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(releases, PROGRAM, PROGRAM)
    monkeypatch.setenv("STACKYARD_RELEASES_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("STACKYARD_OPA_RELEASES_URL", releases.url)
    way = ReleaseArchive(releases=OPA_INSTALL.releases)
    done = asyncio.run(install_tool(OPA_INSTALL, emit=events.ignore, ways=(way,)))
    assert done.version == VERSION
