"""Ctrl-C in the middle of a scenario: the program ends, and so does what it runs on the other machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import orjson
from tests.support.ssh_hosts import real_shell

PACKER = """\
#!/bin/sh
[ "$1" = init ] && exit 0
echo $$ > {place}.new && mv {place}.new {place}
exec sleep 1000
"""


async def _until_there(path: Path) -> str:
    """Wait for a file that another program writes: nothing tells of it."""
    while not path.exists():
        await asyncio.sleep(0.02)
    return path.read_text()


async def _until_gone(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.02)


def test_ctrl_c_ends_the_build_on_the_other_machine_and_the_context_is_kept(tmp_path: Path) -> None:
    programs, place = tmp_path / "bin", tmp_path / "pid"
    (tmp_path / "packer" / "templates").mkdir(parents=True)
    (tmp_path / "packer" / "templates" / "debian.pkr.hcl").write_text("x")
    programs.mkdir()
    (programs / "packer").write_text(PACKER.format(place=place))
    (programs / "packer").chmod(0o755)

    async def go() -> tuple[int | None, bytes]:
        async with real_shell(tmp_path, programs=programs) as host, asyncio.timeout(120):
            where = f"--remote {host.address}:{host.port} --packer-dir {tmp_path}/packer"
            line = f"scenario run packer-build {where}"
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "stackyard", *line.split(), "-C", "context.json", "--json"),
                cwd=tmp_path,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            pid = int(await _until_there(place))
            child.send_signal(signal.SIGINT)
            said, _ = await child.communicate()
            await _until_gone(pid)
            return child.returncode, said

    status, said = asyncio.run(go())
    assert status == 130
    assert orjson.loads(said)["error"]["code"] == "E-INTERRUPTED"
    assert orjson.loads((tmp_path / "context.json").read_bytes()) == {}
    assert os.listdir(tmp_path / "packer") == ["templates"]
