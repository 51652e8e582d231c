"""What commands read beside their words: files of the node, and passwords from standard input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.ssh.programs.cli.model import CommandCall

__all__ = ["file_bytes", "file_content", "password_from"]


async def file_content(asked: CommandCall, path: str) -> str:
    """Return the text of a file of the node.

    Raises:
        PveError: It cannot be read.
    """
    return (await file_bytes(asked, path)).decode("utf-8", "surrogateescape")


async def file_bytes(asked: CommandCall, path: str) -> bytes:
    """Return the content of a file of the node, or of standard input.

    Raises:
        PveError: It cannot be read.
    """
    if path in ("-", "/dev/stdin"):
        return await asked.streams.read_all()
    try:
        source = await asked.shell.files.source(path)
        chunks = []
        while chunk := await source.read():
            chunks.append(chunk)
    except OSError as err:
        raise PveError(f"can't open '{path}' - {err.strerror}") from err
    return b"".join(chunks)


async def password_from(asked: CommandCall, *, prompt: str = "", confirmed: bool = True) -> str:
    """Return a password that is typed (or piped) in, once or twice.

    Args:
        asked: The command.
        prompt: What to ask.
        confirmed: Whether it has to be given twice.

    Raises:
        PveError: There is none, or the second one is another.
    """
    await asked.streams.stdout.write((prompt or "Enter new password: ").encode())
    lines = (await asked.streams.read_all()).decode("utf-8", "surrogateescape").splitlines()
    if confirmed:
        await asked.streams.stdout.write(b"Retype new password: ")
    await asked.streams.say("")
    if not lines or not lines[0]:
        raise PveError("EOF while reading password")
    if confirmed and lines[1:2] not in ([], [lines[0]]):
        raise PveError("Passwords do not match.")
    return lines[0]
