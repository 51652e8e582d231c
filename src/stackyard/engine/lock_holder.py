"""Who holds a state lock, as far as the engine's words tell."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["LockHolder", "read_holder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """Who holds a state lock; a field that the backend does not tell is empty."""

    id: str
    operation: str = ""
    who: str = ""
    created: str = ""
    version: str = ""
    path: str = ""
    info: str = ""

    def __str__(self) -> str:
        who = self.who or "somebody"
        doing = f" for {self.operation}" if self.operation else ""
        since = f" since {self.created}" if self.created else ""
        return f"{who} holds lock {self.id}{doing}{since}"


# The engine prints a holder through one fixed template, the same in a JSON diagnostic and in text.
_HOLDER_LINE = re.compile(r"^ {2}(ID|Path|Operation|Who|Version|Created|Info):[ \t]*(.*)$", re.MULTILINE)
_HTTP_HOLDER = re.compile(r"already locked: ID=(\S+)")


def read_holder(detail: str) -> LockHolder | None:
    """Read who holds a lock from the detail of a lock failure, as far as it tells."""
    lines = {key.lower(): value.strip() for key, value in _HOLDER_LINE.findall(detail)}
    told = _HTTP_HOLDER.search(detail)
    if told is not None and lines.get("id") != told[1]:
        # Terraform 1.11 with an http backend shows its own request as the holder; only the id is true.
        return LockHolder(id=told[1])
    if not lines.get("id"):
        return None
    return LockHolder(**lines)
