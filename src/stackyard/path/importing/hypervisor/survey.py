"""What there is: every object of every section, as the built-in provider reads it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.path.importing.hypervisor.entries import (
    Words,
    list_private,
    list_secrets,
    list_unknown,
    to_entry,
)
from stackyard.path.importing.hypervisor.lists import listing_of
from stackyard.provider import registry
from stackyard.provider.operations import Operations
from stackyard.provider.session import Session
from stackyard.provider.settings import Settings, SshSettings
from stackyard.sources.hypervisor.models import resource_type
from stackyard.sources.hypervisor.sections import CLUSTER, NODE, Layout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from stackyard.path.importing.hypervisor.lists import Listing
    from stackyard.provider.values import Object
    from stackyard.sources.hypervisor.sections import Section

__all__ = ["FoundObject", "LeftOut", "Survey", "identity_of", "list_rows", "survey_objects"]

_AT_ONCE = 16
_LIST_AGE_S = 30.0

Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundObject:
    """An object that is there.

    Attributes:
        section: The section that it belongs to.
        kind: Its kind.
        name: What it is called among those of its section.
        import_id: The id that it is imported by.
        id: The id that a state has for it.
        node: The node that a state has for it.
        entry: What the file says of it.
        identity: What tells its entry from others.
    """

    section: Section
    kind: str
    name: str
    import_id: str
    id: str
    node: str
    entry: Mapping[str, Any]
    identity: Identity

    @property
    def label(self) -> str:
        """What the user calls it."""
        return label_of(self.section, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An object that is there and cannot be written into the file.

    Attributes:
        label: What the user calls it.
        reason: Why not.
        secrets: The names of secrets that it needs.
    """

    label: str
    reason: str
    secrets: tuple[str, ...] = ()


@dataclass(slots=True)
class Survey:
    """What there is: the objects, what is left out, and the nodes of the cluster."""

    objects: list[FoundObject] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    nodes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A row of a list."""

    section: Section
    kind: str
    listing: Listing
    name: str
    import_id: str


def label_of(section: Section, name: str) -> str:
    """Return what the user calls an object: `storages.nas`, and `dns` for what there is one of."""
    return section.name if section.layout is Layout.ONE else f"{section.name}.{name}"


def identity_of(section: Section, name: str, entry: Mapping[str, Any]) -> Identity:
    """Return what tells an entry from others of a file, whatever else it says."""
    if section.layout is Layout.LIST:
        parts = (entry.get(one) for one in section.identity)
        return (section.name, *("" if part is None else str(part) for part in parts))
    return (section.name,) if section.layout is Layout.ONE else (section.name, name)


async def survey_objects(
    connection: proxmox.Connection, node: str | None, secrets: Collection[str], left_alone: Collection[str]
) -> Survey:
    """Return every object of a cluster, or of a node.

    Args:
        connection: The way to the API.
        node: The node, as Proxmox calls it; None for the cluster.
        secrets: The names of the secrets that the site has.
        left_alone: Sections and objects that stay outside of everything.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    session = Session()
    await session.configure(Settings(connection=connection, ssh=SshSettings(username="")))
    try:
        reader = _Reader(session=session, node=node, secrets=secrets, left_alone=left_alone)
        return await reader.survey()
    finally:
        await session.close()


@dataclass(slots=True, kw_only=True)
class _Reader:
    session: Session
    node: str | None
    secrets: Collection[str]
    left_alone: Collection[str]
    result: Survey = field(default_factory=Survey)
    known: registry.Registry = field(default_factory=registry.load)

    async def survey(self) -> Survey:
        nodes = await self.session.client.get("/nodes")
        self.result.nodes = frozenset(str(row["node"]) for row in nodes)
        listed: list[_Listed] = []
        for section in CLUSTER if self.node is None else NODE:
            if section.name in self.left_alone or section.path[0] in self.left_alone:
                continue
            rows = [one for kind in section.kinds.values() for one in await self._list(section, kind)]
            listed += sorted(rows, key=lambda one: (one.name, one.import_id))
        kinds = {one.kind for one in listed}
        wanted = [one for one in listed if one.listing.unless not in kinds and not self._is_left(one)]
        slots = asyncio.Semaphore(_AT_ONCE)

        async def read(one: _Listed) -> FoundObject | LeftOut | None:
            async with slots:
                return await self._read(one)

        for found in await asyncio.gather(*map(read, wanted)):
            if isinstance(found, FoundObject):
                self.result.objects.append(found)
            elif found is not None:
                self.result.left_out.append(found)
        return self.result

    def _is_left(self, one: _Listed) -> bool:
        return label_of(one.section, one.name) in self.left_alone

    async def _list(self, section: Section, kind: str) -> list[_Listed]:
        """Return the objects of a kind; one that the list has and no file can say is left out."""
        listing = listing_of(kind, self.node)
        try:
            rows = [row async for row in list_rows(self.session.client, listing, self._names({}))]
        except proxmox.RefusedError as err:
            self.result.left_out.append(LeftOut(label=section.name, reason=err.detail))
            return []
        found = []
        for row in rows:
            name = str(row.get(listing.key, ""))
            if all(row.get(key) == value for key, value in listing.only.items()):
                import_id = listing.given.format_map(self._names(row))
                one = _Listed(section=section, kind=kind, listing=listing, name=name, import_id=import_id)
                if not listing.is_builtin(row):
                    found.append(one)
            elif kind == next(iter(section.kinds.values())) and not listing.is_builtin(row):
                self._leave_unknown(section, listing, row, name)
        return found

    def _leave_unknown(self, section: Section, listing: Listing, row: Mapping[str, Any], name: str) -> None:
        """Report an object of a type that no section of the file has."""
        sections = CLUSTER if self.node is None else NODE
        listings = [listing_of(kind, self.node) for one in sections for kind in one.kinds.values()]
        alike = [one for one in listings if one.path == listing.path]
        if any(all(row.get(key) == value for key, value in one.only.items()) for one in alike):
            return
        type_ = ", ".join(f"{key} {row.get(key)}" for key in listing.only)
        label = f"{section.name}.{name}"
        if label not in self.left_alone and all(one.label != label for one in self.result.left_out):
            self.result.left_out.append(LeftOut(label=label, reason=f"A file cannot say its {type_}."))

    def _names(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "node": self.node or ""}

    async def _read(self, one: _Listed) -> FoundObject | LeftOut | None:
        """Return an object as the file has it; None where there is nothing to say of it."""
        label, type_ = label_of(one.section, one.name), resource_type(one.kind)
        if type_ not in self.known.resources:
            return LeftOut(label=label, reason="The built-in provider does not have it.")
        known, operations = self.known.resources[type_], Operations(self.session)
        seed = dict(one.listing.read_with)
        self.session.expected = {**self.session.expected, (type_, one.import_id): seed}
        result = operations.identify(known, type_, one.import_id)
        if result.state is not None and not result.problems:
            result = await operations.read(known, type_, result.state, result.private)
        for problem in result.problems:
            if problem.is_error:
                return LeftOut(label=label, reason=problem.detail.partition("\n")[0])
        if result.state is None:
            return None
        words = Words(section=one.section, kind=one.kind, listing=one.listing, schema=known.schema)
        return self._put(one, words, result.state)

    def _put(self, one: _Listed, words: Words, state: Object) -> FoundObject | LeftOut | None:
        label = label_of(one.section, one.name)
        entry = to_entry(words, state)
        if private := list_private(words, state):
            reason = f"Its {_join(private)} may hold secrets, which a file cannot have in clear."
            return LeftOut(label=label, reason=reason)
        secrets = list_secrets(words, "" if one.section.layout is Layout.ONE else one.name, state)
        missing = tuple(sorted(name for name in secrets.values() if name not in self.secrets))
        if missing:
            reason = f"Proxmox does not show {_join(sorted(secrets))}, and the site has no secret for it."
            return LeftOut(label=label, reason=reason, secrets=missing)
        entry |= {name: {"secret": secret} for name, secret in secrets.items()}
        if one.section.layout is Layout.ONE and entry == one.listing.unset:
            return None
        if one.listing.keeps_defaults:
            entry = to_entry(words, state, is_whole=True)
        if unknown := list_unknown(words, entry):
            reason = f"Proxmox does not show {_join(unknown)}, which a file has to say."
            return LeftOut(label=label, reason=reason)
        return FoundObject(
            section=one.section,
            kind=one.kind,
            name=one.name,
            import_id=one.import_id,
            id=str(state.get("id") or one.import_id),
            node=str(state.get("node_name") or ""),
            entry=entry,
            identity=identity_of(one.section, one.name, entry),
        )


async def list_rows(
    client: proxmox.Client, listing: Listing, names: Mapping[str, Any]
) -> AsyncIterator[Mapping[str, Any]]:
    """Return the rows of the list that has the objects of a kind; one empty row where there is no list."""
    if not listing.path:
        yield {}
        return
    owners: Sequence[Mapping[str, Any]] = [{}]
    if listing.below:
        owners = await client.get(listing.below, max_age_s=_LIST_AGE_S)
    for owner in owners:
        path = listing.path.format_map(
            {key: proxmox.quote(str(one)) for key, one in {**owner, **names}.items()}
        )
        for row in listing.rows(await client.get(path, max_age_s=_LIST_AGE_S)):
            yield {**owner, **row} if listing.below else row


def _join(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
