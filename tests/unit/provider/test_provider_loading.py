"""The provider is loaded when an engine is about to use it, and not a moment before."""

from __future__ import annotations

import subprocess
import sys

from stackyard import provider

BEGIN = """
import asyncio, json, sys
from stackyard import provider

async def main():
    async with provider.serve() as served:
        path = json.loads(served.reattach)["bpg/proxmox"]["Addr"]["String"]
        await asyncio.sleep(0)
        assert "grpclib" not in sys.modules
        {then}

asyncio.run(main())
"""
# As the first thing that a server of HTTP/2 says, it tells its settings.
KNOCK = """reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
        print((await reader.read(9))[3:4], "grpclib" in sys.modules)
        writer.close()"""
TURNED_AWAY = """reader, writer = await asyncio.open_unix_connection(path)
        try:
            await reader.read()
        except ConnectionResetError:
            print("turned away")
        writer.close()"""
BROKEN = """import sys
class Breaks:
    def find_spec(self, name, path=None, target=None):
        if name == "grpclib":
            raise ImportError("no gRPC here")
sys.meta_path.insert(0, Breaks())
"""


def run(then: str, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + BEGIN.format(then=then)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_first_call_of_an_engine_waits_until_the_provider_is_loaded() -> None:
    ended = run(KNOCK)
    assert (ended.stdout, ended.stderr) == ("b'\\x04' True\n", "")


def test_it_is_loaded_beforehand_for_an_engine_that_is_about_to_start() -> None:
    ended = run("served.begin(); await asyncio.sleep(0)\n        " + KNOCK)
    assert (ended.stdout, ended.stderr) == ("b'\\x04' True\n", "")


def test_it_is_not_loaded_where_no_engine_is_started() -> None:
    ended = run("print('nothing')")
    assert (ended.stdout, ended.stderr) == ("nothing\n", "")


def test_an_engine_does_not_wait_for_what_cannot_be_loaded() -> None:
    ended = run(TURNED_AWAY, BROKEN)
    assert ended.stdout == "turned away\n"
    assert ended.stderr.rstrip().endswith("ImportError: no gRPC here")


async def test_what_it_looks_like_is_known_before_it_is_asked() -> None:
    async with provider.serve() as served:
        assert "proxmox_virtual_environment_vm" in served.schemas
