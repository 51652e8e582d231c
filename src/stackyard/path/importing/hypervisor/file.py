"""The file of a cluster or a node with entries for what is there, and the target that it then says."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base import files, yamledit
from stackyard.base.diagnostics import Severity
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.path.hypervisor import HypervisorSource
from stackyard.path.importing.hypervisor.entries import to_short
from stackyard.path.importing.hypervisor.survey import LeftOut, identity_of
from stackyard.path.importing.takeover import EnvText
from stackyard.render.objects import address_of_object
from stackyard.sources.hypervisor.build import list_entries
from stackyard.sources.hypervisor.sections import Layout
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.hypervisor_owners import find_node_file, find_node_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired.values import Value
    from stackyard.path.importing.hypervisor.survey import FoundObject, Identity
    from stackyard.path.target import Resolved
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["HypervisorWriter", "WrittenFile"]

# The stem of a file below `hypervisors`.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """What a file would be.

    Attributes:
        text: The file.
        new: The objects whose entries are new in it.
        resolved: The target as that file says it.
        addresses: The addresses of the objects of the file, by what tells them apart.
        misfits: Objects that the file has as something else.
    """

    text: EnvText
    new: tuple[FoundObject, ...]
    resolved: Resolved
    addresses: Mapping[Identity, str]
    misfits: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervisorWriter:
    """Writes entries into one file of `hypervisors/`.

    Attributes:
        resolver: The site as it is.
        name: The name of the file.
        node: What Proxmox calls the node; None for a cluster.
        host: The node whose API is used, by its file.
    """

    resolver: ConfigResolver
    name: str
    node: str | None
    host: str

    @classmethod
    def of(cls, resolver: ConfigResolver, name: str, node: str | None, host: str | None) -> HypervisorWriter:
        """Return what writes into a file, which need not be there yet.

        Raises:
            UsageError: It cannot be the name of a file, or the file is one of something else.
            NodeNotChosenError: No node is named, and there is more than one.
            InvalidInputError: Something is wrong with the file.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"`{name}` is no name of a file: letters, digits, `-`, `_` and `.`.")
        said = host
        if name in HypervisorSource(resolver).names():
            model = resolver.hypervisor(name).model
            there = find_node_name(resolver.site, resolver.hypervisor(name))
            if node is not None and node != there:
                what = f"the node {there}" if there else "a cluster"
                raise UsageError(f"hypervisors/{name}.yaml is {what}, not the node {node}.")
            node, said = there, host or getattr(model, "api", None) or getattr(model, "node", None)
        said = said or node
        chosen = resolver.any_node(
            find_node_file(resolver.site, name, said) or (said if said in resolver.site.nodes else host)
        )
        return cls(resolver=resolver, name=name, node=node, host=chosen)

    @property
    def is_new(self) -> bool:
        """Whether the file is to be made."""
        return self.name not in self.resolver.site.hypervisors

    def write(self, found: Sequence[FoundObject]) -> WrittenFile:
        """Return the file with entries for objects, and the target that it says.

        What is there and cannot work, such as a VLAN that its bridge does not pass, gets no entry.

        Raises:
            InvalidInputError: The file with the new entries is not valid.
        """
        known = {} if self.is_new else self._by_identity(self.resolver.hypervisor(self.name).model)
        misfits = [one for one in found if one.identity in known and known[one.identity].kind != one.kind]
        new = [one for one in found if one.identity not in known]
        text = self._text(new)
        instead = {f"hypervisors/{self.name}.yaml": text.after}
        again = ConfigResolver(Site.open(self.resolver.site.root, instead=instead))
        try:
            resolved = HypervisorSource(again).resolve(self.name, self.host)
        except InvalidInputError as err:
            unfit = self._find_unfit(err, again.site.hypervisors.get(self.name), new)
            labels = {one.label for one in unfit}
            if not unfit:
                raise
            rest = self.write([one for one in found if one.label not in labels])
            return replace(rest, misfits=(*unfit, *rest.misfits))
        written = self._by_identity(again.hypervisor(self.name).model)
        return WrittenFile(
            text=text,
            new=tuple(new),
            resolved=resolved,
            addresses={identity: address_of_object(entry.key) for identity, entry in written.items()},
            misfits=tuple(
                LeftOut(label=one.label, reason="The file has it as another type.") for one in misfits
            ),
        )

    def _find_unfit(
        self, err: InvalidInputError, loaded: LoadedFile[Any] | None, new: Sequence[FoundObject]
    ) -> tuple[LeftOut, ...]:
        """Return the new objects whose entries are wrong; none where something else is wrong, too."""
        objects = {one.identity: one for one in new}
        unfit: dict[str, LeftOut] = {}
        for finding in err.diagnostics:
            if finding.kind.severity is not Severity.ERROR:
                continue
            above = [] if loaded is None or finding.where is None else _list_above(loaded, finding.where)
            one = objects.get(above[-1]) if above else None
            if one is None:
                return ()
            unfit.setdefault(one.label, LeftOut(label=one.label, reason=finding.detail))
        return tuple(unfit.values())

    def _by_identity(self, model: Value) -> dict[Identity, Entry]:
        return {identity_of(entry.section, entry.name, entry.values): entry for entry in list_entries(model)}

    def _text(self, new: Sequence[FoundObject]) -> EnvText:
        path = self.resolver.site.root / "hypervisors" / f"{self.name}.yaml"
        before = None if self.is_new else files.read_text(path)
        changes = [*self._head(), *self._changes(new)] if new or self.is_new else []
        return EnvText(path=path, before=before, after=yamledit.edit_text(before or "", changes, str(path)))

    def _head(self) -> Iterator[yamledit.Change]:
        if not self.is_new:
            return
        if self.node is not None:
            yield yamledit.Set(("node",), self.node)
        elif len(self.resolver.site.nodes) > 1:
            yield yamledit.Set(("api",), self.host)

    def _changes(self, new: Sequence[FoundObject]) -> Iterator[yamledit.Change]:
        for section, found in itertools.groupby(new, key=lambda one: one.section):
            laid_out = [(one.name, _lay_out(to_short(section, dict(one.entry)))) for one in found]
            entries = [entry for _, entry in laid_out]
            if section.layout is Layout.ONE:
                yield from (yamledit.Set(section.path, entry) for entry in entries)
            elif section.layout is Layout.BY_NAME:
                yield from (yamledit.Set((*section.path, name), entry) for name, entry in laid_out)
            elif self._has(section.path):
                yield from (yamledit.Append(section.path, entry) for entry in entries)
            else:
                # An empty list is written in brackets, and everything that is added would stay in them.
                yield yamledit.Set(section.path, entries)

    def _has(self, path: tuple[str, ...]) -> bool:
        """Return whether the file has entries in a list."""
        found: Any = None if self.is_new else self.resolver.hypervisor(self.name).model
        for key in path:
            found = getattr(found, key, None)
        return bool(found)


def _list_above(loaded: LoadedFile[Any], where: Location) -> list[Identity]:
    """Return the entries of a file that begin at or before a place, in their order; none of another file."""
    places = [
        (loaded.places.key_place(entry.path), identity_of(entry.section, entry.name, entry.values))
        for entry in list_entries(loaded.model)
    ]
    spots = [
        ((place.line or 0, place.column or 0), identity)
        for place, identity in places
        if place.path == where.path
    ]
    return [identity for spot, identity in sorted(spots) if spot <= (where.line or 0, where.column or 0)]


def _lay_out(entry: Any) -> Any:
    """Return an entry as people write it."""
    return yamledit.lay_out(entry) if isinstance(entry, dict) and entry else yamledit.lay_out({"": entry})[""]
