"""Several configurations of the provider in one run: which of them a call of the engine belongs to.

A call does not name its configuration. But an engine opens a connection for each instance of a provider that
it configures, so the connection tells. Connections with the same settings share one session.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from stackyard.provider.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.provider.session import Session
    from stackyard.provider.settings import Settings

__all__ = ["CONNECTION", "Sessions"]

# The connection that the current call came by.
CONNECTION: ContextVar[object] = ContextVar("CONNECTION")


class Sessions:
    """The sessions, from the first configuration to the end of serving.

    Args:
        make: Makes a session for an endpoint, whose entries in the journal are kept apart from others.
    """

    def __init__(self, make: Callable[[str], Session]) -> None:
        self._make = make
        self._known: list[tuple[Settings, Session]] = []
        self._by_connection: WeakKeyDictionary[object, Session] = WeakKeyDictionary()
        self._not_configured = make("")
        self._configuring = asyncio.Lock()

    async def configure(self, settings: Settings | None) -> None:
        """Use these settings for the current connection; None where they are not known yet.

        Raises:
            ProxmoxError: The cluster does not accept us.
            ProxmoxUnreachableError: It cannot be reached, or is not the one that is trusted.
        """
        session = self._not_configured
        if settings is not None:
            async with self._configuring:
                session = await self._open(settings)
        if (connection := CONNECTION.get(None)) is not None:
            self._by_connection[connection] = session

    async def _open(self, settings: Settings) -> Session:
        for known, session in self._known:
            if known == settings:
                await session.configure(settings)
                return session
        session = self._make(settings.connection.endpoint)
        try:
            await session.configure(settings)
        except BaseException:
            await session.close()
            raise
        self._known.append((settings, session))
        return session

    @property
    def operations(self) -> Operations:
        """The operations of the current connection."""
        connection = CONNECTION.get(None)
        session = self._not_configured if connection is None else self._by_connection.get(connection)
        return Operations(session or self._not_configured)

    @property
    def first(self) -> Session | None:
        """The session that was configured first; None before."""
        return self._known[0][1] if self._known else None

    @property
    def configured(self) -> tuple[Session, ...]:
        """The sessions that were configured, in their order."""
        return tuple(session for _, session in self._known)

    def stop(self) -> None:
        """End every wait: the user interrupted the run."""
        for _, session in self._known:
            session.stop()

    async def close(self) -> None:
        """Close the connections to all clusters."""
        for _, session in self._known:
            await session.close()
