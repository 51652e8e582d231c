"""An inner host as the bootstrap sees it: scripts that run there as root, and steps that are timed."""

from __future__ import annotations

import contextlib
import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import StackyardError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.clients.ssh.failures import RemoteCommandError
from stackyard.operator.outcome import Phase, PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.clients.ssh.shell import Shell

__all__ = ["BASE", "InnerHost", "InnerHostError", "Steps"]

# Where stackyard keeps everything on an inner host; for root alone.
BASE = "/var/lib/stackyard"
_COMMAND_TIMEOUT_S = 300.0


class InnerHostError(StackyardError):
    """A host inside cannot be made ready to run guests of its own: it lacks something, or refuses."""

    code = "E-DELEGATION-HOST"
    summary = "Cannot prepare an inner host"
    default_remedy = "Look at the host, correct what is named, and run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerHost:
    """A host that we are logged in to.

    Attributes:
        name: What the manifest calls it.
        shell: The login.
        redact: Masks the secrets of the outer run in what the host says.
    """

    name: str
    shell: Shell
    redact: Callable[[str], str] = NOTHING_SECRET

    def as_root(self, script: str) -> str:
        """Return the command that runs a script as root."""
        words = ["sh", "-euc", script]
        return shlex.join(words if self.shell.host.username == "root" else ["sudo", "-n", *words])

    async def run(self, script: str, *, stdin: bytes = b"", timeout_s: float = _COMMAND_TIMEOUT_S) -> str:
        """Run a script as root and return what it wrote.

        Raises:
            InnerHostError: It failed; what it said is quoted.
            SshError: The connection broke.
        """
        try:
            return await self.shell.run(self.as_root(script), stdin=stdin, timeout_s=timeout_s)
        except RemoteCommandError as err:
            raise InnerHostError(f"{self.name}: {self.redact(err.detail)}") from err

    async def ask(self, *words: str, is_secret: bool = False) -> Any:
        """Run one of Proxmox's own commands and return the JSON that it answers with.

        Args:
            words: The command.
            is_secret: Whether the answer holds a secret, so that no error may quote it.

        Raises:
            InnerHostError: It failed, or answered something else.
        """
        command = shlex.join([*words, "--output-format", "json"])
        said = await self.run(f"{command} 2>{BASE}/said || {{ cat {BASE}/said >&2; exit 1; }}")
        try:
            return parse_json(said)
        except ValueError as err:
            quoted = "" if is_secret else f": {self.redact(said)[:200]!r}"
            raise InnerHostError(f"{self.name}: `{command}` answered with no JSON{quoted}.") from err


@dataclass(slots=True, kw_only=True)
class Steps:
    """What was done to make a host ready, each with its time.

    Attributes:
        host: Whose steps.
        emit: Takes the events.
        done: The steps that have ended.
    """

    host: str
    emit: events.Emit
    done: list[Phase] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, name: str, title: str) -> Iterator[events.Step]:
        """Do one step, called `verb_noun`."""
        began = time.monotonic()
        status, detail = PhaseStatus.FAILED, ""
        try:
            with events.step(self.emit, f"{self.host}/{name}", f"{self.host}: {title}") as step:
                yield step
            status = PhaseStatus.PASSED
        except StackyardError as err:
            detail = err.detail
            raise
        finally:
            took = time.monotonic() - began
            self.done.append(Phase(name=name, status=status, took_s=took, detail=detail))
