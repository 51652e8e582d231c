"""`tokens` in the file of a cluster."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from stackyard.desired.values import Value

__all__ = ["TokenEntry", "TokenId", "read_moment"]

TokenId = Annotated[
    str, StringConstraints(pattern=r"^[^@!=:/\s]+@[A-Za-z][A-Za-z0-9.\-_]+![A-Za-z][A-Za-z0-9.\-_]+$")
]
_StoreName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


def read_moment(text: str) -> int:
    """Return the seconds since 1970 of a moment with its time zone.

    Raises:
        ValueError: It is none.
    """
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in text:
        raise ValueError("must be a moment such as 2030-12-31T23:59:59Z")
    seconds = int(moment.timestamp())
    if seconds <= 0:
        # For Proxmox, zero is a token that never expires.
        raise ValueError("must be a moment after 1970")
    return seconds


def _require_moment(text: str) -> str:
    read_moment(text)
    return text


class TokenEntry(Value):
    """An API token; its secret is kept in the secrets of the site and nowhere else."""

    comment: str | None = None
    expiration_date: Annotated[str, AfterValidator(_require_moment)] | None = None
    # Whether it has privileges of its own, which `acl` gives with `token_id`, and not those of its user.
    privileges_separation: bool | None = None
    # What the secrets call it, below `api_tokens`; its name behind the `!` when absent.
    store: _StoreName | None = None
