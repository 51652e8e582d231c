"""Which addresses answer, in a lab and all labs inside it: kept up to date, told to whoever asks.

Guests that run in a sandbox have a real network interface, and behind it only those addresses that answer at
the time. This tells them: one directory for a lab and everything inside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stackyard.lab.addresses import addresses_of, boot_seconds, has_booted

if TYPE_CHECKING:
    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["Directory", "Listener"]

# Told of addresses that answer from now on, and of those that do no longer.
Listener = Callable[[set[str], set[str]], None]


class Directory:
    """The addresses of guests and nodes of a lab and of the labs inside it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], frozenset[str]] = {}
        self._listeners: list[Listener] = []
        self._worlds: dict[int, World] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self._is_asked = False

    def follow(self, world: World) -> None:
        """Take in a lab; nobody looks at its guests before somebody asks."""
        self._worlds[id(world)] = world
        if self._is_asked:
            self._watch(world)

    def _watch(self, world: World) -> None:
        with world.store.transaction():
            world.store.watch("guests", lambda key, _, new: self._guest_changed(world, key, new))
            world.store.watch("nodes", lambda key, _, new: self._node_changed(world, key, new))

    async def leave(self, world: World) -> None:
        """Forget a lab that ends; with the last one nothing more is waited for."""
        del self._worlds[id(world)]
        for key in [key for key in self._known if key[0] == id(world)]:
            self._note(key, frozenset())
        if not self._worlds:
            for task in self._waiting:
                task.cancel()
            if self._waiting:
                await asyncio.wait(self._waiting)

    def listen(self, listener: Listener) -> None:
        """Tell somebody of all addresses and of every change."""
        if not self._is_asked:
            self._is_asked = True
            for world in list(self._worlds.values()):
                self._watch(world)
        self._listeners.append(listener)
        listener(set().union(*self._known.values()), set())

    def unlisten(self, listener: Listener) -> None:
        """Tell somebody nothing more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _guest_changed(self, world: World, key: str, new: Document | None) -> None:
        if id(world) in self._worlds:
            world.store.after_commit(lambda: self._look(world, key, new))

    def _look(self, world: World, key: str, guest: Document | None) -> None:
        place = (id(world), f"guest {key}")
        if guest is None or guest["status"] != "running":
            self._note(place, frozenset())
            return
        if not has_booted(world, guest):
            self._note(place, frozenset())
            task = asyncio.get_running_loop().create_task(self._look_later(world, key, guest))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
            return
        found = (one for interface in addresses_of(world, guest) for one in interface.addresses)
        self._note(place, frozenset(one.address for one in found if one.family == "inet"))

    async def _look_later(self, world: World, key: str, guest: Document) -> None:
        since = guest["run"].get("booting_since", guest["started"])
        await world.clock.sleep(since + boot_seconds(world, guest) - world.clock.now())
        if id(world) in self._worlds and world.guests.get(key) is guest:
            self._look(world, key, guest)

    def _node_changed(self, world: World, key: str, new: Document | None) -> None:
        # The node of a nested lab is a guest, which has the address already.
        if world.uplink is None:
            up = new is not None and new.get("online", 1)
            address: Any = new["ip"] if new is not None and up else None
            self._note((id(world), f"node {key}"), frozenset([str(address)] if address else []))

    def _note(self, place: tuple[int, str], addresses: frozenset[str]) -> None:
        before = self._known.get(place, frozenset())
        if before == addresses:
            return
        if addresses:
            self._known[place] = addresses
        else:
            del self._known[place]
        gone = {one for one in before - addresses if not any(one in known for known in self._known.values())}
        for listener in list(self._listeners):
            listener(set(addresses - before), gone)
