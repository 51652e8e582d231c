"""Changing the object with the user's editor, until it is valid or given up."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import files, process
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.sources.deployment.fetch import rules_of
from stackyard.sources.deployment.text import parse
from stackyard.sources.deployment.validate import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.sources.deployment.settings import ObjectLocation

__all__ = ["EditorError", "edit_text"]

_FILE = "deployment.json"
_SECRETS = ("S3_", "AWS_", "SOPS_", "PROXMOX_VE_", "STACKYARD_", "TF_")


class EditorError(StackyardError):
    """The editor ended with an error, so that no one knows whether the user wanted to save."""

    code = "E-DEPLOYMENT-EDITOR"
    summary = "The editor failed"
    default_remedy = "Set EDITOR to a program that waits until you are done, such as `vim` or `code --wait`."


def edit_text(text: str, place: ObjectLocation, *, wants_again: Callable[[InvalidInputError], bool]) -> bytes:
    """Let the user edit a text until it is valid.

    The editor is given no credentials: it has the text, and nothing that could write it anywhere.

    Args:
        text: The object as it is.
        place: Where it is, for what it is held against.
        wants_again: Asked, with the problem, whether to open the editor once more.

    Raises:
        EditorError: The editor ended with an error.
        InvalidInputError: The text is not valid, and is not to be corrected.
    """
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / _FILE
        path.touch(mode=0o600)
        path.write_text(text)
        while True:
            _run_editor(path)
            edited = files.read_text(path)
            try:
                check(parse(edited, _FILE), rules_of(place)).require()
            except InvalidInputError as err:
                if not wants_again(err):
                    raise
                continue
            return edited.encode()


def _run_editor(path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(_SECRETS)}
    words = shlex.split(env.get("VISUAL", "").strip() or env.get("EDITOR", "").strip() or "vi")
    status = process.run_in_foreground(process.Command(argv=(*words, str(path)), env=env))
    if status != 0:
        raise EditorError(f"`{shlex.join(words)}` ended with status {status}; nothing was written.")
