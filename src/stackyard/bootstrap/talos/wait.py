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
        try:
            async with asyncio.timeout(timeout_s - (time.monotonic() - began)) as limit:
                reason = await look()
        except TimeoutError:
            if not limit.expired():
                raise
            raise BootTimeoutError(f"Waited {timeout_s:.0f} s for {what}: {said or 'no answer'}") from None
        if not reason:
            return
        if reason != said:
            report(reason)
            said = reason
        if time.monotonic() - began > timeout_s:
            raise BootTimeoutError(f"Waited {timeout_s:.0f} s for {what}: {reason}")
        await asyncio.sleep(pause_s)
