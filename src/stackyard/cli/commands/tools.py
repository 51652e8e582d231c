"""`stackyard tools`: the programs that stackyard drives."""

from __future__ import annotations

from stackyard.cli.command import group

__all__ = ["tools"]


@group("tools")
def tools() -> None:
    """Show and install the programs that stackyard drives."""
