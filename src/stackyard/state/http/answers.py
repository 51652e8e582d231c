"""What is answered to what went wrong, in statuses that the engines know.

An engine retries 429 and 5xx, takes 409 and 423 to a LOCK for a conflict and then reads a lock from the
body, and takes 404 and an empty 200 to a GET for "no state yet": those two are never an error's answer.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import orjson

from stackyard.base import diagnostics, serving
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.clients.objects import ConflictError, StoreBusyError, StoreError
from stackyard.state.http.auth import LoginRefusedError, LoginThrottledError
from stackyard.state.http.bodies import BodyTooLargeError
from stackyard.state.lockinfo import LockInfo, make_lock_info
from stackyard.state.refusals import NotHolderError, StateLockedError, StateRefusedError

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["RightMissingError", "answer_error", "status_of"]

_CONFLICT = 409
_UNPROCESSABLE = 422
_RETRY_AFTER_S = 1


class RightMissingError(StackyardError):
    """A principal may not do this to this state."""

    code = "E-STATE-FORBIDDEN"
    summary = "The principal may not do this"
    default_remedy = "Use a token that may, or have an administrator give this one the right."


def status_of(err: StackyardError, method: str) -> int:
    """Return the status for an error."""
    if isinstance(err, StateRefusedError | StateLockedError):
        is_conflict = isinstance(err, NotHolderError | StateLockedError)
        if method == "LOCK" and err.http_status == _CONFLICT and not is_conflict:
            # To a LOCK, 409 means that someone else has the lock.
            return _UNPROCESSABLE
        return err.http_status
    kinds: tuple[tuple[type[StackyardError], int], ...] = (
        (LoginRefusedError, 401),
        (LoginThrottledError, 429),
        (RightMissingError, 403),
        (BodyTooLargeError, 413),
        (ConflictError, 412),
        (StoreError, 503),
        (StoreBusyError, 503),
        (InvalidInputError, 400),
    )
    return next((status for kind, status in kinds if isinstance(err, kind)), 500)


def answer_error(err: StackyardError, method: str, asked: LockInfo | None) -> web.Response:
    """Return the response for an error.

    Args:
        err: What went wrong.
        method: The method of the request.
        asked: The lock that the request was about, where it was about one.
    """
    status, headers = status_of(err, method), {}
    if isinstance(err, LoginRefusedError):
        headers["WWW-Authenticate"] = 'Basic realm="stackyard state"'
    if isinstance(err, LoginThrottledError):
        headers["Retry-After"] = str(max(1, round(err.wait_s)))
    if status == 503:
        headers["Retry-After"] = str(_RETRY_AFTER_S)
    response = serving.respond(status, _body(err, method, asked), reason=err.summary, headers=headers)
    if isinstance(err, LoginThrottledError) and err.is_guess:
        # Each further guess costs a connection of its own.
        response.force_close()
    return response


def _body(err: StackyardError, method: str, asked: LockInfo | None) -> bytes:
    if isinstance(err, StateLockedError):
        return err.holder.info.body()
    if method == "LOCK" and isinstance(err, NotHolderError) and asked is not None:
        return make_lock_info(dataclasses.replace(asked, info=err.detail)).body()
    return orjson.dumps({"error": diagnostics.describe(err)})
