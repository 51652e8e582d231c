"""Guests once they run: reached over SSH, made what their specs say, and looked at.

`context.guest_context` holds what all of it needs, `configuring.configure` pushes a spec or waits until the
guest has fetched it, `pull.pull_service` is the controller that such guests fetch from, and
`inspecting.inspect` compares a guest with what it should be. What is done comes back as phases: a phase that
failed says why, and nothing is raised for it.
"""

from __future__ import annotations

from stackyard.operator.guests.configuring import configure
from stackyard.operator.guests.context import GuestContext, Patience, guest_context
from stackyard.operator.guests.inspecting import inspect
from stackyard.operator.guests.pull import PullService, pull_service

__all__ = [
    "GuestContext",
    "Patience",
    "PullService",
    "configure",
    "guest_context",
    "inspect",
    "pull_service",
]
