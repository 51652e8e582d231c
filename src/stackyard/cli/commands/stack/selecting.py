"""Selecting stacks by what changed, for the commands that show it."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.cli.session import Session
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.selection import Selection

__all__ = ["pause_collection", "run_selection"]


def run_selection(session: Session, repository: StackRepository, base: str | None) -> Selection:
    """Return the stacks that differ from a base; git and the store are asked only where they have to be."""
    from stackyard.sources.stacks.selection import select, select_known  # lazy: only when a verb runs

    known = select_known(repository, base)
    if known is not None and known.base:
        return known
    applied = _read_applied_commits(repository) if base is None else {}
    if known is not None and not applied:
        return known
    return session.run(select(repository, base, applied))


def _read_applied_commits(repository: StackRepository) -> dict[str, str]:
    """Return by name the commit of each stack that was applied last, which counts on the default branch."""
    from stackyard.cli.runs.stacks.selection import applied_commits, read_applied  # lazy: the store
    from stackyard.sources.stacks.store import store_of  # lazy: as above

    return applied_commits(read_applied(store_of(repository)))


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Let no garbage be looked for: with thousands of stacks, nothing of what is read becomes any."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # What is there now stays until the end: it need not be looked at for garbage either.
            gc.freeze()
            gc.enable()
