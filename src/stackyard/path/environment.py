"""The envs of a site as targets."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.clients import proxmox
from stackyard.desired import Desired
from stackyard.guard.implied import Overcommit
from stackyard.path.declared_objects import list_declared
from stackyard.path.own_code import OwnCode
from stackyard.path.source_locations import in_env
from stackyard.path.ssh_login import jump_of, node_host
from stackyard.path.target import Resolved, SshAccess, Target
from stackyard.sources.site import ConfigResolver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.sources.site.hosts import HostConfig
    from stackyard.sources.store import ChosenStore

__all__ = ["EnvironmentSource", "NoTokenError", "resolve_by_state", "resolve_on", "resolve_without_env"]


class NoTokenError(InvalidInputError):
    """A target is to run on a node for whose API the site has no token."""

    code = "E-NODE-TOKEN"
    summary = "There is no token for the API of a node"
    default_remedy = "Put the token into secrets.yaml under `api_tokens`, with `stackyard secrets edit`."


@dataclass(frozen=True, slots=True)
class EnvironmentSource:
    """The envs of one site."""

    resolver: ConfigResolver

    @classmethod
    def find(cls, said: str | None, *, emit: events.Emit = events.ignore) -> EnvironmentSource:
        """Return the site that is named, or found from here.

        Args:
            said: The folder; found when absent.
            emit: Takes what is wrong with files that a target does not use.

        Raises:
            SiteNotFoundError: There is none.
            InvalidInputError: Something is wrong with site.yaml or the secrets, which everything uses.
        """
        return cls(ConfigResolver(said, emit=emit))

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return "env"

    @property
    def store(self) -> ChosenStore:
        """Where what runs leave for the next is kept."""
        return self.resolver.site.store

    def names(self) -> Sequence[str]:
        """Return the envs, also those whose files cannot be read."""
        return sorted({*self.resolver.list_envs(), *self.resolver.site.broken["envs"]})

    def is_current(self) -> bool:
        """Return whether the site is what it was when it was read."""
        return self.resolver.site.is_current()

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it; see `resolve_by_state`."""
        return resolve_by_state(self.resolver, self.kind, name, host)

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return an env on a node.

        Raises:
            NodeNotChosenError: No node is named, and there is more than one.
            NoTokenError: There is no token for it.
            InvalidInputError: The parts of the env do not fit; the error carries every problem.
        """
        desired = self.resolver.resolve_desired(name, host)
        target = Target(kind=self.kind, name=name, node=self.resolver.node(name, host))
        resolved = resolve_on(self.resolver, target, desired)
        return replace(resolved, locate=in_env(self.resolver.site, name), code=self._code(target))

    def _code(self, target: Target) -> OwnCode:
        site = self.resolver.site
        node = self.resolver.resolve_host(target.node).node_name
        return OwnCode(
            folders=site.code.of(target.name),
            env=(("name", target.name), ("node", node)),
            secrets=frozenset(site.secret_values.variables),
        )


def resolve_by_state(resolver: ConfigResolver, kind: str, name: str, host: str | None) -> Resolved:
    """Return a target with nothing in it and the way to its cluster, for verbs that need the state alone.

    Raises:
        NodeNotChosenError: No node is named, and there is more than one.
        NoTokenError: There is no token for it.
    """
    target = Target(kind=kind, name=name, node=resolver.any_node(host))
    return resolve_on(resolver, target, Desired())


def resolve_without_env(resolver: ConfigResolver, name: str, host: str | None) -> Resolved:
    """Return what is around an env that is to be made: the networks and pools that all envs share.

    Raises:
        NodeNotChosenError: No node is named, and there is more than one.
        NoTokenError: There is no token for it.
        InvalidInputError: The parts do not fit; the error carries every problem.
    """
    node = resolver.any_node(host)
    return resolve_on(resolver, Target(kind="site", name=name, node=node), resolver.resolve_shared(node))


def resolve_on(
    resolver: ConfigResolver, target: Target, desired: Desired, *, node: str | None = None
) -> Resolved:
    """Return a target on a node of a site.

    Args:
        resolver: The site.
        target: The target.
        desired: What should be there.
        node: The node whose API is used; the one of the target when absent.

    Raises:
        NoTokenError: There is no token for the node.
    """
    chosen = resolver.resolve_host(node or target.node)
    resolver.report_others()
    return Resolved(
        target=target,
        desired=desired,
        secrets=resolver.secrets(),
        connection=_connection(resolver, chosen),
        redactor=resolver.site.redactor(),
        ssh=_ssh(resolver, chosen, desired),
        jump=jump_of(resolver.site, chosen),
        source=str(resolver.site.root),
        overcommit=_overcommit(resolver),
        declared=functools.partial(list_declared, resolver.site),
    )


def _overcommit(resolver: ConfigResolver) -> Overcommit:
    said = resolver.site.settings.defaults.overcommit
    usual = Overcommit()
    storage = usual.storage if said.storage is None else said.storage
    return Overcommit(memory=said.memory, storage=storage)


def _ssh(resolver: ConfigResolver, chosen: HostConfig, desired: Desired) -> SshAccess:
    """Return how to reach the shells of the nodes; one that the site does not know is left out."""
    site = resolver.site
    by_name = {loaded.model.node or name: name for name, loaded in site.nodes.items()}
    # Two clusters may have a node of the same name; here, the one of the target is meant.
    by_name[chosen.node_name] = chosen.name
    used = {guest.node for guest in desired.guests} | {file.node for file in desired.files}
    used |= {interface.node for interface in (*desired.bridges, *desired.vlans)}
    used |= {node for one in desired.objects if isinstance(node := one.attributes.get("node_name"), str)}
    hosts = [resolver.resolve_host(by_name[node]) for node in sorted(used) if node in by_name]
    return SshAccess(
        user=chosen.ssh_user,
        nodes=tuple((host.node_name, host.ssh_host, host.ssh_port) for host in hosts),
        # Whose API is used may lose its interfaces, also where nothing is to be there any more.
        logins={host.node_name: node_host(site, host) for host in (chosen, *hosts)},
        other=node_host(site, chosen),
    )


def _connection(resolver: ConfigResolver, host: HostConfig) -> proxmox.Connection:
    """Return the way to the API of a node.

    Raises:
        NoTokenError: There is no token for it.
        EndpointError: A setting of it cannot be used.
    """
    origin = _origin(resolver, host)
    if not host.api_token:
        raise NoTokenError(
            f"There is no API token for {host.name} in the secrets of the site.",
            where=origin.credentials,
            remedy=f"Put the token into secrets.yaml as `{origin.token}`, with `stackyard secrets edit`.",
        )
    try:
        credentials = proxmox.Token(text=host.api_token)
    except proxmox.EndpointError as err:
        err.where = origin.credentials
        err.remedy = f"Correct `{origin.token}` in secrets.yaml: it is written as USER@REALM!NAME=SECRET."
        raise
    connection = proxmox.Connection(
        endpoint=host.api_endpoint,
        credentials=credentials,
        trust=proxmox.Trust(fingerprint=host.api_fingerprint),
        origin=origin,
    )
    try:
        connection.base_url()
    except proxmox.EndpointError as err:
        err.where = origin.endpoint
        raise
    return connection


def _origin(resolver: ConfigResolver, host: HostConfig) -> proxmox.Origin:
    """Return where the file of a node says how its API is reached."""
    node = resolver.site.nodes.get(host.name)
    if node is None:
        return proxmox.Origin()
    return proxmox.Origin(
        endpoint=node.places.place(("api_endpoint",)),
        credentials=node.places.place(("api_token",)),
        fingerprint=node.places.place(("api_fingerprint",)),
        token=f"api_tokens.{node.model.api_token or host.name}",
    )
