"""High availability: which guests the cluster keeps running, and which of them it keeps apart."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from stackyard.desired.values import Key, Line, Many, Value

__all__ = ["Affinity", "HighAvailability"]

_Attempts = Annotated[int, Field(ge=0, le=10)]


class HighAvailability(Value):
    """How hard the cluster tries to keep a guest running; on which node, it decides itself from then on."""

    # Restarting in place comes first: a guest that was moved is not where it was written down any more.
    max_restart: _Attempts = 3
    max_relocate: _Attempts = 1
    comment: Line | None = None


class Affinity(Value):
    """A rule for guests under high availability: never on one node (negative), or always (positive)."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]+$", max_length=128)]
    kind: Literal["negative", "positive"] = "negative"
    # Keys of guests.
    guests: Annotated[Many[Key], Field(min_length=2)]
    comment: Line | None = None
