"""Which distribution this is."""

from __future__ import annotations

__all__ = ["Distribution", "get_distro"]


class Distribution:
    """A distribution."""

    id = "Debian"
    codename = "bookworm"
    description = "Debian GNU/Linux 12 (bookworm)"
    release = "12"


def get_distro() -> Distribution:
    """Return the guest's own."""
    return Distribution()
