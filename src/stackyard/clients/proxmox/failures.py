"""What can go wrong with a call, each with the method, the path and what Proxmox answered.

::

    StackyardError
    ├── ProxmoxError                 a call failed
    │   ├── RefusedError             Proxmox answered with an error
    │   │   ├── MissingError         what the call is about does not exist
    │   │   └── LoginRefusedError    wrong, expired or missing credentials
    │   ├── AnswerLostError          the call was sent, its answer never came
    │   ├── TaskFailedError          the task that a call started ended badly
    │   └── TaskTimeoutError         it did not end in time
    └── UnreachableError
        └── ProxmoxUnreachableError  the call could not be sent
            └── UntrustedServerError the server is not the one that is trusted
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError, UnreachableError
from stackyard.base.visible import on_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AnswerLostError",
    "Call",
    "LoginRefusedError",
    "MissingError",
    "ProxmoxError",
    "ProxmoxUnreachableError",
    "Refusal",
    "RefusedError",
    "TaskFailedError",
    "TaskTimeoutError",
    "UntrustedServerError",
    "make_refused_error",
]


@dataclass(frozen=True, slots=True)
class Call:
    """Which call it was; its parameters are left out, since they may hold secrets."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


_LONGEST_REFUSAL = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What Proxmox answered: the status line, and what is wrong with which parameter."""

    status: int
    reason: str
    errors: Mapping[str, str] = field(default_factory=dict)
    message: str = ""

    def __str__(self) -> str:
        more = [f"{on_one_line(name)}: {on_one_line(text)}" for name, text in self.errors.items()]
        more += [line for line in self.message.splitlines() if line and not line.startswith(self.reason)]
        said = f"{self.status} {self.reason}".strip()
        # A guest can write some of it, through its agent, and as much as it wants.
        return f"{said} ({'; '.join(more)})"[:_LONGEST_REFUSAL] if more else said[:_LONGEST_REFUSAL]


class ProxmoxError(StackyardError):
    """A call of the Proxmox API failed.

    Args:
        call: Which call.
        detail: What happened.
        remedy: What to do about it.
    """

    code = "E-PROXMOX"
    summary = "A call of the Proxmox API failed"
    default_remedy = "Read what Proxmox answered; the log of its tasks on the node may say more."

    def __init__(self, call: Call, detail: str, *, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.call = call


class RefusedError(ProxmoxError):
    """Proxmox answered a call with an error; nothing was done."""

    code = "E-PROXMOX-REFUSED"
    summary = "Proxmox refused a call"
    default_remedy = "Correct what Proxmox names and run the command again."

    def __init__(self, call: Call, refusal: Refusal) -> None:
        super().__init__(call, f"{call} was refused: {refusal}.")
        self.refusal = refusal

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.refusal.status

    @property
    def text(self) -> str:
        """Everything that Proxmox said."""
        return str(self.refusal)


class MissingError(RefusedError):
    """What a call is about does not exist on the cluster."""

    code = "E-PROXMOX-MISSING"
    summary = "Proxmox has no such object"
    default_remedy = "Check the name, and whether another client removed the object."


class LoginRefusedError(RefusedError):
    """Proxmox did not accept the token, the ticket or the password."""

    code = "E-PROXMOX-LOGIN"
    summary = "Proxmox did not accept the credentials"
    default_remedy = (
        "Check the API token (USER@REALM!NAME=SECRET) or the user and password; a ticket lives for two hours."
    )


class AnswerLostError(ProxmoxError):
    """A call that changes something was sent and its answer never came: it may have been done or not."""

    code = "E-PROXMOX-ANSWER-LOST"
    summary = "The answer of Proxmox was lost"
    default_remedy = "Run the command again: it looks at what is there first."


class AnswerUnusableError(ProxmoxError):
    """Proxmox answered a read with something that is too large, or that is not JSON."""

    code = "E-PROXMOX-ANSWER"
    summary = "An answer of Proxmox cannot be used"
    default_remedy = (
        "Look at what the call names: a guest can make its agent answer anything; "
        "a proxy between here and Proxmox answers with pages of its own."
    )


class TaskFailedError(ProxmoxError):
    """A task that Proxmox started for us ended with an error."""

    code = "E-PROXMOX-TASK"
    summary = "A task on Proxmox failed"
    default_remedy = "Correct what the task names and run the command again; its whole log is on the node."

    def __init__(self, call: Call, *, upid: str, ended: str, log: tuple[str, ...] = ()) -> None:
        quoted = "".join(f"\n  {line}" for line in log)
        super().__init__(call, f"The task {upid} ended with: {ended}.{quoted}")
        self.upid = upid
        self.ended = ended
        self.log = log


class TaskTimeoutError(ProxmoxError):
    """A task that Proxmox started for us did not end in time; it continues there."""

    code = "E-PROXMOX-TASK-TIMEOUT"
    summary = "A task on Proxmox did not end in time"
    default_remedy = (
        "Look at the task on the node; run the command again when it has ended, or give it more time."
    )

    def __init__(self, call: Call, *, upid: str, timeout_s: float) -> None:
        super().__init__(call, f"The task {upid} did not end within {timeout_s:g} s.")
        self.upid = upid


class ProxmoxUnreachableError(UnreachableError):
    """The Proxmox API cannot be reached: wrong address, no network, nothing that answers."""

    code = "E-PROXMOX-UNREACHABLE"
    summary = "Proxmox cannot be reached"
    default_remedy = "Check the endpoint (https://HOST:8006/) and the network, then run the command again."

    def __init__(self, call: Call, detail: str, *, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.call = call


class UntrustedServerError(ProxmoxUnreachableError):
    """The server's certificate is not trusted: unknown authority, wrong fingerprint, expired, other host."""

    code = "E-PROXMOX-UNTRUSTED"
    summary = "The certificate of Proxmox is not trusted"
    default_remedy = (
        "Give the authority's certificate or the SHA-256 fingerprint of the server, or turn verification off "
        "with insecure = true."
    )

    def __init__(
        self, call: Call, detail: str, *, remedy: str | None = None, seen: str | None = None
    ) -> None:
        super().__init__(call, detail, remedy=remedy)
        # The fingerprint that the server has, where it is known.
        self.seen = seen


# A node that was asked for something that is not there answers 500, and only its text tells.
_MISSING = (
    "does not exist",
    "no such resource",
    "no such ha",
    "no such replication job",
    "no such user",
    "no such token",
    "No such file or directory",
)
# Of other things "not found" is also said when something else is wrong.
_MISSING_MAPPING = re.compile(r"\bmapping '[^']*' not found")
# The interface of a path is a parameter like any other, and a wrong one a request that is not valid.
_MISSING_INTERFACE = ("iface", "interface does not exist")


def make_refused_error(call: Call, refusal: Refusal) -> RefusedError:
    """Return the error for an answer."""
    if refusal.status == 401:
        return LoginRefusedError(call, refusal)
    text = str(refusal)
    is_missing = any(words in text for words in _MISSING) or _MISSING_MAPPING.search(text) is not None
    is_missing_interface = _MISSING_INTERFACE in [
        (name, said.strip()) for name, said in refusal.errors.items()
    ]
    if refusal.status == 404 or (refusal.status == 500 and is_missing) or is_missing_interface:
        return MissingError(call, refusal)
    return RefusedError(call, refusal)
