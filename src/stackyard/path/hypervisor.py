"""The clusters and nodes of a site as targets: the files of `hypervisors/`, and what site.yaml makes there.

`site:shared` is an older name: it is the hypervisor that has the networks and pools of site.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access_calls import AccessEntry
from stackyard.desired import Desired
from stackyard.path.credentials.rows import CredentialKind, address_of_credential, name_grant
from stackyard.path.credentials.token_store import SiteTokens
from stackyard.path.environment import NoTokenError, resolve_on
from stackyard.path.former_owners import FormerOwner, Successor
from stackyard.path.shared_objects import join_shared, shared_desired, split_shared
from stackyard.path.target import Resolved, Target
from stackyard.render.objects import address_of_object
from stackyard.render.references import POOL
from stackyard.sources.hypervisor.build import build_desired, list_entries
from stackyard.sources.hypervisor.credentials import is_token_grant
from stackyard.sources.hypervisor.files import HypervisorFile
from stackyard.sources.site.hypervisor_owners import (
    find_node_file,
    find_node_name,
    find_owners,
    find_shared_parts,
    list_implied,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired.values import Value
    from stackyard.path.locate import Locate
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["HypervisorLogin", "HypervisorSource", "SharedSource"]

_KIND = "hypervisor"
_SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervisorLogin:
    """Where to log in, and for which token.

    Attributes:
        target: The target.
        desired: What its file says; nothing where it has none.
        endpoint: The address of its API.
        trust: Which server is trusted.
        store: What the site calls the token of this API.
        tokens: Where tokens are kept.
    """

    target: Target
    desired: Desired
    endpoint: str
    trust: proxmox.Trust
    store: str
    tokens: SiteTokens


@dataclass(frozen=True, slots=True)
class HypervisorSource:
    """The clusters and nodes that a site describes."""

    resolver: ConfigResolver

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return _KIND

    def names(self) -> Sequence[str]:
        """Return the files, also those that cannot be read."""
        site = self.resolver.site
        return sorted({*site.hypervisors, *site.broken["hypervisors"]})

    def implied_names(self) -> Sequence[str]:
        """Return the nodes without a file, which have what site.yaml makes on them."""
        return list_implied(self.resolver.site)

    def is_current(self) -> bool:
        """Return whether the site is what it was when it was read."""
        return self.resolver.site.is_current()

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it."""
        # The record of a cluster has the name of its file for a node.
        said = next((one for one in (host, name) if one in self.resolver.site.nodes), None)
        resolved = resolve_on(self.resolver, _target(name), Desired(), node=self.resolver.any_node(said))
        return replace(resolved, tokens=self._tokens())

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return a cluster or a node.

        Raises:
            NodeNotChosenError: Nothing says whose API is used, and there is more than one node.
            NoTokenError: There is no token for it.
            InvalidInputError: Something is wrong with the file; the error carries every problem.
        """
        self.require_files(f"The hypervisor '{name}'")
        site = self.resolver.site
        loaded = self._find_file(name)
        desired, places = join_shared(
            site, shared_desired(self.resolver, name), _describe(site, loaded), loaded
        )
        try:
            resolved = resolve_on(self.resolver, _target(name), desired, node=self._find_node(name, host))
        except NoTokenError as err:
            err.remedy = (
                f"Log in once, to make it: stackyard apply hypervisor:{name} --login root@pam\n"
                f"Or: {err.remedy}"
            )
            raise
        return replace(
            resolved,
            locate=_locate_in(loaded, places),
            former=tuple(_former_owners(site, name)),
            successors=tuple(_successors(site, name)),
            tokens=self._tokens(),
        )

    def resolve_login(self, name: str, host: str | None) -> HypervisorLogin:
        """Return a cluster or a node for a login, whether or not there is a token for it.

        Raises:
            NodeNotChosenError: Nothing says whose API is used, and there is more than one node.
            InvalidInputError: Something is wrong with the file.
        """
        host_config = self.resolver.resolve_host(self._find_node(name, host))
        node = self.resolver.site.nodes.get(host_config.name)
        return HypervisorLogin(
            target=_target(name),
            desired=_describe(self.resolver.site, self._find_file(name)),
            endpoint=host_config.api_endpoint,
            trust=proxmox.Trust(fingerprint=host_config.api_fingerprint),
            store=(None if node is None else node.model.api_token) or host_config.name,
            tokens=self._tokens(),
        )

    def find_token_file(self, store: str) -> str | None:
        """Return the file that describes the token that the site calls so; None where there is none."""
        for name, loaded in self.resolver.site.hypervisors.items():
            if any(token.store == store for token in build_desired(loaded.model).credentials.tokens):
                return name
        return None

    def _find_file(self, name: str) -> LoadedFile[Any] | None:
        """Return the file of a hypervisor; None of a node without one, which has what site.yaml makes."""
        site = self.resolver.site
        is_node = name in site.nodes or name in site.broken["nodes"]
        return None if is_node and name not in self.names() else self.resolver.hypervisor(name)

    def _find_node(self, name: str, host: str | None) -> str:
        loaded = self._find_file(name)
        said = host or (name if loaded is None else _api_node(loaded))
        return self.resolver.any_node(find_node_file(self.resolver.site, name, said) or said)

    def _tokens(self) -> SiteTokens:
        site = self.resolver.site
        nodes = {name: loaded.model.api_token or name for name, loaded in site.nodes.items()}
        return SiteTokens(site.root, nodes)

    def require_files(self, what: str) -> None:
        """Refuse to go on where a file cannot be read: it may be the one that has what another would get.

        Raises:
            InvalidInputError: There is one; the error carries every problem.
        """
        self.resolver.require(what, {("hypervisors", name) for name in self.names()})


@dataclass(frozen=True, slots=True)
class SharedSource:
    """The networks and pools of `site.yaml`, which belong to no env: `site:shared`, for a hypervisor."""

    resolver: ConfigResolver

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return "site"

    def names(self) -> Sequence[str]:
        """Return the one target."""
        return (_SHARED,)

    def is_current(self) -> bool:
        """Return whether the site is what it was when it was read."""
        return self.resolver.site.is_current()

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return the hypervisor of a node with nothing in it."""
        del name
        node = self.resolver.any_node(host)
        owners = find_owners(self.resolver.site, node)
        return HypervisorSource(self.resolver).resolve_state(owners.interfaces, node)

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return the hypervisor that has what all envs share on a node.

        Raises:
            NodeNotChosenError: No node is named, and there is more than one.
            NoTokenError: There is no token for it.
            UsageError: Two hypervisors have it.
            InvalidInputError: The parts do not fit; the error carries every problem.
        """
        del name
        node = self.resolver.any_node(host)
        chosen = self.list_owners(node)
        if len(chosen) > 1:
            first, second = (f"{_KIND}:{one}" for one in chosen)
            raise UsageError(
                f"What site.yaml makes on {node} belongs to two hypervisors: `{first}` and `{second}`. Name "
                f"one after the other in place of `{self.kind}:{_SHARED}`."
            )
        source, (owner,) = HypervisorSource(self.resolver), chosen
        return source.resolve(owner, host if owner in self.resolver.site.hypervisors else None)

    def list_owners(self, host: str | None) -> tuple[str, ...]:
        """Return the hypervisors that have what all envs share on a node, in the order of their applies.

        A zone may lie on a bridge of the node; nothing of a node needs what else belongs to its cluster.

        Raises:
            NodeNotChosenError: No node is named, and there is more than one.
            InvalidInputError: A file cannot be read, or the parts do not fit.
        """
        HypervisorSource(self.resolver).require_files("What all envs share")
        node = self.resolver.any_node(host)
        shared = split_shared(self.resolver.resolve_shared(node))
        owners = find_owners(self.resolver.site, node)
        if shared.cluster_wide.is_empty or owners.interfaces == owners.cluster_wide:
            return (owners.interfaces,)
        both = (owners.interfaces, owners.cluster_wide)
        return both[1:] if shared.interfaces.is_empty else both


def _api_node(loaded: LoadedFile[Any]) -> str | None:
    """Return the node whose API is used, where the file says it."""
    found: str | None = getattr(loaded.model, "api", None) or getattr(loaded.model, "node", None)
    return found


def _describe(site: Site, loaded: LoadedFile[Any] | None) -> Desired:
    return Desired() if loaded is None else build_desired(loaded.model, find_node_name(site, loaded))


def _target(name: str) -> Target:
    # Whichever node answers for a cluster, it has one state.
    return Target(kind=_KIND, name=name, node=name)


def _former_owners(site: Site, name: str) -> Iterator[FormerOwner]:
    """Return the states that may have objects of a hypervisor: those of older names for its part."""
    clusters = {one for one, file in site.hypervisors.items() if not hasattr(file.model, "node")}
    for part in find_shared_parts(site, name):
        shared = Target(kind="site", name=_SHARED, node=part.node)
        yield FormerOwner(owner=shared, interfaces=part.interfaces, cluster_wide=part.cluster_wide)
        # Before there was a file for the one or the other, the node had all of it.
        for other in sorted({part.node, find_owners(site, part.node).interfaces} - {name}):
            yield FormerOwner(
                owner=_target(other),
                interfaces=part.interfaces,
                cluster_wide=part.cluster_wide and other not in clusters,
            )


def _successors(site: Site, name: str) -> Iterator[Successor]:
    """Return who has what the state of a hypervisor may still have from before there were more files."""
    loaded = site.hypervisors.get(name)
    is_of_node = loaded is not None and hasattr(loaded.model, "node")
    parts = find_shared_parts(site, name)
    if not is_of_node and not any(part.interfaces for part in parts) and name in site.nodes:
        yield Successor(target=str(_target(find_owners(site, name).interfaces)), interfaces=True)
    if (loaded is None or is_of_node) and not any(part.cluster_wide for part in parts):
        nodes = [part.node for part in parts] or [node for node in site.nodes if node == name]
        others = sorted({find_owners(site, node).cluster_wide for node in nodes})
        yield from (Successor(target=str(_target(other)), interfaces=False) for other in others)


def _locate_in(loaded: LoadedFile[Any] | None, shared: Mapping[str, Location]) -> Locate:
    """Return what finds the places of objects by their addresses: in a file, or in site.yaml."""
    paths: dict[str, tuple[str | int, ...]] = {}
    entries: dict[str, Entry] = {}
    file = None if loaded is None else HypervisorFile.of(loaded.name, loaded.places, loaded.model, _is_whole)

    def locate(key: str, field: Sequence[str | int] = ()) -> Location | None:
        if not paths and loaded is not None and file is not None:
            entries.update((address_of_object(one.key), one) for one in file.entries)
            paths.update(_list_credential_places(loaded.model))
        if key in entries and file is not None:
            return file.place(entries[key], *field)
        if key in paths and loaded is not None:
            return loaded.places.place((*paths[key], *field))
        # Pools of a site go by their names.
        pool = key.removeprefix("pool/")
        return shared.get(key) or shared.get(f"{POOL}.{pool}")

    return locate


def _is_whole(*_keys: object) -> bool:
    """Return that nothing was left out of a file: one with mistakes is no target."""
    return False


def _list_credential_places(model: Value) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Return where tokens, their roles and passwords are written, by the addresses of their rows."""
    for name in getattr(model, "tokens", None) or {}:
        yield address_of_credential(CredentialKind.TOKEN, name), ("tokens", name)
    for one in list_entries(model):
        if one.kind == "user":
            yield address_of_credential(CredentialKind.PASSWORD, one.name), (*one.path, "password")
        elif is_token_grant(one.kind, one.values):
            entry = AccessEntry(
                path=one.values["path"], owner=one.values["token_id"], role=one.values["role_id"]
            )
            yield address_of_credential(CredentialKind.GRANT, name_grant(entry)), one.path
