"""Removing a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.resources.container.blocks import guest_of
from stackyard.provider.resources.container.power import shut_down

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["delete"]

_TIMEOUT_S = 60.0


async def delete(work: Work, state: Object) -> None:
    """Shut a container down and remove it with its volumes."""
    timeout_s = float(state.get("timeout_delete") or _TIMEOUT_S)
    guest = guest_of(work, state)
    if await guest.is_running():
        await shut_down(guest, timeout_s=timeout_s)
    await guest.remove(timeout_s=timeout_s)
    await work.session.journal.confirm(work.type_name, int(state["id"]))
