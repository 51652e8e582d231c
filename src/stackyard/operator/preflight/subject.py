"""What a preflight is about: a host, and what it is to carry."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.desired import Desired
from stackyard.guard.rights import Purpose
from stackyard.operator.configured import list_configured_guests
from stackyard.path.environment import EnvironmentSource, NoTokenError, resolve_on
from stackyard.path.manifests import resolve_manifest
from stackyard.path.target import Target
from stackyard.sources.manifest.model import NodeType, Scope
from stackyard.sources.site.hosts import make_unnamed_host

if TYPE_CHECKING:
    from stackyard.path.target import Resolved
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.hosts import HostConfig
    from stackyard.sources.site.load import Site

__all__ = ["PreflightSubject", "Purpose", "subject_of", "subject_of_env", "subject_of_here"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightSubject:
    """What is looked at.

    Attributes:
        site: The site.
        host: The host.
        resolved: What is to be there and how to reach the API; None where there is no API or no token.
        target: What is to be there, in a word; empty for the host alone.
        inner: The nodes of type `pve` among it, which are to run guests themselves.
        configured: The guests among it in which programs have to run, as a spec is applied in them.
        purpose: What follows.
    """

    site: Site
    host: HostConfig
    resolved: Resolved | None
    target: str = ""
    inner: frozenset[str] = field(default_factory=frozenset)
    configured: frozenset[str] = field(default_factory=frozenset)
    purpose: Purpose = Purpose.CREATE
    # Whether it is this machine, and no file of the site names it.
    is_here: bool = False

    @property
    def is_general(self) -> bool:
        """Whether the host alone is looked at."""
        return not self.target

    @property
    def datastore(self) -> str:
        """Where this host keeps disks."""
        return self.host.datastore

    @property
    def file_datastore(self) -> str:
        """Where this host keeps images and snippets."""
        node = self.site.nodes.get(self.host.name)
        return "local" if node is None else node.model.file_datastore


def subject_of(
    resolver: ConfigResolver,
    host: str,
    manifest: Manifest | None = None,
    *,
    purpose: Purpose = Purpose.CREATE,
) -> PreflightSubject:
    """Return a host, with what a manifest has on it where one is given.

    Raises:
        HostNotFoundError: The site has no such host.
        InvalidInputError: The manifest does not fit there, or has nothing there.
    """
    found = resolver.resolve_host(host)
    inner = configured = frozenset[str]()
    if manifest is not None:
        placed = manifest.on(host)
        here = placed.scopes.get(Scope(host=host), ())
        inner = frozenset(node.name for node in here if node.type is NodeType.PVE)
        configured = list_configured_guests(resolver.site, placed, host)
    return PreflightSubject(
        site=resolver.site,
        host=found,
        resolved=None if found.is_host_only else _resolve(resolver, host, manifest),
        target="" if manifest is None else f"manifest:{manifest.name}",
        inner=inner,
        configured=configured,
        purpose=purpose,
    )


def subject_of_here(resolver: ConfigResolver) -> PreflightSubject:
    """Return this machine: the host of the site that has its name, else one that no file names.

    Raises:
        InvalidInputError: There is a file of its name, and it is wrong.
    """
    site, name = resolver.site, socket.gethostname().partition(".")[0]
    if name in {*site.nodes, *site.hosts, *site.broken["nodes"], *site.broken["hosts"]}:
        return subject_of(resolver, name)
    return PreflightSubject(site=site, host=make_unnamed_host(site, name), resolved=None, is_here=True)


def subject_of_env(
    resolver: ConfigResolver, env: str, said: str | None, *, purpose: Purpose = Purpose.CREATE
) -> PreflightSubject:
    """Return the host of an env, with what the env has on it.

    Args:
        resolver: The site.
        env: The env.
        said: The node that is asked for; the env's own, or the only one of the site, when absent.
        purpose: What follows.

    Raises:
        InvalidInputError: There is no such env or node, or they do not fit.
    """
    host = resolver.node(resolver.env(env).name, said)
    target = Target(kind="env", name=env, node=host)
    try:
        resolved = EnvironmentSource(resolver).resolve(env, host)
    except NoTokenError:
        resolved = None
    found = resolver.resolve_host(host)
    return PreflightSubject(
        site=resolver.site, host=found, resolved=resolved, target=str(target), purpose=purpose
    )


def _resolve(resolver: ConfigResolver, host: str, manifest: Manifest | None) -> Resolved | None:
    try:
        if manifest is not None:
            return resolve_manifest(resolver, manifest, host)
        return resolve_on(resolver, Target(kind="host", name=host, node=host), Desired())
    except NoTokenError:
        # A finding among the others, not the end of the looking.
        return None
