"""Calls of the API: who we are, what is tried again, and reads that are shared."""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.base.errors import InterruptedRunError
from stackyard.base.redaction import Redactor
from stackyard.clients.proxmox.encoding import Params, encode
from stackyard.clients.proxmox.failures import (
    AnswerLostError,
    AnswerUnusableError,
    Call,
    LoginRefusedError,
    ProxmoxUnreachableError,
    RefusedError,
    make_refused_error,
)
from stackyard.clients.proxmox.login import Identity
from stackyard.clients.proxmox.origin import name_origin
from stackyard.clients.proxmox.shapes import wrong_shape
from stackyard.clients.proxmox.shared_reads import SharedReads
from stackyard.clients.proxmox.transport import (
    Body,
    EncodedForm,
    LostAnswerError,
    NotSentError,
    Reply,
    Transport,
    UnusableAnswerError,
    Upload,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.clients.proxmox.connection import Connection

__all__ = ["Client"]

# Refusals that say "not now": a lock stood in the way, and nothing was done.
_BUSY = re.compile(
    r"can't lock file .* - got timeout|got lock request timeout|got lock timeout"
    r"|got no worker upid|(VM|CT) is locked \((?!suspended|create|mounted)"
)
# What a node's proxy answers when it could not reach the other node.
_PROXY_FAILED = range(595, 600)
_READ_ATTEMPTS = 4
_CONNECT_ATTEMPTS = 4
_BACKOFF = Backoff(0.05, 3.0)


class Client:
    """Speaks to one cluster; use it in an `async with` block.

    A read is repeated when its connection breaks. A call that changes something is repeated only when it
    cannot have done anything: the connection was never made, or a lock was in the way. When the answer of
    such a call is lost, `AnswerLostError` leaves it to the caller to look, unless it was marked `repeatable`.

    Args:
        connection: Where to and as whom.
        stopping: Set from outside to end every wait with `InterruptedRunError`.
    """

    def __init__(self, connection: Connection, *, stopping: asyncio.Event | None = None) -> None:
        self.connection = connection
        self.redactor = Redactor(connection.credentials.secrets)
        self.stopping = stopping or asyncio.Event()
        self._transport = Transport(connection, self.redactor)
        self._identity = Identity(connection.credentials, self._log_in)
        self._reads = SharedReads()
        # Is given the id of each task that someone begins to wait for.
        self.on_task: Callable[[str], None] | None = None

    async def __aenter__(self) -> Client:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    async def get(
        self,
        path: str,
        params: Params | None = None,
        *,
        max_age_s: float = 0.0,
        despite_writes: bool = False,
    ) -> Any:
        """Read; identical reads at the same time are one call.

        Args:
            path: From the root of the API: `/nodes/pve1/qemu`.
            params: The query.
            max_age_s: Accept an answer this old, if nothing was written since.
            despite_writes: Accept it although something was written since.

        Raises:
            RefusedError: Proxmox answered with an error.
            AnswerUnusableError: The answer is too large, not JSON, or not of the form that it has to have.
            ProxmoxUnreachableError: It does not answer.
        """
        query = encode(params or {})
        return await self._reads.get(
            (path, query),
            lambda: self._read(Call("GET", path), query),
            max_age_s,
            despite_writes=despite_writes,
        )

    async def get_pending(self, path: str) -> str:
        """Return the changes that were written and not yet activated, as Proxmox shows them beside a list.

        Raises:
            RefusedError: Proxmox answered with an error.
            ProxmoxUnreachableError: It does not answer.
        """
        return (await self._repeat(Call("GET", path), "", None, repeatable=True)).changes

    async def post(self, path: str, params: Params | None = None, *, repeatable: bool = False) -> Any:
        """Create or start something.

        Raises:
            RefusedError: Proxmox answered with an error; nothing was done.
            AnswerLostError: No one knows whether it was done.
            ProxmoxUnreachableError: It does not answer; nothing was done.
        """
        return await self._write(
            Call("POST", path), "", EncodedForm(encode(params or {})), repeatable=repeatable
        )

    async def put(self, path: str, params: Params | None = None, *, repeatable: bool = True) -> Any:
        """Set something; errors as for `post`. Doing it twice is the same as once unless said otherwise."""
        return await self._write(
            Call("PUT", path), "", EncodedForm(encode(params or {})), repeatable=repeatable
        )

    async def delete(self, path: str, params: Params | None = None, *, repeatable: bool = True) -> Any:
        """Remove something; errors as for `post`. A second try may find it gone (`MissingError`)."""
        return await self._write(Call("DELETE", path), encode(params or {}), None, repeatable=repeatable)

    async def upload(self, path: str, file: Upload, *, timeout_s: float) -> Any:
        """Send a file; errors as for `post`."""
        return await self._write(Call("POST", path), "", file, repeatable=False, timeout_s=timeout_s)

    def expire_reads(self) -> None:
        """Share no answer from before now: something has changed on the other side."""
        self._reads.expire()

    async def pause(self, seconds: float) -> None:
        """Wait, unless someone asks us to stop.

        Raises:
            InterruptedRunError: Someone did.
        """
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return
        raise InterruptedRunError("The run was asked to stop while it waited for Proxmox.")

    async def _read(self, call: Call, query: str) -> Any:
        answer = (await self._repeat(call, query, None, repeatable=True)).data
        problem = wrong_shape(call.path, answer)
        if problem is not None:
            raise _unusable(call, UnusableAnswerError(problem))
        return answer

    async def _write(
        self, call: Call, query: str, body: Body, *, repeatable: bool, timeout_s: float | None = None
    ) -> Any:
        try:
            reply = await self._repeat(call, query, body, repeatable=repeatable, timeout_s=timeout_s)
            return reply.data
        finally:
            self._reads.note_write()

    async def _repeat(
        self, call: Call, query: str, body: Body, *, repeatable: bool, timeout_s: float | None = None
    ) -> Reply:
        """Send a call until it is answered; an error names the setting that it is about."""
        try:
            return await self._send(call, query, body, repeatable=repeatable, timeout_s=timeout_s)
        except (LoginRefusedError, ProxmoxUnreachableError) as err:
            await name_origin(err, self.connection)
            raise

    async def _send(
        self, call: Call, query: str, body: Body, *, repeatable: bool, timeout_s: float | None
    ) -> Reply:
        """Send a call until it is answered, as often as that cannot do harm."""
        pauses, deadline = iter(_BACKOFF), time.monotonic() + self.connection.patience_s
        lost = unsent = 0
        while True:
            try:
                reply = await self._send_authorized(call, query, body, timeout_s)
            except NotSentError as err:
                unsent += 1
                if unsent >= _CONNECT_ATTEMPTS:
                    raise ProxmoxUnreachableError(call, f"{call} could not be sent: {err}.") from err
            except LostAnswerError as err:
                lost += 1
                if not repeatable or lost >= _READ_ATTEMPTS:
                    raise _make_lost_error(call, err) from err
            except UnusableAnswerError as err:
                raise _unusable(call, err) from err
            else:
                if reply.refusal is None:
                    return reply
                error = make_refused_error(call, reply.refusal)
                proxy_failed = reply.refusal.status in _PROXY_FAILED and repeatable
                lost += proxy_failed
                if not (proxy_failed and lost < _READ_ATTEMPTS) and not self._is_busy(error, deadline):
                    raise error
            await self.pause(next(pauses))

    def _is_busy(self, error: RefusedError, deadline: float) -> bool:
        return bool(_BUSY.search(error.text)) and time.monotonic() < deadline

    async def _send_authorized(self, call: Call, query: str, body: Body, timeout_s: float | None) -> Reply:
        headers = await self._identity.headers(call.method)
        reply = await self._transport.send(call, query=query, body=body, headers=headers, timeout_s=timeout_s)
        if reply.refusal is None or reply.refusal.status != 401 or not self._identity.can_renew:
            return reply
        # Refused before it was looked at: a ticket that has expired, which a new one may replace.
        await self._identity.forget(headers)
        headers = await self._identity.headers(call.method)
        return await self._transport.send(call, query=query, body=body, headers=headers, timeout_s=timeout_s)

    async def _log_in(self, call: Call, form: str) -> Any:
        reply = await self._transport.send(call, query="", body=EncodedForm(form), headers={}, timeout_s=None)
        if reply.refusal is not None:
            raise make_refused_error(call, reply.refusal)
        return reply.data


def _make_lost_error(call: Call, err: LostAnswerError) -> AnswerLostError | ProxmoxUnreachableError:
    if call.method == "GET":
        return ProxmoxUnreachableError(call, f"{call} was not answered: {err}.")
    return AnswerLostError(call, f"{call} was sent, and {err}; it may have been done or not.")


def _unusable(call: Call, err: UnusableAnswerError) -> AnswerLostError | AnswerUnusableError:
    text = f"{call} was answered, and the answer {err}"
    if call.method == "GET":
        return AnswerUnusableError(call, f"{text}.")
    return AnswerLostError(call, f"{text}; it may have been done or not.")
