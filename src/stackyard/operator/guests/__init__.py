"""Running guests: reach them over SSH, apply their specs, and check the result.

`context.guest_context` holds the shared data. `configuring.configure` pushes a spec or waits until the
guest has fetched it. `pull.pull_service` is the controller for guests that fetch, and `inspecting.inspect`
compares a guest with its spec. The results are phases: a failed phase has a reason, and no exception is
raised for it.
"""

from __future__ import annotations

from stackyard.operator.guests.configuration import configure
from stackyard.operator.guests.context import GuestContext, GuestTimeouts, guest_context
from stackyard.operator.guests.inspection import inspect
from stackyard.operator.guests.pull import PullService, pull_service

__all__ = [
    "GuestContext",
    "GuestTimeouts",
    "PullService",
    "configure",
    "guest_context",
    "inspect",
    "pull_service",
]
