"""`stackyard connect` at a terminal: it shows, asks once, and leaves no secret but the sealed one."""

from __future__ import annotations

import base64
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM
from tests.support.connecting import Newcomer

from pvelab.world.access.second_factors import Totp
from stackyard import lab

pytestmark = pytest.mark.timeout(300)

# Runs a program on a terminal of its own, whose other end are our pipes.
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Newcomer]:
    (tmp_path / "yard").mkdir()
    with lab.running(nodes=("pve1",)) as running:
        yield Newcomer(running=running, folder=tmp_path / "yard")


class Terminal:
    """Somebody who reads until a question comes, and types an answer."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_A_TERMINAL, *PROGRAM, *arguments],
            cwd=folder,
            env={**os.environ, "TERM": "dumb"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.seen = ""

    def answer(self, question: str, text: str) -> None:
        assert self.process.stdin is not None
        self._read_until(question)
        # The prompt of a password throws away what was typed before it.
        time.sleep(0.2)
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()
        self.seen += "\n---\n"

    def end(self) -> int:
        self._read_until(None)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=60)

    def _read_until(self, question: str | None) -> None:
        assert self.process.stdout is not None
        number = self.process.stdout.fileno()
        while question is None or question not in self.seen.rpartition("\n---\n")[2]:
            ready, _, _ = select.select([number], [], [], 60)
            assert ready, self.seen
            data = os.read(number, 65536)
            if not data:
                assert question is None, self.seen
                return
            self.seen += data.decode()


def command_line(pid: int) -> str:
    texts = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if int((path.parent / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                texts.append(path.read_text())
        except OSError:
            continue
    return " ".join(texts)


def test_a_person_is_shown_everything_and_asked_once(alone: Newcomer, home: Path) -> None:
    running = alone.running
    terminal = Terminal("connect", running.url, "-v", folder=alone.folder)
    terminal.answer("Trust it? [y/N]", "y")
    assert running.fingerprint in terminal.seen
    assert "subject      CN=localhost" in terminal.seen
    terminal.answer("User [root@pam]", "")
    terminal.answer("Password of root@pam", running.password)
    terminal.answer("Do this? [Y/n]", "")
    assert running.password not in command_line(terminal.process.pid)
    assert terminal.end() == 0, terminal.seen
    secret = alone.token("pve1").partition("=")[2]
    assert "VM.Allocate" in terminal.seen
    assert "create and remove guests" in terminal.seen
    assert "preflight: pve1 is ready" in terminal.seen
    for text in (running.password, secret):
        assert text not in terminal.seen
        for folder in (alone.folder, home):
            for path in folder.rglob("*"):
                assert not path.is_file() or text.encode() not in path.read_bytes(), path


def test_no_is_no(alone: Newcomer) -> None:
    before = alone.access()
    terminal = Terminal("connect", alone.running.url, folder=alone.folder)
    terminal.answer("Trust it? [y/N]", "")
    assert terminal.end() == 1
    assert "E-CONNECT-CERTIFICATE" in terminal.seen
    pin = ("--fingerprint", alone.running.fingerprint)
    terminal = Terminal("connect", alone.running.url, "--user", "root@pam", *pin, folder=alone.folder)
    terminal.answer("Password of root@pam", alone.running.password)
    terminal.answer("Do this? [Y/n]", "n")
    assert terminal.end() == 1
    assert "E-CONNECT-NOT-CONFIRMED" in terminal.seen
    assert (alone.access(), alone.files()) == (before, {})


def test_a_code_and_a_renewal_are_asked_for(alone: Newcomer, tmp_path: Path) -> None:
    alone.connect()
    (tmp_path / "other").mkdir()
    uri = f"otpauth://totp/lab?secret={base64.b32encode(b'12345678901234567890').decode()}"
    factor = Totp.parse(uri)
    alone.api.access.tfa("root@pam").post(
        type="totp", description="phone", totp=uri, value=factor.at(time.time() - 30)
    )
    pin = ("--fingerprint", alone.running.fingerprint, "--user", "root@pam")
    terminal = Terminal("connect", alone.running.url, *pin, folder=tmp_path / "other")
    terminal.answer("Password of root@pam", alone.running.password)
    terminal.answer("Code of the second factor", factor.at(time.time()))
    terminal.answer("Replace it (its old secret stops working)? [y/N]", "y")
    terminal.answer("Do this? [Y/n]", "")
    assert terminal.end() == 0, terminal.seen
    assert "remove the token stackyard@pve!connect" in terminal.seen


@pytest.mark.soak
def test_the_secret_of_a_token_is_asked_for(alone: Newcomer) -> None:
    name, _, secret = alone.running.api_token.partition("=")
    pin = ("--fingerprint", alone.running.fingerprint, "--yes")
    terminal = Terminal("connect", alone.running.url, *pin, "--token", name, folder=alone.folder)
    terminal.answer(f"Secret of the token {name}", secret)
    assert terminal.end() == 0, terminal.seen
    assert secret not in terminal.seen


def test_an_interrupt_at_a_question_changes_nothing(alone: Newcomer) -> None:
    before = alone.access()
    pin = ("--fingerprint", alone.running.fingerprint, "--user", "root@pam")
    terminal = Terminal("connect", alone.running.url, *pin, folder=alone.folder)
    terminal.answer("Password of root@pam", "\x03")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert (alone.access(), alone.files()) == (before, {})


@pytest.mark.soak
def test_an_address_may_be_pasted_from_a_browser(alone: Newcomer) -> None:
    pasted = f"{alone.running.url.removeprefix('https://')}"
    pin = ("--fingerprint", alone.running.fingerprint, "--user", "root@pam", "--yes")
    for number, given in enumerate((pasted, f"{alone.running.url}/#v1:0:18:4:::::")):
        folder = alone.folder / str(number)
        folder.mkdir()
        terminal = Terminal(
            "connect", given, *pin, "--token-name", f"t{number}", "--site", ".", folder=folder
        )
        terminal.answer("Password of root@pam", alone.running.password)
        assert terminal.end() == 0, terminal.seen
        assert f"api_endpoint: {alone.running.url}\n" in (folder / "nodes" / "pve1.yaml").read_text()
