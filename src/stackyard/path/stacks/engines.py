"""The engines of stacks: each is looked for once in a command, however many stacks it runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stackyard.engine.tools.find import find_engine
from stackyard.engine.version import Flavour

if TYPE_CHECKING:
    from stackyard.engine.version import Engine

__all__ = ["Engines"]


class Engines:
    """The engines that the stacks of one command ask for."""

    def __init__(self) -> None:
        self._found: dict[Flavour | None, asyncio.Future[Engine]] = {}

    async def get(self, name: str | None) -> Engine:
        """Return an engine.

        Args:
            name: `tofu` or `terraform`; the first that is found when absent.

        Raises:
            EngineMissingError: It is not there.
        """
        wanted = None if name is None else Flavour(name)
        if wanted not in self._found:
            self._found[wanted] = asyncio.ensure_future(_find(wanted))
        return await asyncio.shield(self._found[wanted])


async def _find(wanted: Flavour | None) -> Engine:
    return (await find_engine(only=wanted)).engine
