"""The journal of calls: what every client asked and what it was told, secrets masked."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.redaction import MASK

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Journal", "JournalEntry", "is_secret", "mask"]

_SECRET = frozenset(
    (
        "apikey",
        "apitoken",
        "ca-key",
        "certkey",
        "cipassword",
        "client-key",
        "confirmation-password",
        "eab-hmac-key",
        "encryption-key",
        "key",
        "keyring",
        "new-password",
        "otp",
        "password",
        "private-key",
        "secret",
        "target-endpoint",
        "tfa-challenge",
        "ticket",
        "token",
        "vncticket",
    )
)
# What is secret of some objects alone: the data of a DNS plugin is made of tokens and passwords.
_SECRET_BELOW = {"/cluster/acme/plugins": frozenset(("data",))}
_MOST_KEPT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One call."""

    number: int
    time: float
    method: str
    path: str
    parameters: Mapping[str, Any]
    user: str | None
    status: int
    reason: str
    result: str | None = None


@dataclass(slots=True)
class Journal:
    """The latest calls, the oldest first."""

    _entries: deque[JournalEntry] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    _count: int = 0

    @property
    def count(self) -> int:
        """How many calls were made since the start, kept or not."""
        return self._count

    def add(self, **facts: Any) -> None:
        """Write down one call; see `JournalEntry` for the facts."""
        self._count += 1
        self._entries.append(JournalEntry(number=self._count, **facts))

    def entries(self, after: int = 0) -> list[JournalEntry]:
        """Return the calls past a number."""
        return [entry for entry in self._entries if entry.number > after]

    def clear(self) -> None:
        """Forget all calls; numbers continue."""
        self._entries.clear()


def is_secret(name: str) -> bool:
    """Return whether the value of a parameter is no one's business."""
    return name in _SECRET


def mask(path: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call with the values of secret ones masked."""
    here = _SECRET_BELOW.get("/".join(path.split("/")[:4]), frozenset())
    return {
        key: MASK if value and (is_secret(key) or key in here) else value for key, value in parameters.items()
    }
