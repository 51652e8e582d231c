"""Phases that are stopped when their time is over."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["PhaseTimeoutError", "limit_phase"]


class PhaseTimeoutError(StackyardError):
    """A phase took longer than it may, and was stopped."""

    code = "E-OPERATOR-TIMEOUT"
    summary = "A phase took too long"
    default_remedy = "Give it more with `--timeout PHASE=SECONDS`, or with `timeouts` in site.yaml."


@contextlib.asynccontextmanager
async def limit_phase(seconds: float | None, phase: str, where: str) -> AsyncIterator[None]:
    """Stop what runs inside of the block when its time is over; never where none is given.

    Raises:
        PhaseTimeoutError: It was stopped.
    """
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            yield
    except TimeoutError as err:
        if not deadline.expired():
            raise
        raise PhaseTimeoutError(f"`{phase}` on {where} was not done after {seconds:g} s.") from err
