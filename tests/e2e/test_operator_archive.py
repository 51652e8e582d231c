"""The archive for inner hosts: complete in itself, without anything of developers, and always the same."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.delegation import ARCHIVES
from tests.support.engine import real_engine

from stackyard.engine.version import Flavour
from stackyard.operator.delegation.archive import Archive, find_archive

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

# All that a machine has to have: the C library with its loader, and a shell.
LIBRARIES = "libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2".split()
EVERYTHING = (
    "import asyncssh, bz2, cryptography.hazmat.bindings._rust, ctypes, grpclib.server, hashlib, lzma, "
    "orjson, pydantic, pyrage, ruamel.yaml, sqlite3, ssl, stackyard.cli.root, "
    "stackyard.operator.verbs, stackyard.provider.plugin, uuid, yaml, zlib; print('whole')"
)


@pytest.fixture(scope="module")
def archive() -> Iterator[Archive]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
        yield asyncio.run(find_archive(cache=ARCHIVES))


def test_it_is_found_again_without_being_packed_again(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    again = asyncio.run(find_archive(cache=ARCHIVES))
    assert (again.path, again.digest, again.took_s) == (archive.path, archive.digest, 0.0)
    assert again.path.stat().st_mode & 0o077 == 0


def test_nothing_of_developers_and_nothing_of_this_machine_is_in_it(archive: Archive) -> None:
    with tarfile.open(archive.path) as opened:
        names = opened.getnames()
    packages = {name.split("/site-packages/")[1].split("/")[0] for name in names if "/site-packages/" in name}
    assert {"stackyard", "asyncssh", "pydantic", "grpclib"} <= packages
    assert (
        not {"pytest", "mypy", "hypothesis", "ansible", "pip", "setuptools", "ruff", "_pytest", "boto3"}
        & packages
    )
    assert not [name for name in names if name.startswith("/") or "/tests/" in name or "direct_url" in name]
    assert not [name for name in names if "/site-packages/stackyard/lab/" in name]
    assert {"bin/stackyard", "bin/tofu", "python/bin/python3"} <= set(names)


@pytest.mark.soak
def test_it_runs_where_there_is_nothing_but_a_c_library_and_a_shell(archive: Archive, tmp_path: Path) -> None:
    bwrap, shell = shutil.which("bwrap"), shutil.which("dash")
    if bwrap is None or shell is None:
        pytest.skip("bubblewrap or dash is not installed")
    subprocess.run(["tar", "-xzf", archive.path, "-C", tmp_path], check=True)
    loader = Path("/lib64/ld-linux-x86-64.so.2").resolve()
    room = [bwrap, "--unshare-all", "--clearenv", "--bind", str(tmp_path), "/elsewhere"]
    room += [
        "--ro-bind",
        os.path.realpath(shell),
        "/bin/sh",
        "--ro-bind",
        str(loader),
        "/lib64/ld-linux-x86-64.so.2",
    ]
    for name in LIBRARIES:
        room += ["--ro-bind", str(loader.parent / name), f"/lib/x86_64-linux-gnu/{name}"]
    room += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/"]
    for command, said in (
        (["/elsewhere/bin/stackyard", "--version"], "stackyard"),
        (["/elsewhere/bin/python", "-I", "-c", EVERYTHING], "whole"),
        (["/elsewhere/bin/tofu", "version"], "OpenTofu"),
    ):
        done = subprocess.run([*room, *command], capture_output=True, text=True, timeout=100, check=False)
        assert (done.returncode, said in done.stdout) == (0, True), (command, done)


def test_the_same_parts_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from stackyard.operator.delegation.environment import own_layer\n"
        "from stackyard.operator.delegation.pack import write_piece\n"
        "write_piece(own_layer().parts[:80], Path(sys.argv[1]))\n"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", script, tmp_path / seed], env=environment, check=True, timeout=100
        )
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
