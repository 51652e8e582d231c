"""Work that may take only so long, as the timeouts of a resource say it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["TimeLimitError", "time_limit"]


class TimeLimitError(StackyardError):
    """An operation on a resource took longer than its timeout.

    Args:
        what: What took too long.
        seconds: How long it was given.
        setting: The attribute that says so.
    """

    code = "E-PROVIDER-TIMEOUT"
    summary = "An operation took longer than its timeout"
    default_remedy = "Give the timeout that is named more time, and apply again."

    def __init__(self, what: str, *, seconds: float, setting: str) -> None:
        super().__init__(
            f"{what} did not end within {seconds:g} s (`{setting}`).",
            remedy=f"Look at the tasks on the node: what was begun there continues. Give `{setting}` more "
            "time, and apply again.",
        )


@contextlib.asynccontextmanager
async def time_limit(seconds: float, *, what: str, setting: str) -> AsyncIterator[Callable[[], None]]:
    """Give a block so many seconds; it gets a function that makes them begin again.

    Args:
        seconds: How long it may take.
        what: What the block does, to begin a sentence with.
        setting: The attribute that says how long it may take.

    Raises:
        TimeLimitError: It took longer, and was ended where it was.
    """
    limit = asyncio.timeout(seconds)

    def restart() -> None:
        limit.reschedule(asyncio.get_running_loop().time() + seconds)

    try:
        async with limit:
            yield restart
    except TimeoutError as err:
        if not limit.expired():
            raise
        raise TimeLimitError(what, seconds=seconds, setting=setting) from err
