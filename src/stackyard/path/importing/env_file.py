"""The file of an env with entries for guests that are there, and the target that it then says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import files, yamledit
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import UsageError
from stackyard.path.environment import EnvironmentSource, resolve_without_env
from stackyard.path.importing.configuration import Unsupported
from stackyard.path.importing.takeover import EnvText
from stackyard.path.target import Target
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.describe import EntryDefaults, describe_guest
from stackyard.sources.site.networks import DEFAULT_BRIDGE
from stackyard.sources.site.scope import files_of_env

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.desired import Guest
    from stackyard.path.importing.configuration import TranslatedGuest
    from stackyard.path.target import Resolved

__all__ = ["EnvFileText", "EnvWriter"]

# The stem of a file below `envs`.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

LACKING = Kind(
    code="E-IMPORT-LACKING",
    summary="Something of a guest cannot be expressed",
    remedy="Change the guest, leave it out with a filter, or leave the key to Proxmox with --leave KEY.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFileText:
    """What the file of an env would be.

    Attributes:
        text: The file.
        entries: The entries that are new in it, by vm id; an earlier run may have written others.
        resolved: The target as that file says it.
        guests: The guests as the state should know them.
    """

    text: EnvText
    entries: Mapping[int, Mapping[str, Any]]
    resolved: Resolved
    guests: tuple[Guest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvWriter:
    """Writes entries into one env.

    Attributes:
        resolver: The site as it is.
        env: The env.
        node: The node of the target, by its file.
        resolved: The target as it is; what all envs share, for an env that is to be made.
    """

    resolver: ConfigResolver
    env: str
    node: str
    resolved: Resolved

    @classmethod
    def of(cls, resolver: ConfigResolver, env: str, host: str | None) -> EnvWriter:
        """Return what writes into an env, which need not be there yet.

        Raises:
            UsageError: It cannot be the name of an env.
            NodeNotChosenError: No node is named, and there is more than one.
            InvalidInputError: The parts of the env do not fit.
        """
        if not _NAME.fullmatch(env):
            raise UsageError(f"`{env}` is no name of an env: letters, digits, `-`, `_` and `.`.")
        environments = EnvironmentSource(resolver)
        is_there = env in environments.names()
        resolved = environments.resolve(env, host) if is_there else resolve_without_env(resolver, env, host)
        return cls(resolver=resolver, env=env, node=resolved.target.node, resolved=resolved)

    @property
    def is_new(self) -> bool:
        """Whether the env is to be made."""
        return self.env not in self.resolver.site.envs

    @property
    def state_name(self) -> str:
        """The name of the target's state."""
        return Target(kind="env", name=self.env, node=self.node).state_name

    def write(self, found: Sequence[TranslatedGuest]) -> EnvFileText:
        """Return the file with entries for guests, and the target that it says.

        Raises:
            InvalidInputError: Something of a guest cannot be expressed; with everything of that kind.
        """
        known = self._list_known()
        new = [one for one in found if one.vm_id not in known]
        misfits = [*self._strangers(found), *self._namesakes(new), *_other_types(found, known)]
        _raise_lacks([*((one, lack) for one in found for lack in one.lacks), *misfits])
        entries = {
            one.vm_id: describe_guest(one.guest, self._around(one)) for one in new if one.guest is not None
        }
        text = self._text(entries)
        site = Site.open(self.resolver.site.root, instead={f"envs/{self.env}.yaml": text.after})
        again = ConfigResolver(site)
        used = files_of_env(site, self.env, self.node)
        again.require(f"The env '{self.env}' with the new entries in {text.path.name}", used)
        resolved = EnvironmentSource(again).resolve(self.env, self.node)
        said = {guest.vm_id: guest for guest in resolved.desired.guests}
        _raise_lacks([(one, lack) for one in found if one.vm_id in entries for lack in _unsaid(one, said)])
        keyed = (
            one.guest.model_copy(update={"key": said[one.vm_id].key})
            for one in found
            if one.guest is not None
        )
        return EnvFileText(text=text, entries=entries, resolved=resolved, guests=tuple(keyed))

    def _list_known(self) -> Mapping[int, Guest]:
        """Return the guests that the env has by id, as after an import that was cut off."""
        if self.is_new:
            return {}
        return {guest.vm_id: guest for guest in self.resolved.desired.guests if guest.vm_id is not None}

    def _strangers(self, found: Sequence[TranslatedGuest]) -> Iterator[tuple[TranslatedGuest, Unsupported]]:
        """Report guests on nodes that the site does not know."""
        for one in found:
            if self._node_file(one.node) is None:
                text = f"the site knows no node {one.node}: write nodes/{one.node}.yaml"
                yield one, Unsupported(key="node", text=text)

    def _namesakes(self, new: Sequence[TranslatedGuest]) -> Iterator[tuple[TranslatedGuest, Unsupported]]:
        """Report guests whose name another has: an env has each but once."""
        taken = set() if self.is_new else {guest.name for guest in self.resolver.site.guests(self.env)}
        for one in new:
            if one.name in taken:
                text = f"the env has another {one.name} by then: rename it, or import it into another env"
                yield one, Unsupported(key="name", text=text)
            taken.add(one.name)

    def _node_file(self, node: str) -> str | None:
        """Return the name of the file of a node of this cluster; the target's own first."""
        nodes = self.resolver.site.nodes
        endpoint = nodes[self.node].model.api_endpoint
        names = [self.node, *sorted(nodes, key=lambda name: nodes[name].model.api_endpoint != endpoint)]
        return next((name for name in names if (nodes[name].model.node or name) == node), None)

    def _around(self, one: TranslatedGuest) -> EntryDefaults:
        site = self.resolver.site
        node = self._node_file(one.node) or self.node
        named = self.node if self.is_new else site.envs[self.env].model.node
        return EntryDefaults(
            node=None if node == named else node,
            datastore=site.nodes[node].model.datastore,
            bridge=site.settings.defaults.bridge or DEFAULT_BRIDGE,
        )

    def _text(self, entries: Mapping[int, Mapping[str, Any]]) -> EnvText:
        path = self.resolver.site.root / "envs" / f"{self.env}.yaml"
        before = None if self.is_new else files.read_text(path)
        changes: list[yamledit.Change] = []
        if self.is_new:
            changes.append(yamledit.Set(("node",), self.node))
            postures = self.resolver.list_postures()
            if postures and "dev" not in postures:
                changes.append(yamledit.Set(("posture",), postures[0]))
        if self.is_new or not self.resolver.site.guests(self.env):
            # An empty list is written in brackets, and everything that is added would stay in them.
            changes.append(yamledit.Set(("vms",), [yamledit.lay_out(entry) for entry in entries.values()]))
        else:
            changes += [yamledit.Append(("vms",), yamledit.lay_out(entry)) for entry in entries.values()]
        after = yamledit.edit_text(before or "", changes if entries else [], str(path))
        return EnvText(path=path, before=before, after=after)


def _other_types(
    found: Sequence[TranslatedGuest], known: Mapping[int, Guest]
) -> Iterator[tuple[TranslatedGuest, Unsupported]]:
    for one in found:
        there = known.get(one.vm_id)
        if there is not None and one.guest is not None and type(there) is not type(one.guest):
            yield one, Unsupported(key="vmid", text="the env has a guest of that id and of another type")


def _unsaid(one: TranslatedGuest, said: Mapping[int | None, Guest]) -> Iterator[Unsupported]:
    """Report what the site makes of a new entry that the guest is not."""
    if one.guest is None:
        return
    built = said[one.vm_id].model_dump()
    for key, value in one.guest.model_dump().items():
        if built[key] != value:
            yield Unsupported(key=key, text=f"the site makes {built[key]!r} of it, and it is {value!r}")


def _raise_lacks(lacks: Sequence[tuple[TranslatedGuest, Unsupported]]) -> None:
    found = Diagnostics()
    for one, lack in lacks:
        found.add(LACKING, f"{one.name} ({one.vm_id} on {one.node}): `{lack.key}`: {lack.text}.")
    found.raise_errors("The import")
