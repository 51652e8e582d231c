"""Editing leaves nothing in clear behind, however it ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.programs import write_program
from tests.support.secrets import ENV, keyring, open_sealed, seal_text

from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.secrets.edit import (
    ChangedMeanwhileError,
    Editing,
    EditorFailedError,
    NotSavedError,
    edit_secret_file,
    editor_command,
)
from stackyard.secrets.private import private_folder, wipe_leftovers

PLAIN = "# note\nuser: me\npassword: hunter2\n"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.yaml"
    path.write_bytes(seal_text(PLAIN))
    return path


def how(script: Path, *, answers: list[bool] | None = None) -> Editing:
    waiting = list(answers or [])

    def wants_again(problem: InvalidInputError) -> bool:
        assert problem.where is not None
        return waiting.pop(0) if waiting else False

    env = {**os.environ, "EDITOR": str(script)}
    return Editing(wants_again=wants_again, emit=events.ignore, env=env)


def test_only_what_was_edited_is_encrypted_anew(secret_file: Path, tmp_path: Path) -> None:
    before = secret_file.read_text().splitlines()
    script = write_program(tmp_path / "editor", "sed -i 's/user: me/user: you/' \"$1\"")
    assert edit_secret_file(secret_file, keyring(), how(script))
    after = secret_file.read_text().splitlines()
    assert open_sealed(secret_file.read_bytes()).plain.decode() == PLAIN.replace("me", "you", 1)
    assert before[0] == after[0]
    assert before[1] != after[1]
    assert before[2] == after[2]


def test_nothing_is_written_when_nothing_was_edited(secret_file: Path, tmp_path: Path) -> None:
    before = (secret_file.read_bytes(), secret_file.stat().st_mtime_ns)
    assert not edit_secret_file(secret_file, keyring(), how(write_program(tmp_path / "editor", "true")))
    assert (secret_file.read_bytes(), secret_file.stat().st_mtime_ns) == before


def test_the_plain_text_is_private_and_gone_afterwards(secret_file: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = write_program(
        tmp_path / "editor", f'stat -c %a "$1" "$(dirname "$1")" > {seen}; echo "$1" >> {seen}'
    )
    edit_secret_file(secret_file, keyring(), how(script))
    file_mode, folder_mode, name = seen.read_text().split()
    assert (file_mode, folder_mode) == ("600", "700")
    assert not Path(name).parent.exists()


def test_a_text_that_cannot_be_read_is_not_saved(secret_file: Path, tmp_path: Path) -> None:
    before = secret_file.read_bytes()
    script = write_program(tmp_path / "editor", "echo 'user: [' > \"$1\"")
    with pytest.raises(NotSavedError):
        edit_secret_file(secret_file, keyring(), how(script))
    assert secret_file.read_bytes() == before


def test_a_text_that_cannot_be_read_can_be_corrected(secret_file: Path, tmp_path: Path) -> None:
    once = tmp_path / "once"
    script = write_program(
        tmp_path / "editor",
        f"if [ -e {once} ]; then echo 'user: two' > \"$1\"; else touch {once}; echo 'user: [' > \"$1\"; fi",
    )
    assert edit_secret_file(secret_file, keyring(), how(script, answers=[True]))
    assert open_sealed(secret_file.read_bytes()).plain == b"user: two\n"


def test_an_editor_that_fails_saves_nothing(secret_file: Path, tmp_path: Path) -> None:
    before = secret_file.read_bytes()
    script = write_program(tmp_path / "editor", "echo 'user: x' > \"$1\"; exit 1")
    with pytest.raises(EditorFailedError):
        edit_secret_file(secret_file, keyring(), how(script))
    assert secret_file.read_bytes() == before


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(secret_file: Path, tmp_path: Path) -> None:
    other = seal_text("user: other\n")
    (tmp_path / "other").write_bytes(other)
    script = write_program(
        tmp_path / "editor", f"cp {tmp_path / 'other'} {secret_file}; echo 'user: x' > \"$1\""
    )
    with pytest.raises(ChangedMeanwhileError):
        edit_secret_file(secret_file, keyring(), how(script))
    assert secret_file.read_bytes() == other


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_we_are_killed_while_the_editor_runs(
    secret_file: Path, tmp_path: Path, number: signal.Signals
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = write_program(tmp_path / "editor", f'echo "$1 $$" > {fifo}; exec sleep 600')
    child = subprocess.Popen(
        [sys.executable, "-m", "stackyard", "secrets", "edit", str(secret_file)],
        env={**os.environ, **ENV, "EDITOR": str(script)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    plain, editor = fifo.read_text().split()
    assert "hunter2" in Path(plain).read_text()
    child.send_signal(number)
    child.wait(timeout=60)
    if number is signal.SIGKILL:
        os.kill(int(editor), signal.SIGKILL)
    _wait_until_gone(Path(plain).parent)
    assert open_sealed(secret_file.read_bytes()).plain.decode() == PLAIN


def _wait_until_gone(folder: Path) -> None:
    """Wait for another process, which has no way to tell us, to remove a folder."""
    until = time.monotonic() + 60
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not folder.exists()


def test_what_was_left_is_wiped_at_the_next_use_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    left = tmp_path / "stackyard-edit-left"
    left.mkdir()
    (left / "secrets.yaml").write_text("password: hunter2\n")
    other = tmp_path / "something-else"
    other.mkdir()
    with private_folder() as folder:
        (folder.path / "plain").write_text("x")
        assert folder.path not in wipe_leftovers(folder.path.parent)
        assert (folder.path / "plain").read_text() == "x"
    assert wipe_leftovers(tmp_path) == [left]
    assert not left.exists()
    assert other.exists()


def test_a_private_folder_is_for_its_owner_alone() -> None:
    with private_folder() as folder:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert not folder.path.exists()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, ("vi",)),
        ({"EDITOR": "nano -w"}, ("nano", "-w")),
        ({"EDITOR": "nano", "VISUAL": "code --wait"}, ("code", "--wait")),
        ({"EDITOR": "nano", "SOPS_EDITOR": "ed"}, ("ed",)),
    ],
)
def test_the_editor_is_the_users(env: dict[str, str], words: tuple[str, ...]) -> None:
    assert editor_command(env) == words


def test_vim_is_told_to_leave_no_traces() -> None:
    words = editor_command({"EDITOR": "/usr/bin/vim"})
    assert words[:4] == ("/usr/bin/vim", "-n", "-i", "NONE")
    assert "noundofile" in words[-1]
