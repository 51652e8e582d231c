"""Commands and files on this machine and on another one."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path

import pytest
from tests.support.ssh_hosts import ScriptedHost, real_shell, scripted

from stackyard.base.redaction import Redactor
from stackyard.clients import ssh
from stackyard.scenario.failures import CommandFailedError, RebootNeededError
from stackyard.scenario.machines import Local, MachineCommand, Remote


def test_a_command_here_gives_its_lines_and_reads_what_it_is_given() -> None:
    lines: list[str] = []
    work = MachineCommand(script="cat; echo two >&2", stdin="one", as_root=False)
    assert asyncio.run(Local().run(work, lines.append)) == "one\ntwo"
    assert lines == ["one", "two"]


TELLING = MachineCommand(script="cat; exit 3", stdin="hunter-2-secret", as_root=False)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (TELLING, "ended with status 3 and said:\n********"),
        (dataclasses.replace(TELLING, is_quiet=True), "ended with status 3."),
        (MachineCommand(script="sleep 1000", as_root=False, timeout_s=0.2), "did not end within 0.2 s"),
    ],
)
def test_a_command_here_that_fails_says_how_and_hides_secrets(work: MachineCommand, told: str) -> None:
    machine = Local(Redactor(["hunter-2-secret"]))
    with pytest.raises(CommandFailedError) as raised:
        asyncio.run(machine.run(work))
    assert told in raised.value.detail
    assert "(this machine)" in raised.value.detail
    assert "hunter-2-secret" not in raised.value.detail


def test_this_machine_is_never_restarted() -> None:
    with pytest.raises(RebootNeededError) as raised:
        asyncio.run(Local().reboot(timeout_s=1.0, on_line=print))
    assert "run the command again" in raised.value.remedy


def test_a_file_is_written_whole_with_its_mode_here_and_there(tmp_path: Path) -> None:
    text = "a 'quoted' line\n$HOME `x` \\n\n"

    async def go() -> None:
        async with real_shell(tmp_path) as host:
            remote = Remote(host)
            await remote.write(str(tmp_path / "deep" / "there"), text, mode=0o640)
            await remote.close()
        if os.geteuid() == 0:
            await Local().write(str(tmp_path / "deep" / "here"), text, mode=0o640)

    asyncio.run(go())
    for path in (tmp_path / "deep").iterdir():
        assert path.read_text() == text
        assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "deep" / "there").exists()


def test_files_go_there_and_come_back(tmp_path: Path) -> None:
    source, there, back = tmp_path / "source", tmp_path / "there", tmp_path / "deep" / "back"
    source.write_bytes(bytes(range(256)) * 1000)

    async def go() -> None:
        async with real_shell(tmp_path) as host:
            remote = Remote(host)
            await remote.send(source, str(there))
            await remote.receive(str(there), back)
            await remote.close()

    asyncio.run(go())
    assert back.read_bytes() == there.read_bytes() == source.read_bytes()
    assert not (tmp_path / "there.partial").exists()


def test_a_machine_that_does_not_come_back_from_its_restart_is_given_up_on(tmp_path: Path) -> None:
    machine = ScriptedHost()
    machine.answer("boot_id", "the same boot")
    machine.answer("systemctl reboot", 0)

    async def go() -> None:
        async with scripted(machine, tmp_path) as host:
            remote = Remote(host)
            with pytest.raises(ssh.SshUnreachableError, match="did not come back within"):
                await remote.reboot(timeout_s=2.0, on_line=lambda line: None)
            await remote.close()

    asyncio.run(go())
    assert len([one for one in machine.scripts if "boot_id" in one]) > 2


def test_a_connection_that_broke_is_made_anew_for_the_next_command(tmp_path: Path) -> None:
    machine = ScriptedHost()
    machine.answer("^break$", lambda ran: None)
    machine.answer("^echo$", "well")

    async def go() -> str:
        async with scripted(machine, tmp_path) as host:
            remote = Remote(host)
            with pytest.raises(ssh.SshUnreachableError):
                await remote.run(MachineCommand(script="break"))
            said = await remote.run(MachineCommand(script="echo"))
            await remote.close()
            return said

    assert asyncio.run(go()) == "well"
