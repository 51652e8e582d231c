"""What an answer that is an error means."""

from __future__ import annotations

import email.utils
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from stackyard.base.visible import on_one_line
from stackyard.clients.forge.failures import (
    ForgeConflictError,
    ForgeError,
    ForgeNotFoundError,
    ForgeRateLimitedError,
    ForgeRefusedError,
    ForgeUnauthorizedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.clients.forge.answers import Answer

__all__ = ["ForgeRequest", "make_refusal"]

_LONGEST = 500
# GitHub asks for a minute where it does not say more.
_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 24 * 3600.0
_KINDS: Mapping[int, type[ForgeConflictError | ForgeNotFoundError | ForgeUnauthorizedError]] = {
    HTTPStatus.UNAUTHORIZED: ForgeUnauthorizedError,
    HTTPStatus.FORBIDDEN: ForgeUnauthorizedError,
    HTTPStatus.NOT_FOUND: ForgeNotFoundError,
    HTTPStatus.GONE: ForgeNotFoundError,
    HTTPStatus.CONFLICT: ForgeConflictError,
    HTTPStatus.PRECONDITION_FAILED: ForgeConflictError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeRequest:
    """Which request it was; its query and body are left out."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {on_one_line(self.path)}"


def make_refusal(request: ForgeRequest, answer: Answer, redact: Callable[[str], str]) -> ForgeError:
    """Return the error that an answer means, in the words of the forge."""
    said = on_one_line(redact("; ".join(_read_reasons(answer.document))))[:_LONGEST].rstrip(". ")
    detail = f"{request}: {answer.status}{f' {said}' if said else ''}."
    if _is_limited(answer, said):
        pause_s = _read_pause(answer.headers)
        return ForgeRateLimitedError(detail, retry_after_s=pause_s, status=answer.status)
    return _KINDS.get(answer.status, ForgeRefusedError)(detail, status=answer.status)


def _read_reasons(document: Any) -> Iterator[str]:
    """Yield why: `message` and `errors` of Gitea and GitHub, `message` and `error` of GitLab."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, list):
        for one in document[:10]:
            yield from _read_reasons(one)
    elif isinstance(document, dict):
        named = [document[name] for name in ("message", "error", "errors") if document.get(name)]
        for one in named:
            yield from _read_reasons(one)
        if not named:
            # GitLab lists reasons by field; GitHub has an object for each.
            yield ", ".join(f"{name}: {_flat(value)}" for name, value in list(document.items())[:10])


def _flat(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _is_limited(answer: Answer, said: str) -> bool:
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    # GitHub forbids for a while, with one of these.
    return answer.status == HTTPStatus.FORBIDDEN and (
        "retry-after" in answer.headers
        or answer.headers.get("x-ratelimit-remaining") == "0"
        or "rate limit" in said.casefold()
    )


def _read_pause(headers: Mapping[str, str]) -> float:
    """Return after how many seconds the forge may be asked again."""
    after = headers.get("retry-after", "").strip()
    if after.isdecimal():
        return min(float(after), _LONGEST_PAUSE_S)
    if after:
        try:
            until = email.utils.parsedate_to_datetime(after).timestamp()
        except ValueError:
            return _PAUSE_S
        return min(max(until - time.time(), 0.0), _LONGEST_PAUSE_S)
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        reset = headers.get(name, "")
        if reset.isdecimal():
            return min(max(float(reset) - time.time(), 0.0), _LONGEST_PAUSE_S)
    return _PAUSE_S
