"""Which addresses answer, in a lab and all labs inside it: kept up to date, told to the caller.

Guests that run in a sandbox have a real network interface, and behind it only those addresses that answer at
the time. This tells them: one directory for a lab and everything inside it. It costs nothing until someone
asks for the first time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pvelab.nested.network_location import NetworkLocation
from pvelab.world.guests.addresses import addresses_of, boot_seconds, has_booted

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Directory", "Listener"]

# Told of addresses that answer from now on and whose they are, and of those that do no longer.
Listener = Callable[[Mapping[str, NetworkLocation], set[str]], None]


class Directory:
    """The addresses of guests and nodes of a lab and of the labs inside it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], frozenset[str]] = {}
        self._places: dict[str, NetworkLocation] = {}
        self._holders: Counter[str] = Counter()
        self._listeners: list[Listener] = []
        self._worlds: dict[int, World] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self._is_asked = False

    def follow(self, world: World) -> None:
        """Take in a lab."""
        self._worlds[id(world)] = world
        world.store.watch("guests", lambda key, _, new: self._guest_changed(world, key, new))
        world.store.watch("nodes", lambda key, _, new: self._node_changed(world, key, new))
        if self._is_asked:
            self._read(world)

    async def leave(self, world: World) -> None:
        """Forget a lab that ends; with the last one nothing more is waited for."""
        del self._worlds[id(world)]
        for key in [key for key in self._known if key[0] == id(world)]:
            self._note(key, frozenset(), NetworkLocation(world=world))
        if not self._worlds:
            for task in self._waiting:
                task.cancel()
            if self._waiting:
                await asyncio.wait(self._waiting)

    def listen(self, listener: Listener) -> None:
        """Tell someone of all addresses and of every change."""
        if not self._is_asked:
            self._is_asked = True
            for world in list(self._worlds.values()):
                self._read(world)
        self._listeners.append(listener)
        listener(dict(self._places), set())

    def unlisten(self, listener: Listener) -> None:
        """Tell someone nothing more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _read(self, world: World) -> None:
        # One transaction for all leases that are given out meanwhile.
        with world.store.transaction():
            for key, guest in list(world.guests.all().items()):
                self._look(world, key, guest)
            for key, node in world.cluster.nodes().items():
                self._node_changed(world, key, node)

    def _guest_changed(self, world: World, key: str, new: Document | None) -> None:
        if self._is_asked and id(world) in self._worlds:
            world.store.after_commit(lambda: self._look(world, key, new))

    def _look(self, world: World, key: str, guest: Document | None) -> None:
        place = (id(world), f"guest {key}")
        if guest is None or guest["status"] != "running":
            self._note(place, frozenset(), NetworkLocation(world=world, guest=guest))
        elif not has_booted(world, guest):
            self._note(place, frozenset(), NetworkLocation(world=world, guest=guest))
            task = asyncio.get_running_loop().create_task(self._look_later(world, key, guest))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
        else:
            found = (one for interface in addresses_of(world, guest) for one in interface.addresses)
            addresses = frozenset(one.address for one in found if one.family == "inet")
            self._note(place, addresses, NetworkLocation(world=world, guest=guest))

    async def _look_later(self, world: World, key: str, guest: Document) -> None:
        since = guest["run"].get("booting_since", guest["started"])
        await world.clock.sleep(since + boot_seconds(world, guest) - world.clock.now())
        if id(world) in self._worlds and world.guests.get(key) is guest:
            self._look(world, key, guest)

    def _node_changed(self, world: World, key: str, new: Document | None) -> None:
        # The node of a nested lab is a guest, which has the address already.
        if self._is_asked and world.uplink is None:
            is_up = new is not None and new.get("online", 1)
            addresses = frozenset([str(new["ip"])] if new is not None and is_up else [])
            self._note((id(world), f"node {key}"), addresses, NetworkLocation(world=world, node=key))

    def _note(self, key: tuple[int, str], addresses: frozenset[str], place: NetworkLocation) -> None:
        before = self._known.get(key, frozenset())
        if before == addresses:
            return
        if addresses:
            self._known[key] = addresses
        else:
            del self._known[key]
        added = dict.fromkeys(addresses - before, place)
        # Two may have the same address; it is gone with the second.
        self._holders.update(added.keys())
        self._holders.subtract(before - addresses)
        gone = {one for one in before - addresses if not self._holders[one]}
        self._places.update(added)
        for address in gone:
            del self._places[address]
            del self._holders[address]
        for listener in list(self._listeners):
            listener(added, gone)
