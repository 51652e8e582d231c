"""Selecting stacks by what changed, for the commands that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.selection import Selection

__all__ = ["run_selection"]


def run_selection(session: Session, repository: StackRepository, base: str | None) -> Selection:
    """Return the stacks that differ from a base; git is run only where it has to be asked."""
    from stackyard.sources.stacks.selection import select, select_known  # lazy: only when a verb runs

    known = select_known(repository, base)
    return session.run(select(repository, base)) if known is None else known
