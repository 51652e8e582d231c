"""The service inside a run of stackyard: on loopback, for its own engines, with a token of this run alone.

The engine learns everything through its environment, so that no secret is written to a file. Every lock
that the run takes carries its lease: once the run is dead, the next client takes the lock over.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import socket
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events, serving
from stackyard.base.run_stop import stop_run
from stackyard.state.http.app import StateApp
from stackyard.state.http.auth import Authenticator
from stackyard.state.http.layouts import STATES
from stackyard.state.lock_rules import describe_holder
from stackyard.state.model import Actor
from stackyard.state.names import check_name
from stackyard.state.principals import Access, Principal, Right, hash_token, make_token
from stackyard.state.run_lock import hold_state
from stackyard.state.runs import PROMISE_S, hold_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from stackyard.state.refusals import StateLockedError
    from stackyard.state.run_lock import RunLock
    from stackyard.state.service import StateService

__all__ = ["Embedded", "backend_environment", "serve_embedded"]

_RIGHTS = (Right.READ, Right.WRITE, Right.LOCK, Right.BREAK)
# Loopback answers at once; only a store that is away makes a retry worth its while, and the clients of most
# stores wait for half a minute themselves before they give up.
_RETRIES = 2
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The service of this run.

    Attributes:
        url: Where it answers.
        username: Who the engine is.
        password: The token of this run; to be redacted from all output.
        run_id: The run.
    """

    url: str
    username: str
    password: str = field(repr=False)
    run_id: str
    _app: StateApp = field(repr=False)
    _lease: str = field(repr=False)
    _emit: events.Emit = field(repr=False)

    @contextlib.asynccontextmanager
    async def hold(self, name: str, *, wait_s: float = 0.0) -> AsyncIterator[RunLock]:
        """Hold the lock of a state for the length of the block; engines of this run work under it.

        Raises:
            StateLockedError: Another run holds it for longer than we wait, or it is frozen.
            StateRefusedError: It was deleted, or is not registered.
            StoreError: The store cannot be used.
        """
        holding = hold_state(
            self._app.service,
            name,
            Actor(principal=self.username, address=_owner()),
            lease=self._lease,
            wait_s=wait_s,
            on_wait=_announcer(self._emit),
        )
        async with holding as held:
            self._app.run_lock = held
            try:
                yield held
            finally:
                self._app.run_lock = None

    def environment(self, name: str) -> Mapping[str, str]:
        """Return what an engine needs in its environment to use a state."""
        return backend_environment(self.url, name, username=self.username, password=self.password)


def backend_environment(url: str, name: str, *, username: str, password: str) -> dict[str, str]:
    """Return the settings of `backend "http"` for a state, as engines read them from the environment."""
    address = f"{url}{STATES}{check_name(name)}"
    return {
        "TF_HTTP_ADDRESS": address,
        "TF_HTTP_LOCK_ADDRESS": address,
        "TF_HTTP_UNLOCK_ADDRESS": address,
        "TF_HTTP_USERNAME": username,
        "TF_HTTP_PASSWORD": password,
        "TF_HTTP_RETRY_MAX": str(_RETRIES),
        "TF_HTTP_RETRY_WAIT_MIN": "1",
        "TF_HTTP_RETRY_WAIT_MAX": "5",
    }


@contextlib.asynccontextmanager
async def serve_embedded(
    service: StateService,
    *,
    prefix: str = "",
    emit: events.Emit = events.ignore,
    promise_s: float = PROMISE_S,
) -> AsyncIterator[Embedded]:
    """Serve states to the engines of this run, for the length of the block.

    Args:
        service: The states; the block does not close their store.
        prefix: The token of this run is good for the states at or below it.
        emit: Told when an engine waits for a lock: for whom, since when, and in which place.
        promise_s: How long others must see this run silent before they take its locks over.

    Raises:
        StoreError: The store cannot be used.
        ListenError: There is no free port.
    """
    run_id, token = uuid.uuid4().hex, make_token()
    who = _owner()
    own = Principal(
        name=f"run-{run_id[:12]}",
        access=(Access(prefix=prefix, rights=_RIGHTS),),
        token_sha256=hash_token(token),
        note=who,
    )
    on_loss = functools.partial(stop_run, emit=emit)
    async with hold_run(service.objects, run_id, owner=who, promise_s=promise_s, on_loss=on_loss) as lease:
        app = StateApp(
            service,
            Authenticator(service.principals, own=own),
            lease=lease,
            on_wait=_announcer(emit),
            is_own=True,
        )
        limits = serving.ServerLimits(max_body_bytes=256 * _MIB)
        try:
            async with serving.serve(app.handle, limits=limits) as server:
                yield Embedded(
                    url=server.url,
                    username=own.name,
                    password=token,
                    run_id=run_id,
                    _app=app,
                    _lease=lease,
                    _emit=emit,
                )
        finally:
            app.close()


def _announcer(emit: events.Emit) -> Callable[[str, StateLockedError], None]:
    """Return what tells of each holder that has to be waited for, and of each change of the place."""
    said: dict[str, tuple[str, int | None]] = {}

    def announce(name: str, err: StateLockedError) -> None:
        now = (err.holder.info.id, err.place)
        if said.get(name) == now:
            return
        said[name] = now
        place = "" if err.place is None else f"; place {err.place} in the queue"
        text = f"the lock of {name}, held by {describe_holder(err.holder, time.time())}{place}"
        emit(events.StepWaiting(step=f"state {name}", waiting_for=text))

    return announce


def _owner() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user that has no name.
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
