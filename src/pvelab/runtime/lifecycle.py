"""The content of a lab as a whole: planted when it is new, made new again, saved and restored.

While a seed fills the lab, a mark is in the store, so that a lab which was killed in the middle of it
begins again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.seeds import Seed, SeedCall, SeedError, SeedFile
from pvelab.seeds import stock as load
from pvelab.server.dispatch import Request
from pvelab.server.problems import PveError
from pvelab.world.access.directory import ROOT
from pvelab.world.access.login import Identity
from pvelab.world.access.tickets import hash_password
from pvelab.world.storage.contents import put_file, put_stand_in
from stackyard.base import serving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pvelab.runtime.saved import SavedStates
    from pvelab.server.dispatch import Dispatcher
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["InitialContent", "Lifecycle"]

_MARK = ("lab", "seeding")
# What stays when a lab is created new: clients that have logged in, or know its keys, need not notice.
_KEPT_SECRETS = ("authkey", "guest_keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialContent:
    """What a new lab holds: a seed, and the nodes and the password of root@pam in place of the seed's."""

    seed: Seed
    nodes: Sequence[str] | None = None
    password: str | None = None


class Lifecycle:
    """Fills a lab.

    Args:
        world: The lab.
        dispatcher: What answers the calls of a seed.
        beginning: What a new lab holds.
        fingerprint: That of the certificate that clients see.
        saved: The states of it that were saved.
        certificate: That certificate, as PEM.
    """

    def __init__(
        self,
        world: World,
        dispatcher: Dispatcher,
        beginning: InitialContent,
        *,
        fingerprint: str,
        saved: SavedStates,
        certificate: str = "",
    ) -> None:
        self.world = world
        self._dispatcher = dispatcher
        self._beginning = beginning
        self._fingerprint = fingerprint
        self._certificate = certificate
        self.saved = saved

    async def begin(self) -> None:
        """Fill a lab that is new, or that was killed while it was filled; leave any other as it is.

        Raises:
            SeedError: The lab refuses something of the seed; it is empty then.
        """
        store, new = self.world.store, self._beginning
        if load.is_seeded(self.world) and store.get(*_MARK) is None:
            with store.transaction():
                self._tell_fingerprint()
            return
        try:
            await self._fill(new.seed, new.nodes or new.seed.nodes, new.seed.token, new.password)
        except SeedError:
            store.replace_all({})
            raise

    async def reset(self, seed: Seed | None = None) -> None:
        """Make the lab new: its seed (or another) and nothing else. Who can log in stays.

        Raises:
            SeedError: The lab refuses something of the seed; it is new without it.
        """
        world = self.world
        with world.ha.pause():
            await world.scheduler.interrupt()
            await world.tasks.close()
        nodes = tuple(world.cluster.nodes())
        login = load.credentials(world)
        token = login.api_token.rpartition("=")[2]
        world.faults.clear()
        world.clock.release()
        try:
            await self._fill(seed or self._beginning.seed, nodes, token, login.password)
        except SeedError:
            await self._fill(Seed(name="empty"), nodes, token, login.password)
            raise
        finally:
            world.journal.clear()

    async def rehearse(self, seed: Seed) -> dict[int, str]:
        """Fill the lab with a seed and pass over its calls that are refused.

        Returns:
            Why, by the place of the call.

        Raises:
            SeedError: Something else of the seed is refused.
        """
        nodes = seed.nodes
        await self._fill(dataclasses.replace(seed, calls=()), nodes, None, None)
        with self.world.latency.suspended():
            tried = [await self._problem(seed, call, nodes) for call in seed.calls]
        return {number: problem for number, problem in enumerate(tried) if problem is not None}

    def save(self, name: str) -> None:
        """Save everything under a name.

        Raises:
            PveError: That is no name (400).
            FileError: It cannot be written.
        """
        world = self.world
        world.blobs.hold(self.saved.save(name, world.clock.now(), world.store.dump()))

    async def restore(self, name: str) -> None:
        """Make everything what it was when it was saved; tasks that run are interrupted.

        Raises:
            PveError: There is nothing of that name (404).
        """
        world = self.world
        content = self.saved.load(name)
        with world.ha.pause():
            await world.scheduler.interrupt()
            await world.tasks.close()
        with world.store.transaction():
            world.store.replace_all(content)
            self._tell_fingerprint()
        await world.machines.resume_talos()
        world.tasks.recover()

    async def _fill(self, seed: Seed, nodes: Sequence[str], token: str | None, password: str | None) -> None:
        world = self.world
        with world.store.transaction():
            kept = {name: world.store.get("secrets", name) for name in _KEPT_SECRETS}
            world.store.replace_all({})
            self._plant(seed, nodes, token, password or seed.password)
            for name, document in kept.items():
                if document is not None:
                    world.store.put("secrets", name, document)
            world.store.put("authorized_keys", "root", {"lines": list(seed.authorized_keys)})
            for user in seed.system_users:
                world.store.put("authorized_keys", user.name, {"lines": list(user.authorized_keys)})
                world.store.put("shadow", f"{user.name}@pam", {"hash": hash_password(user.password)})
            world.store.put(*_MARK, {"seed": seed.name})
            self._tell_fingerprint()
        with world.latency.suspended():
            for file in seed.files:
                self._put(seed, file, nodes)
            for call in seed.calls:
                await self._make(seed, call, nodes)
        with world.store.transaction():
            world.store.delete(*_MARK)

    def _plant(self, seed: Seed, nodes: Sequence[str], token: str | None, password: str | None) -> None:
        try:
            load.plant(self.world, seed, nodes, password, token=token)
        except PveError as err:
            raise SeedError(f"The seed '{seed.name}' cannot be in a lab: {err.text}.") from err

    def _tell_fingerprint(self) -> None:
        """Let the first node show the certificate that clients see, and each other one its own."""
        store, first = self.world.store, next(iter(self.world.cluster.nodes()), "")
        if (store.get("certificates", "served") or {}).get("pem", "") != self._certificate:
            store.put("certificates", "served", {"pem": self._certificate})
        for name, node in list(self.world.cluster.nodes().items()):
            shown = self._fingerprint if name == first else self._own_fingerprint(name, node)
            if node.get("fingerprint") != shown:
                store.put("nodes", name, {**node, "fingerprint": shown})

    def _own_fingerprint(self, name: str, node: Document) -> str:
        """Return what the certificate of another node is known by; it is made once and kept."""
        kept = self.world.store.get("certificates", f"own|{name}")
        if kept is None:
            made = serving.make_certificate([name, str(node.get("ip", "127.0.0.1")), "localhost"])
            kept = {"pem": made.certificate_pem.decode(), "fingerprint": made.fingerprint}
            self.world.store.put("certificates", f"own|{name}", kept)
        return str(kept["fingerprint"])

    def _put(self, seed: Seed, file: SeedFile, nodes: Sequence[str]) -> None:
        world, node = self.world, seed.placed(file.node, tuple(nodes))
        try:
            if file.size is None:
                blob = world.blobs.put(file.text.encode())
                with world.store.transaction():
                    put_file(world, file.volume, node, blob)
            else:
                with world.store.transaction():
                    put_stand_in(world, file.volume, node, file.size)
        except PveError as err:
            raise SeedError(
                f"The seed '{seed.name}' has the file {file.volume}, refused: {err.text}."
            ) from err

    async def _make(self, seed: Seed, call: SeedCall, nodes: Sequence[str]) -> None:
        problem = await self._problem(seed, call, nodes)
        if problem is not None:
            path = _place(seed, call.path, nodes)
            raise SeedError(f"The seed '{seed.name}' asks for {call.method} {path}, refused: {problem}.")

    async def _problem(self, seed: Seed, call: SeedCall, nodes: Sequence[str]) -> str | None:
        """Make a call and return why it was refused or its task failed, None if all went well."""
        parameters = {key: _replace_node_names(value, nodes) for key, value in call.parameters.items()}
        request = Request(
            method=call.method,
            path=_place(seed, call.path, nodes),
            identity=Identity(authid=ROOT),
            parameters=parameters,
        )
        answer = await self._dispatcher.perform(request)
        if answer.status < 400:
            return await self._task_problem(answer.data)
        errors = "".join(f"; {key}: {text}" for key, text in (answer.errors or {}).items())
        return f"{answer.reason}{errors}"

    async def _task_problem(self, data: Any) -> str | None:
        if not isinstance(data, str) or not data.startswith("UPID:"):
            return None
        await self.world.tasks.wait(data)
        status = str((self.world.tasks.get(data) or {}).get("status"))
        return None if status == "OK" or status.startswith("WARNINGS") else status


def _place(seed: Seed, path: str, nodes: Sequence[str]) -> str:
    """Put a node of the lab in place of `{node1}`, and of one of the seed's own where the lab has others."""
    path = _replace_node_names(path, nodes)
    name, slash, rest = path.removeprefix("/nodes/").partition("/")
    if not path.startswith("/nodes/") or name in nodes:
        return path
    return f"/nodes/{seed.placed(name, tuple(nodes))}{slash}{rest}"


def _replace_node_names(value: Any, nodes: Sequence[str]) -> Any:
    """Put the names of nodes in place of `{node1}` and so on; a lab with fewer begins again at the first."""
    if not isinstance(value, str):
        return value
    for number in range(1, 10):
        value = value.replace(f"{{node{number}}}", nodes[(number - 1) % len(nodes)])
    return value
