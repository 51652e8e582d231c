"""A script on another machine that lives no longer than we attend to it.

SSH closes a channel without ending what runs behind it: anyone who is interrupted, or loses the connection,
leaves an installation running that no one watches. Here the script runs in a process group of its own
beside a watcher that reads our end of standard input: when it closes, the group is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import asyncssh

from stackyard.clients.ssh.failures import SshError

if TYPE_CHECKING:
    from stackyard.clients.ssh.shell import Shell

__all__ = ["Script", "ScriptResult", "attend"]

OnLine = Callable[[str], None]

# How long a script may take to end after it was asked to; the watcher kills it before that is over.
_GRACE_S = 8.0
# What is kept of the output: its end, where programs say what went wrong, or all of what is asked for.
_KEPT_LINES = 20_000
_KEPT_BYTES = 16 * 1024 * 1024
_LONGEST_LINE_BYTES = 1024 * 1024

# Arguments: the script, and how many bytes of standard input are for it.
_WATCHING = """\
exec 3<&0
apart=$(command -v setsid || :)
if [ "$2" -gt 0 ]; then
given=$(head -c "$2" <&3)
$apart /bin/sh -c "$1" <<END &
$given
END
else
$apart /bin/sh -c "$1" </dev/null &
fi
child=$!
{
while read -r _; do :; done
kill -s TERM -- "-$child" || kill -s TERM "$child"
sleep 5
kill -s KILL -- "-$child" || kill -s KILL "$child"
} <&3 >/dev/null 2>&1 &
watcher=$!
wait "$child"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What to run, and how.

    Attributes:
        text: A script for /bin/sh. Other users of the machine can read it, so it holds no secret.
        stdin: Text that it reads; a place for secrets. A line feed is put at its end.
        becomes_root: Whether it runs as root through sudo, which must not ask for a password.
        timeout_s: When to give up on it; never when absent.
    """

    text: str
    stdin: str = field(default="", repr=False)
    becomes_root: bool = False
    timeout_s: float | None = None

    def command(self) -> str:
        """Return the command line for the other machine."""
        given = len(self.stdin.rstrip("\n").encode())
        words = ["/bin/sh", "-c", _WATCHING, "stackyard", self.text, str(given)]
        return shlex.join(["sudo", "-n", *words] if self.becomes_root else words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """A script that has ended.

    Attributes:
        status: Its exit status; None when a signal ended it.
        output: What it wrote on both outputs, of very long outputs the end.
        timed_out: Whether it was ended because its time was over.
    """

    status: int | None
    output: str = field(repr=False)
    timed_out: bool = False


async def attend(shell: Shell, script: Script, on_line: OnLine | None = None) -> ScriptResult:
    """Run a script to its end; if we are cancelled, or its time is over, it is ended over there too.

    Raises:
        SshError: The connection broke. The watcher over there ends the script.
    """
    kept = _OutputTail()
    process = await _start_script(shell, script)
    try:
        # Not closed: its end is what the watcher waits for. A script may have ended before it read anything.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(script.stdin.rstrip("\n").encode())
        deadline = asyncio.timeout(script.timeout_s)
        try:
            async with deadline:
                await _read(process, kept, on_line)
                await process.wait_closed()
        except TimeoutError:
            if not deadline.expired():
                raise
            await _end(process)
            return ScriptResult(status=None, output=str(kept), timed_out=True)
    except asyncio.CancelledError:
        await _end(process)
        raise
    except (asyncssh.Error, OSError) as err:
        raise SshError(f"The connection to {shell.host} broke: {str(err) or type(err).__name__}.") from err
    finally:
        process.close()
    if process.exit_status is None and process.exit_signal is None:
        raise SshError(f"The connection to {shell.host} broke before the command had ended.")
    return ScriptResult(status=process.exit_status if process.exit_signal is None else None, output=str(kept))


class _OutputTail:
    """The end of an output: so many lines, and so many bytes."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._size = 0

    def append(self, line: str) -> None:
        """Keep one more line; those go that are too long ago."""
        self._lines.append(line)
        self._size += len(line)
        while len(self._lines) > _KEPT_LINES or (self._size > _KEPT_BYTES and len(self._lines) > 1):
            self._size -= len(self._lines.popleft())

    def __str__(self) -> str:
        return "\n".join(self._lines)


async def _start_script(shell: Shell, script: Script) -> asyncssh.SSHClientProcess[bytes]:
    """Start a script; if we are cancelled meanwhile, it may run over there already, and is ended."""
    starting = asyncio.ensure_future(shell.start(script.command()))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(SshError):
            process = await starting
            await _end(process)
            process.close()
        raise


async def _read(process: asyncssh.SSHClientProcess[bytes], kept: _OutputTail, on_line: OnLine | None) -> None:
    unfinished = bytearray()

    def take(line: bytes) -> None:
        text = line.rstrip(b"\r").decode(errors="replace")
        kept.append(text)
        if on_line is not None:
            on_line(text)

    while chunk := await process.stdout.read(65536):
        unfinished += chunk
        *lines, rest = bytes(unfinished).split(b"\n")
        for line in lines:
            take(line)
        # A line without end is cut: it must not fill the memory.
        unfinished = bytearray(rest[-_LONGEST_LINE_BYTES:])
    if unfinished:
        take(bytes(unfinished))


async def _end(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Let the watcher end the script, and wait for that; a second request to stop does not wait."""
    with contextlib.suppress(asyncssh.Error, OSError, TimeoutError):
        process.stdin.write_eof()
        async with asyncio.timeout(_GRACE_S):
            # What it still writes has to be read: it may be waiting to get rid of it.
            while await process.stdout.read(65536):
                pass
            await process.wait_closed()
