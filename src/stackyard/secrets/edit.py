"""Editing a secrets file with the user's editor, without its plain text ever staying anywhere."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from stackyard.base import events, files, locks, process
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.secrets.private import private_folder
from stackyard.secrets.protected_file import open_bytes, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.secrets.base import OpenedFile
    from stackyard.secrets.keyring import Keyring

__all__ = [
    "ChangedMeanwhileError",
    "EditorFailedError",
    "NotSavedError",
    "edit_secret_file",
    "editor_command",
]


class EditorFailedError(StackyardError):
    """The editor ended with an error, so that no one knows whether the user wanted to save."""

    code = "E-SECRETS-EDITOR"
    summary = "The editor failed"
    default_remedy = "Set EDITOR to a program that waits until you are done, such as `vim` or `code --wait`."


class NotSavedError(InvalidInputError):
    """What was edited cannot be read any more and was not corrected; the file is as it was."""

    code = "E-SECRETS-NOT-SAVED"
    summary = "The edited text is not valid and was not saved"
    default_remedy = "Edit the file again; it is unchanged."


class ChangedMeanwhileError(StackyardError):
    """Something else changed the file while it was being edited; nothing was overwritten."""

    code = "E-SECRETS-CHANGED-MEANWHILE"
    summary = "The file was changed by something else"
    default_remedy = "Edit the file again; what the other wrote is in it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Editing:
    """How to edit.

    Attributes:
        wants_again: Asked, with the problem, whether to open the editor once more after an invalid text.
        emit: Told what matters on the way.
        env: The environment that names the editor.
    """

    wants_again: Callable[[InvalidInputError], bool]
    emit: events.Emit
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)


def editor_command(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the user's editor: SOPS_EDITOR, VISUAL, EDITOR, or vi; vim is set to leave no traces."""
    for name in ("SOPS_EDITOR", "VISUAL", "EDITOR"):
        if env.get(name, "").strip():
            words = tuple(shlex.split(env[name]))
            break
    else:
        words = ("vi",)
    if PurePath(words[0]).name in ("vim", "nvim", "gvim", "mvim"):
        # No swap file, no history of registers, no backups: any of these may lie outside the private folder.
        quiet = "set noswapfile nobackup nowritebackup noundofile"
        words = (*words, "-n", "-i", "NONE", "--cmd", quiet, "-c", quiet)
    return words


def edit_secret_file(path: Path, keyring: Keyring, how: Editing) -> bool:
    """Edit a file; return whether it was changed.

    Raises:
        EditorFailedError: The editor ended with an error; the file is as it was.
        NotSavedError: The text is not valid and is not to be corrected; the file is as it was.
        ChangedMeanwhileError: The file is not what it was when it was opened; nothing was written.
        InterruptedRunError: We were asked to end; the file is as it was.
    """
    source = read_bytes(path)
    opened = open_bytes(source, str(path), keyring)
    for warning in opened.warnings:
        how.emit(events.LogLine(level=events.LogLevel.WARNING, source="secrets", text=warning))
    sealed = _edit_until_sealed(opened, path.name, how)
    if sealed == source:
        return False
    with locks.hold_folder(path.parent):
        if read_bytes(path) != source:
            raise ChangedMeanwhileError(f"{path} was changed by something else while you edited it.")
        files.replace_file(path, sealed, mode=path.stat().st_mode & 0o777)
    return True


def _edit_until_sealed(opened: OpenedFile, name: str, how: Editing) -> bytes:
    """Let the user edit until the text can be sealed, and return it sealed."""
    with private_folder() as folder:
        if not folder.is_in_memory:
            text = f"There is no place in memory for the plain text: it lies in {folder.path} while you edit."
            how.emit(events.LogLine(level=events.LogLevel.WARNING, source="secrets", text=text))
        plain = folder.path / name
        _write_private(plain, opened.plain)
        while True:
            _run_editor(plain, how.env)
            try:
                return opened.seal(read_bytes(plain))
            except InvalidInputError as err:
                if not how.wants_again(err):
                    raise NotSavedError(err.detail, where=err.where) from err


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def _run_editor(path: Path, env: Mapping[str, str]) -> None:
    words = editor_command(env)
    status = process.run_in_foreground(process.Command(argv=(*words, str(path)), env=env))
    if status != 0:
        raise EditorFailedError(f"`{shlex.join(words)}` ended with status {status}; nothing was saved.")
