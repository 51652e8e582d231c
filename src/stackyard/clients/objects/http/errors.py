"""What a state service answered to a request for objects, as the errors that every store raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.visible import visible
from stackyard.clients.objects.base import (
    KeyFormError,
    StoreBusyError,
    StoreDamagedError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from stackyard.clients.objects.wire import MARK

if TYPE_CHECKING:
    from stackyard.base.errors import StackyardError
    from stackyard.clients.objects.http.connections import Reply

__all__ = ["MAY_PASS", "make_error", "may_pass", "not_understood", "retry_after_s", "token_refused"]

# The service asks for patience, or what is before it does.
MAY_PASS = frozenset({429, 502, 503, 504})
_FORBIDDEN = 403
_LONGEST_WAIT_S = 10.0
_LONGEST_TEXT = 500
_KINDS: dict[str, type[StackyardError]] = {
    kind.code: kind
    for kind in (
        KeyFormError,
        StoreBusyError,
        StoreDamagedError,
        StoreDeniedError,
        StoreError,
        StoreFullError,
        StoreReadOnlyError,
    )
}


def make_error(reply: Reply, label: str, *, is_write: bool) -> StackyardError:
    """Return the error for an answer that is one.

    Args:
        reply: The answer.
        label: The service.
        is_write: Whether something was to be written.
    """
    error = _read_error(reply)
    said = _text(error, "detail")
    if reply.status == _FORBIDDEN:
        kind = StoreReadOnlyError if is_write else StoreDeniedError
        remedy = "Ask an administrator to give the token the right `store` (`stackyard state token`)."
        return kind(f"{label} refused the request: {said or 'no reason given'}", remedy=remedy)
    if MARK not in reply.headers and reply.status not in MAY_PASS:
        return StoreError(
            f"The answer of {label} (HTTP status {reply.status}) is not that of a state service.",
            remedy="Check the address; the address of a controller ends with /state. An older service must be"
            " updated first.",
        )
    found = _KINDS.get(_text(error, "code"), StoreError)
    return found(
        f"{label} answered with HTTP status {reply.status}: {said or 'no reason given'}",
        remedy=_text(error, "remedy") or None,
    )


def may_pass(err: StackyardError) -> bool:
    """Return whether an error may be over when the request is sent again."""
    return type(err) in (StoreError, StoreBusyError)


def token_refused(label: str, remedy: str) -> StoreDeniedError:
    """Return the error for a token that is wrong, expired or revoked."""
    return StoreDeniedError(f"{label} refused the token: it is wrong, expired or revoked.", remedy=remedy)


def not_understood(label: str) -> StoreError:
    """Return the error for an answer in a form that no service has."""
    return StoreError(
        f"The answer of {label} is not valid.",
        remedy="Use the same version of stackyard on both sides, and check for a proxy that changes answers.",
    )


def retry_after_s(reply: Reply) -> float:
    """Return how long the service asks to wait before the next request."""
    text = reply.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_WAIT_S) if text.isascii() and text.isdigit() and len(text) < 8 else 0.0


def _read_error(reply: Reply) -> dict[str, Any]:
    try:
        found = parse_json(reply.body)
    except JsonError:
        return {}
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, dict) else {}


def _text(error: dict[str, Any], name: str) -> str:
    """Return a text of an error, safe to be shown."""
    found = error.get(name)
    return visible(found[:_LONGEST_TEXT]) if isinstance(found, str) else ""
