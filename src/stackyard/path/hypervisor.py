"""The files of `hypervisors/` as targets: a cluster itself, and its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.clients.proxmox.access_calls import AccessEntry
from stackyard.desired import Desired
from stackyard.path.credentials.rows import CredentialKind, address_of_credential, name_grant
from stackyard.path.credentials.token_store import SiteTokens
from stackyard.path.environment import NoTokenError, resolve_on
from stackyard.path.target import Resolved, Target
from stackyard.render.objects import address_of_object
from stackyard.sources.hypervisor.build import build_desired, list_entries
from stackyard.sources.hypervisor.credentials import is_token_grant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired.values import Value
    from stackyard.path.source_locations import Locate
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["HypervisorLogin", "HypervisorSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervisorLogin:
    """Where to log in, and for which token.

    Attributes:
        target: The target.
        desired: What its file says.
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
        return "hypervisor"

    def names(self) -> Sequence[str]:
        """Return the files, also those that cannot be read."""
        site = self.resolver.site
        return sorted({*site.hypervisors, *site.broken["hypervisors"]})

    def is_current(self) -> bool:
        """Return whether the site is what it was when it was read."""
        return self.resolver.site.is_current()

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it."""
        node = self.resolver.any_node(host)
        return replace(
            resolve_on(self.resolver, self._target(name), Desired(), node=node), tokens=self._tokens()
        )

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return a cluster or a node.

        Raises:
            NodeNotChosenError: Nothing says whose API is used, and there is more than one node.
            NoTokenError: There is no token for it.
            InvalidInputError: Something is wrong with the file; the error carries every problem.
        """
        loaded = self.resolver.hypervisor(name)
        node = self._find_node(name, host)
        try:
            resolved = resolve_on(self.resolver, self._target(name), build_desired(loaded.model), node=node)
        except NoTokenError as err:
            err.remedy = (
                f"Log in once, to make it: stackyard apply hypervisor:{name} --login root@pam\n"
                f"Or: {err.remedy}"
            )
            raise
        return replace(resolved, locate=_locate_in(loaded), tokens=self._tokens())

    def resolve_login(self, name: str, host: str | None) -> HypervisorLogin:
        """Return a cluster or a node for a login, whether or not there is a token for it.

        Raises:
            NodeNotChosenError: Nothing says whose API is used, and there is more than one node.
            InvalidInputError: Something is wrong with the file.
        """
        loaded = self.resolver.hypervisor(name)
        host_config = self.resolver.resolve_host(self._find_node(name, host))
        node = self.resolver.site.nodes.get(host_config.name)
        return HypervisorLogin(
            target=self._target(name),
            desired=build_desired(loaded.model),
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

    def _find_node(self, name: str, host: str | None) -> str:
        model = self.resolver.hypervisor(name).model
        said = host or getattr(model, "api", None) or getattr(model, "node", None)
        return self.resolver.any_node(self.resolver.find_node(said) or said)

    def _tokens(self) -> SiteTokens:
        site = self.resolver.site
        nodes = {name: loaded.model.api_token or name for name, loaded in site.nodes.items()}
        return SiteTokens(site.root, nodes)

    def _target(self, name: str) -> Target:
        # Whichever node answers for a cluster, it has one state.
        return Target(kind=self.kind, name=name, node=name)


def _locate_in(loaded: LoadedFile[Any]) -> Locate:
    """Return what finds the places of the objects of a file, by their addresses."""
    paths: dict[str, tuple[str | int, ...]] = {}

    def locate(key: str, field: Sequence[str | int] = ()) -> Location | None:
        if not paths:
            paths.update((address_of_object(one.key), one.path) for one in list_entries(loaded.model))
            paths.update(_list_credential_places(loaded.model))
        return loaded.places.place((*paths[key], *field)) if key in paths else None

    return locate


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
