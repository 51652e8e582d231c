"""The built-in provider without an engine: plans and applies as one does, against a lab in the same loop.

async with bench(running) as it:
    await it.apply("proxmox_virtual_environment_pool", pool_id="apps")
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.clients.objects import open_objects
from stackyard.provider import registry
from stackyard.provider.journal import Journal
from stackyard.provider.operations import Change, Operations, Result
from stackyard.provider.registry import KnownResource
from stackyard.provider.schema import Block, Nesting
from stackyard.provider.session import Session
from stackyard.provider.settings import Settings, SshNode, SshSettings
from stackyard.provider.values import Object, decode, encode

__all__ = ["Bench", "Failed", "bench", "proposed"]

KNOWN = registry.load()


class Failed(Exception):  # noqa: N818 - read in tests as `pytest.raises(Failed, match=...)`
    """An operation ended with errors, which are its text."""


class Bench:
    """A state of named resources, and the operations on them.

    Attributes:
        states: The state by resource name; what a failed create left is tainted.
        tainted: The names of resources to be replaced.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.operations = Operations(session)
        self.states: dict[str, Object] = {}
        self.private: dict[str, dict[str, Any]] = {}
        self.tainted: set[str] = set()
        self.last = Result()

    def known(self, type_name: str) -> KnownResource:
        return KNOWN.resources[type_name]

    async def apply(self, type_name: str, /, **config: Any) -> Object:
        """Refresh, plan and apply one resource; it is named by its type."""
        await self.refresh(type_name)
        known, prior = self.known(type_name), self.states.get(type_name)
        if prior is not None and type_name in self.tainted:
            await self.remove(type_name)
            prior = None
        result = self.plan(type_name, **config)
        if prior is not None and result.replace:
            await self.remove(type_name)
            prior = None
            result = self.plan(type_name, **config)
        planned: Object = _travelled(result.state)
        if planned == prior:
            return planned
        whole = known.schema.block.complete(config)
        self.last = await self.operations.apply(known, type_name, prior, planned, whole)
        if self.last.state is not None:
            self.states[type_name] = _travelled(self.last.state)
        if failed(self.last) and prior is None and self.last.state is not None:
            self.tainted.add(type_name)
        raise_errors(self.last)
        assert self.last.state is not None
        return self.last.state

    async def remove(self, type_name: str) -> None:
        result = await self.operations.apply(self.known(type_name), type_name, self.states[type_name], None)
        raise_errors(result)
        del self.states[type_name]
        self.tainted.discard(type_name)

    def plan(self, type_name: str, /, **config: Any) -> Result:
        """Return the plan for a configuration; what it leaves out is null."""
        known, prior = self.known(type_name), self.states.get(type_name)
        whole = known.schema.block.complete(config)
        raise_errors(Result(problems=self.operations.validate(known, type_name, whole)))
        change = Change(
            config=whole,
            prior=prior,
            proposed=proposed(known.schema.block, whole, prior),
            private=self.private.get(type_name, {}),
        )
        result = self.operations.plan(known, change)
        raise_errors(result)
        return result

    async def refresh(self, type_name: str) -> Object | None:
        """Read one resource as it is now."""
        prior = self.states.get(type_name)
        if prior is None:
            return None
        remembered = dict(self.private.get(type_name, {}))
        result = await self.operations.read(self.known(type_name), type_name, prior, remembered)
        raise_errors(result)
        self.private[type_name] = result.private
        if result.state is None:
            del self.states[type_name]
        else:
            self.states[type_name] = _travelled(result.state)
        return result.state

    async def adopt(self, type_name: str, given: str, **expected: Any) -> None:
        """Import a resource, beginning with what a configuration says of it."""
        self.session.expected = {(type_name, given): expected}
        result = self.operations.identify(self.known(type_name), type_name, given)
        raise_errors(result)
        assert result.state is not None
        self.states[type_name], self.private[type_name] = result.state, result.private
        await self.refresh(type_name)

    async def is_settled(self, type_name: str, /, **config: Any) -> bool:
        """Tell whether a plan would change nothing."""
        await self.refresh(type_name)
        result = self.plan(type_name, **config)
        return _travelled(result.state) == self.states.get(type_name) and not result.replace


def _travelled(value: Any) -> Any:
    """Return a value as the engine gives it back, sets in its order."""
    return decode(encode(value))


def failed(result: Result) -> bool:
    return any(problem.is_error for problem in result.problems)


def raise_errors(result: Result) -> None:
    errors = [f"{one.summary}: {one.detail}" for one in result.problems if one.is_error]
    if errors:
        raise Failed("\n".join(errors))


def proposed(block: Block, config: Object, prior: Object | None) -> Object:
    """Merge a configuration with what was there, as the engine does."""
    before = prior or {}
    values: Object = {}
    for name, attribute in block.attributes.items():
        kept = before.get(name) if attribute.computed else None
        values[name] = kept if config.get(name) is None else config[name]
    for name, nested in block.blocks.items():
        old = before.get(name) or []
        if nested.nesting is Nesting.LIST and isinstance(config.get(name), list):
            values[name] = [
                proposed(nested.block, one, old[index] if index < len(old) else None)
                for index, one in enumerate(config[name])
            ]
        else:
            values[name] = config.get(name)
    return values


@contextlib.asynccontextmanager
async def bench(running: lab.Running, journal: Path | None = None, **changes: Any) -> AsyncIterator[Bench]:
    """Give a provider that is configured for a lab; `changes` are fields of its connection."""
    connection = proxmox.Connection(
        **{
            "endpoint": running.url,
            "credentials": proxmox.Token(text=running.api_token),
            "trust": proxmox.Trust(fingerprint=running.fingerprint),
            **changes,
        }
    )
    ports = {name: SshNode(address="127.0.0.1", port=port) for name, port in running.ssh_ports.items()}
    ssh = SshSettings(username="root", password=running.password, nodes=ports)
    session = Session(Journal(None if journal is None else open_objects(journal), "test"))
    try:
        await session.configure(Settings(connection=connection, ssh=ssh))
        yield Bench(session)
    finally:
        await session.close()
