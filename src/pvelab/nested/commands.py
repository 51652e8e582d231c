"""Proxmox's own commands, typed in a guest that is a node: run by the lab inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["run_on_node"]

# A message to a guest holds little more.
_MOST_BYTES = 90_000


async def run_on_node(world: World, vmid: int, user: str, argv: list[str]) -> dict[str, Any] | None:
    """Run a command on the node in a guest; return its `status`, `out` and `err`, None if there is no node.

    Args:
        world: The lab of the guest.
        vmid: The guest.
        user: Who runs it.
        argv: The command and its arguments.
    """
    inner = world.nest.worlds.get(vmid)
    run = None if inner is None else inner.nest.run_command
    if run is None or not argv:
        return None
    if inner is not None and inner.nest.take_in is not None:
        await inner.nest.take_in()
    status, out, err = await run(user, argv)
    shown = {"out": out.decode(errors="replace"), "err": err.decode(errors="replace")}
    if len(out) + len(err) > _MOST_BYTES:
        shown = {"out": shown["out"][:_MOST_BYTES], "err": f"{argv[0]}: the rest does not fit here\n"}
        status = status or 1
    return {"status": status, **shown}
