"""Running the work of a command so that Ctrl-C stops it cleanly, and a second one at once."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, TypeVar

from stackyard import events
from stackyard.errors import ExitStatus, InterruptedRunError

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["run_interruptibly"]

T = TypeVar("T")

# After the second signal, what is left to do may take this long and no longer.
_LAST_CHANCE_S = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptibly(work: Coroutine[Any, Any, T], emit: events.Emit) -> T:
    """Run asynchronous work to its end, or until the user or the system says stop.

    The first signal cancels the work, which cleans up and lets programs such as tofu save their state. The
    second ends everything at once.

    Raises:
        InterruptedRunError: A signal stopped the work, and it stopped cleanly.
    """
    with asyncio.Runner() as runner:
        return runner.run(_watched(work, emit))


async def _watched(work: Coroutine[Any, Any, T], emit: events.Emit) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        task.cancel()
        if len(received) == 1:
            text = "Stopping cleanly; a second Ctrl-C stops at once."
            emit(events.LogLine(level=events.LogLevel.WARNING, source="stackyard", text=text))
        else:
            loop.call_later(_LAST_CHANCE_S, os._exit, ExitStatus.INTERRUPTED)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError as err:
        if not received:
            raise
        how = "at once" if len(received) > 1 else "cleanly"
        raise InterruptedRunError(f"Stopped {how} by {received[0].name}.") from err
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
