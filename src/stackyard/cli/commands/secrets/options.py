"""What the verbs of `stackyard secrets` have in common: the file, the passwords, how a file is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import events
from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.cli.session import Session
    from stackyard.secrets.keyring import Keyring

__all__ = ["file_argument", "make_keyring", "output_path", "vault_id_option", "warn", "write_like"]

file_argument = click.argument("file", type=click.Path(path_type=Path))
vault_id_option = click.option(
    "--vault-id",
    "vault_ids",
    multiple=True,
    metavar="[LABEL@]FILE",
    help="A file or a script with an Ansible Vault password. Repeatable.",
)


def make_keyring(vault_ids: tuple[str, ...]) -> Keyring:
    """Return the keys of the user."""
    from stackyard.secrets.keyring import Keyring  # lazy: asyncio, only when a verb runs

    return Keyring(vault_ids=vault_ids)


def warn(session: Session, warnings: Iterable[str]) -> None:
    """Show what should be said about a file that could be opened."""
    for text in warnings:
        session.emit(events.LogLine(level=events.LogLevel.WARNING, source="secrets", text=text))


def output_path(file: Path, output: Path | None, *, is_in_place: bool) -> Path:
    """Return where to write: to another file, or over the same one if that is said.

    Raises:
        UsageError: Neither was said, or both.
    """
    if (output is not None) == is_in_place:
        raise UsageError("Say where to write: --output FILE or --in-place.")
    return file if output is None else output


def write_like(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file that keeps its permissions if it is there, and is private otherwise."""
    from stackyard.base import files  # lazy: only verbs that write

    options: dict[str, Any] = {}
    if mode is not None:
        options["mode"] = mode
    elif path.exists():
        options["mode"] = path.stat().st_mode & 0o777
    files.replace_file(path, data, **options)
