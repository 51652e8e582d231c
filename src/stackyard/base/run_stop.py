"""Stopping a run from within, as Ctrl-C does: the engine saves its state, and everything is released."""

from __future__ import annotations

import asyncio
import os
import signal
import weakref

from stackyard.base import events

__all__ = ["find_stop_reason", "stop_run"]

# The loops of runs that were asked to stop, and why.
_stopped: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, str] = weakref.WeakKeyDictionary()


def stop_run(reason: str, emit: events.Emit) -> None:
    """Report why the run of this loop stops, and stop it; later calls only report.

    Args:
        reason: Why it stops.
        emit: Takes the reason.
    """
    emit(events.LogLine(level=events.LogLevel.WARNING, source="runs", text=reason))
    loop = asyncio.get_running_loop()
    # A run holds several leases, and loses all of them with its store. A second signal would stop it at once.
    if loop not in _stopped:
        _stopped[loop] = reason
        os.kill(os.getpid(), signal.SIGTERM)


def find_stop_reason() -> str | None:
    """Return why the run of this loop stops itself; None if nothing but a signal stops it."""
    return _stopped.get(asyncio.get_running_loop())
