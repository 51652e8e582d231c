"""Making something once, though the answer may be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from stackyard.clients.forge.failures import ForgeUnreachableError
from stackyard.clients.forge.texts import is_same_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from stackyard.clients.forge.model import Comment, Issue

__all__ = ["MessageReader", "create_comment_once", "create_issue_once", "create_once"]

T = TypeVar("T")


class MessageReader(Protocol):
    """The part of a forge that shows what was written."""

    async def login(self) -> str:
        """Return whose token it is."""
        ...

    async def comments(self, number: int, *, after: int = 0) -> Sequence[Comment]:
        """Return the comments of a pull request."""
        ...

    async def find_issues(self, words: str, *, is_open: bool = True) -> Sequence[Issue]:
        """Return the issues of ours whose text has these words."""
        ...


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


async def create_comment_once(
    forge: MessageReader, number: int, body: str, create: Callable[[], Awaitable[Comment]]
) -> Comment:
    """Write a comment; where the answer is lost, look for the last one of ours with this text.

    Args:
        forge: Where to look.
        number: The pull request.
        body: The text.
        create: Writes it.

    Raises:
        ForgeError: It could not be written, or nobody knows.
    """

    async def find() -> Comment | None:
        login = await forge.login()
        ours = [one for one in await forge.comments(number) if one.author == login]
        return next((one for one in reversed(ours) if is_same_text(one.body, body)), None)

    return await create_once(create, find)


async def create_issue_once(
    forge: MessageReader, title: str, body: str, create: Callable[[], Awaitable[Issue]]
) -> Issue:
    """Open an issue; where the answer is lost, look for the last open one of ours with this text.

    Args:
        forge: Where to look.
        title: What it is called.
        body: Its text.
        create: Opens it.

    Raises:
        ForgeError: It could not be opened, or nobody knows.
    """

    async def find() -> Issue | None:
        ours = [one for one in await forge.find_issues(title) if one.title == title]
        return next((one for one in ours if is_same_text(one.body, body)), None)

    return await create_once(create, find)
