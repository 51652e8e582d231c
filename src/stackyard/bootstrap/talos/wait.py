"""Waiting for what tells nobody when it is ready, with the reason why it is not there yet."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.bootstrap.step import Report

__all__ = ["BootTimeoutError", "wait_for"]

_PAUSES = Backoff(0.1, 2.0)


class BootTimeoutError(StackyardError):
    """Something of a cold boot was waited for, and did not come in time."""

    code = "E-BOOTSTRAP-TIMEOUT"
    summary = "A node or a service did not come up in time"
    default_remedy = "Look at the console of the node; then run the command again: it continues from there."


async def wait_for(
    look: Callable[[], Awaitable[str]], *, what: str, timeout_s: float, report: Report
) -> None:
    """Look again and again until there is no reason left.

    Args:
        look: Returns why it is not there yet; empty when it is.
        what: What is waited for.
        timeout_s: How long.
        report: Called with each reason.

    Raises:
        BootTimeoutError: It did not come, with the last reason.
    """
    began, said = time.monotonic(), ""
    for pause_s in _PAUSES:
        reason = await _look(look, timeout_s - (time.monotonic() - began))
        if reason is None:
            raise BootTimeoutError(f"Waited {timeout_s:.0f} s for {what}: {said or 'no answer'}")
        if not reason:
            return
        if reason != said:
            report(reason)
            said = reason
        if time.monotonic() - began > timeout_s:
            raise BootTimeoutError(f"Waited {timeout_s:.0f} s for {what}: {reason}")
        await asyncio.sleep(pause_s)


async def _look(look: Callable[[], Awaitable[str]], timeout_s: float) -> str | None:
    """Look once; None if that took too long.

    A task of its own is ended whatever it waits for: Python 3.11.2 lets timeouts within each other escape.
    """
    task = asyncio.ensure_future(look())
    try:
        done, _ = await asyncio.wait({task}, timeout=max(0.0, timeout_s))
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    return task.result() if done else None
