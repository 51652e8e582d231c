"""The heartbeat of a lease: a thread that proves its holder alive, whatever else the holder does."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import StoreBusyError, StoreError
from stackyard.clients.objects.leases import LeaseLostError

if TYPE_CHECKING:
    from stackyard.clients.objects.leases import Lease

__all__ = ["Heartbeat"]


class Heartbeat:
    """Renews a lease from now on, until it is stopped or someone takes the lease over."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._ending = threading.Event()
        self._lost = threading.Event()
        self._beating = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    @property
    def is_lost(self) -> bool:
        """Whether someone took the lease over."""
        return self._lost.is_set()

    @property
    def is_held(self) -> bool:
        """Whether the lease is ours, as far as we know."""
        return not self._lost.is_set() and not self._ending.is_set()

    def beat(self) -> None:
        """Renew the lease now; a store that cannot be used for a moment is asked again later."""
        # Two at once would each take the other for someone else's.
        with self._beating, contextlib.suppress(StoreError, StoreBusyError):
            try:
                self._lease.beat()
            except LeaseLostError:
                self._lost.set()

    def stop(self) -> None:
        """Stop renewing, and wait for a heartbeat that is on its way."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(self._lease.promise_s / 3) and not self.is_lost:
            self.beat()
