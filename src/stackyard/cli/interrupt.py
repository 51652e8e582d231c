"""Running the work of a command so that Ctrl-C stops it cleanly, and a second one at once."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, TypeVar

from stackyard.base import events
from stackyard.base.errors import ExitStatus, InterruptedRunError
from stackyard.base.run_stop import find_stop_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["run_interruptibly"]

T = TypeVar("T")

# After the second signal, what is left to do may take this long and no longer.
_LAST_CHANCE_S = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptibly(
    work: Coroutine[Any, Any, T],
    emit: events.Emit,
    *,
    on_abandon: Callable[[InterruptedRunError], None] | None = None,
) -> T:
    """Run asynchronous work to its end, or until the user or the system says stop.

    The first signal cancels the work, which cleans up and lets programs such as tofu save their state. The
    second ends everything at once: work that does not end by itself is abandoned, and the process with it.

    Args:
        work: What to run.
        emit: Told that the work is being stopped.
        on_abandon: Called as the last thing before the process ends with work that would not stop.

    Raises:
        InterruptedRunError: A signal stopped the work, and it stopped cleanly.
    """
    with asyncio.Runner() as runner:
        return runner.run(_watch(work, emit, on_abandon))


async def _watch(
    work: Coroutine[Any, Any, T],
    emit: events.Emit,
    on_abandon: Callable[[InterruptedRunError], None] | None,
) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        task.cancel()
        if len(received) == 1:
            text = "Stopping cleanly; a second Ctrl-C stops at once."
            emit(events.LogLine(level=events.LogLevel.WARNING, source="stackyard", text=text))
        elif len(received) == 2:
            loop.call_later(_LAST_CHANCE_S, abandon)

    def abandon() -> None:
        try:
            if on_abandon is not None:
                on_abandon(
                    InterruptedRunError(f"Stopped at once by {received[0].name}, with work left over.")
                )
        finally:
            os._exit(ExitStatus.INTERRUPTED)

    heard = _list_stop_signals()
    for number in heard:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task
    except asyncio.CancelledError as err:
        if not received:
            raise
        how = "at once" if len(received) > 1 else "cleanly"
        # A run that stops itself does so with a signal, which is not the reason.
        reason = find_stop_reason() if received[0] is signal.SIGTERM else None
        raise InterruptedRunError(reason or f"Stopped {how} by {received[0].name}.") from err
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def _list_stop_signals() -> list[signal.Signals]:
    """Return the signals that stop us: anyone who starts us with nohup wants no hang-up to do so."""
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in _SIGNALS if not (is_nohup and number is signal.SIGHUP)]
