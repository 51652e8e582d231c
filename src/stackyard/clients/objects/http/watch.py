"""A watch at a state service: requests that it holds open until something changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from stackyard.clients.objects.http import errors
from stackyard.clients.objects.watch import PollingWatch
from stackyard.clients.objects.wire import ChangeReport, WireError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from stackyard.clients.objects.http.connections import Reply

__all__ = ["HttpWatch"]

# Shorter than what a proxy grants a silent connection.
_HELD_S = 25.0


class _Asks(Protocol):
    """Sends requests to a service."""

    def ask(self, query: Mapping[str, str], *, held_s: float = 0.0, patience_s: float | None = None) -> Reply:
        """Send a request and return its answer."""


class HttpWatch:
    """Waits for a change below a prefix; a context manager.

    Args:
        service: The service.
        prefix: What is watched.
        label: What the service is called in errors.
    """

    def __init__(self, service: _Asks, prefix: str, *, label: str) -> None:
        self._service = service
        self._prefix = prefix
        self._label = label
        self._cursor = ""
        # A service whose store reports nothing, or that has no room for one more, lets us look for ourselves.
        self._polling: PollingWatch | None = None
        # A service behind a proxy may be several; one that does not know our cursor says that all may have
        # changed, and must not be asked again at once for ever.
        self._strange: PollingWatch | None = None

    def __enter__(self) -> Self:
        self._ask(0.0)
        return self

    def __exit__(self, *_: object) -> None:
        """The service forgets us when we do not ask any more."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change."""
        until = time.monotonic() + timeout_s
        while self._polling is None:
            left_s = until - time.monotonic()
            if self._ask(max(0.0, min(left_s, _HELD_S))):
                return True
            if time.monotonic() >= until:
                return False
        return self._polling.wait(max(0.0, until - time.monotonic()))

    def _ask(self, held_s: float) -> bool:
        if self._strange is not None and not self._strange.wait(held_s):
            return False
        query = {"watch": self._prefix, "cursor": self._cursor, "wait": f"{held_s:.3f}"}
        reply = self._service.ask(query, held_s=held_s)
        try:
            report = ChangeReport.from_json(reply.body)
        except WireError as err:
            raise errors.not_understood(self._label) from err
        if not report.cursor:
            self._polling = PollingWatch()
            return report.has_changed
        is_strange = bool(self._cursor) and self._cursor.partition(".")[0] != report.cursor.partition(".")[0]
        if is_strange and self._strange is None:
            self._strange = PollingWatch()
        elif not is_strange:
            self._strange = None
        self._cursor = report.cursor
        return report.has_changed
