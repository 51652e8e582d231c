"""Making something once, though the answer may be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stackyard.clients.forge.failures import ForgeUnreachableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["create_once"]

T = TypeVar("T")


async def create_once(create: Callable[[], Awaitable[T]], find: Callable[[], Awaitable[T | None]]) -> T:
    """Make something on a forge; where the answer is lost, look whether it is there.

    Args:
        create: Makes it.
        find: Returns it, None where it is not there.

    Raises:
        ForgeError: It could not be made, or nobody knows.
    """
    try:
        return await create()
    except ForgeUnreachableError:
        found = await find()
        if found is None:
            raise
        return found
