"""What the guests that are being changed wait for and why they fail, for those who show it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GuestWaits"]

# The types of tasks on guests begin so; the id of such a task is the one of the guest.
_TASK = re.compile(r"UPID:[^:]+(?::[0-9A-Fa-f]+){3}:((?:qm|vz)[a-z]+):([0-9]+):")


class GuestWaits:
    """Passes on what a guest waits for, by its VM ID.

    Attributes:
        listener: Takes the VM ID and what is waited for; set by the one who shows it.
        on_failure: Takes the VM ID and why the change of a guest failed.
        names: The names of new guests by their VM IDs, some of which Proxmox has chosen.
    """

    def __init__(self) -> None:
        self.listener: Callable[[int, str], None] | None = None
        self.on_failure: Callable[[int, str], None] | None = None
        self.names: dict[int, str] = {}

    def assign(self, vm_id: int, name: str) -> None:
        """Say which guest gets a VM ID."""
        self.names[vm_id] = name

    def report(self, vm_id: int, waiting_for: str) -> None:
        """Say what a guest waits for now."""
        if self.listener is not None:
            self.listener(vm_id, waiting_for)

    def report_failure(self, vm_id: int, reason: str) -> None:
        """Say why the change of a guest failed."""
        if self.on_failure is not None:
            self.on_failure(vm_id, reason)

    def report_task(self, upid: str) -> None:
        """Say that a guest waits for a task; tasks on anything else are not reported."""
        if (found := _TASK.match(upid)) is not None:
            self.report(int(found[2]), f"the task {found[1]}")
