"""Leaving nothing half done: what a piece of work made goes when the work does not reach its end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["undo_on_failure"]


@contextlib.contextmanager
def undo_on_failure(undo: Callable[[], None], *, failing: str = "") -> Iterator[None]:
    """Take back what the block did if anything ends it early: an error, or the end of its task.

    Args:
        undo: Takes it back. It must not wait: a worker that was asked to stop gets no time for that.
        failing: What Proxmox puts before the text of a problem there: `clone failed: `.

    Raises:
        PveError: The problem of the block, with those words before it.
    """
    try:
        yield
    except BaseException as err:
        # An interruption too (a stopped task is a cancelled one), which is no `Exception`.
        undo()
        if failing and isinstance(err, PveError):
            raise PveError(f"{failing}{err.text}") from err
        raise
