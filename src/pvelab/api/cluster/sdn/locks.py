"""The lock on the whole SDN configuration, which a client may hold across calls with a token."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import has_pending_changes
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.generate import new_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pvelab.server.call import Call

__all__ = ["acquire", "change_sdn", "drop_lock", "release"]

_COLLECTION, _KEY = "sdn", "lock"


@contextlib.contextmanager
def change_sdn(call: Call, text: str) -> Iterator[None]:
    """Change the configuration in the block, with the token of the call where the lock is held.

    Raises:
        PveError: With the text before it: someone else holds the lock, or the block failed.
    """
    with call.world.cluster.lock_file("domain-sdn", text):
        held = call.store.get(_COLLECTION, _KEY)
        if held is not None and held["token"] != call.params.get("lock-token"):
            raise PveError("invalid lock token provided!")
        yield


def drop_lock(call: Call) -> None:
    """Release the lock, no matter who holds it."""
    call.store.delete(_COLLECTION, _KEY)


@route("POST /cluster/sdn/lock")
def acquire(call: Call) -> Any:
    """Take the lock and answer its token."""
    with change_sdn(call, "could not acquire lock for SDN config"):
        if not call.params.get("allow-pending") and has_pending_changes(call.store):
            raise PveError("configuration has pending changes")
        token = new_uuid()
        call.store.put(_COLLECTION, _KEY, {"token": token})
        return token


@route("DELETE /cluster/sdn/lock")
def release(call: Call) -> Any:
    """Release the lock, with its token or by force."""
    if call.params.get("force"):
        drop_lock(call)
        return
    with change_sdn(call, "could not release lock"):
        drop_lock(call)
