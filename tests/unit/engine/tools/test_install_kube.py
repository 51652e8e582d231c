"""kube-apiserver and etcd: a file in folders with its sum alone, and an archive with a folder."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from tests.support.releases import ReleaseServer, tarred, whole

from stackyard.base import events
from stackyard.engine.tools.install import install_tool
from stackyard.engine.tools.release import ReleaseArchive, platform_name
from stackyard.engine.tools.table import ETCD_INSTALL, KUBE_APISERVER_INSTALL, InstallableTool

SYSTEM, ARCHITECTURE = platform_name().split("_")


def publish_kube_apiserver(releases: ReleaseServer, program: bytes) -> None:
    path = f"/releases/v{KUBE_APISERVER_INSTALL.version}/bin/{SYSTEM}/{ARCHITECTURE}/kube-apiserver"
    releases.answers[path] = whole(program)
    releases.answers[f"{path}.sha256"] = whole(hashlib.sha256(program).hexdigest().encode())


def publish_etcd(releases: ReleaseServer, program: bytes) -> None:
    folder = f"etcd-v{ETCD_INSTALL.version}-{SYSTEM}-{ARCHITECTURE}"
    archive = tarred({f"{folder}/README.md": b"text", f"{folder}/etcd": program})
    above = f"/releases/v{ETCD_INSTALL.version}"
    releases.answers[f"{above}/{folder}.tar.gz"] = whole(archive)
    lines = f"{hashlib.sha256(archive).hexdigest()}  {folder}.tar.gz\n"
    releases.answers[f"{above}/SHA256SUMS"] = whole(lines.encode())


@pytest.mark.parametrize(
    ("tool", "answer"), [(KUBE_APISERVER_INSTALL, "Kubernetes v{}"), (ETCD_INSTALL, "etcd Version: {}")]
)
def test_a_release_is_found_in_its_folders_checked_and_installed(
    tool: InstallableTool, answer: str, releases: ReleaseServer, cache: Path
) -> None:
    program = f"#!/bin/sh\necho '{answer.format(tool.version)}'\n".encode()
    publish_kube_apiserver(releases, program)
    publish_etcd(releases, program)
    way = ReleaseArchive(base_url=releases.url, releases=tool.releases)
    done = asyncio.run(install_tool(tool, emit=events.ignore, ways=(way,)))
    assert done.path == cache / "tools" / tool.name / tool.version / tool.name
    assert done.path.read_bytes() == program
