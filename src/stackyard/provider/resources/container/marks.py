"""The mark that a container carries from the call that makes it until it is finished.

It is the token of its entry in the journal, at the end of the description: the one text of a container that
is there from its beginning and means nothing to Proxmox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.provider.journal import Entry

__all__ = ["is_marked", "marked"]

_MARK = "stackyard is making this container: "


def marked(description: str | None, entry: Entry) -> str:
    """Return a description with the mark."""
    return f"{(description or '').rstrip()}\n{_MARK}{entry.token}".lstrip()


def is_marked(description: str | None, entry: Entry) -> bool:
    """Tell whether a description has the mark."""
    return f"{_MARK}{entry.token}" in (description or "")
