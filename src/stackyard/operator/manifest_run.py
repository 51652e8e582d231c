"""What a request comes to: a manifest on hosts of a site, and which of its nodes are meant."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.operator.outcome import Verb
from stackyard.operator.record_store import RecordStore
from stackyard.path.manifests import require_used
from stackyard.path.run import InputChangedError, ProviderChoice, RunSettings, read_cli_config_path
from stackyard.sources.manifest.checks import check_manifest
from stackyard.sources.manifest.model import Scope
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.timeouts import Timeouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.operator.request import VerbRequest
    from stackyard.sources.manifest.model import Manifest, Node
    from stackyard.sources.site import ConfigResolver

__all__ = ["ManifestRun", "settings_for", "timeouts_of", "with_vm_ids"]

# The engine makes ten at once by default more; a guest that boots takes a place, and does nothing.
_FEWEST_AT_ONCE = 10
_MOST_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class ManifestRun:
    """One verb on one manifest.

    Attributes:
        verb: What to do.
        request: What was asked for.
        resolver: The site.
        manifest: The manifest, on its hosts.
        host: The host for nodes that name none.
        settings: How the engine is run.
    """

    verb: Verb
    request: VerbRequest
    resolver: ConfigResolver
    manifest: Manifest
    host: str
    settings: RunSettings

    @classmethod
    def of(cls, verb: Verb, request: VerbRequest, resolver: ConfigResolver) -> ManifestRun:
        """Read the manifest that a request means.

        Raises:
            ManifestNotFoundError: The site has no such manifest.
            UsageError: A node is named that the manifest does not have.
            InvalidInputError: Something is wrong with it; the error carries every problem.
        """
        wanted = ManifestRequest(name=request.name, file=request.file, text=request.text)
        return cls.with_manifest(verb, request, resolver, find_manifest(resolver.site, wanted))

    @classmethod
    def with_manifest(
        cls, verb: Verb, request: VerbRequest, resolver: ConfigResolver, manifest: Manifest
    ) -> ManifestRun:
        """Put a manifest on its hosts, with the ids that were given or were used before.

        Raises:
            UsageError: A node is named that the manifest does not have.
            InvalidInputError: The ids do not fit.
        """
        host = resolver.any_node(request.host or manifest.only_host)
        require_used(resolver, manifest, host)
        resolver.report_others()
        for name in (*request.targets, *request.vm_ids):
            if name not in manifest.by_name:
                raise UsageError(
                    f"The manifest '{manifest.name}' has no node '{name}'."
                    + did_you_mean(name, manifest.by_name)
                )
        settings = settings_for(request, resolver, len(manifest.roots))
        vm_ids = {**_list_previous_ids(settings, manifest, host), **request.vm_ids}
        placed = with_vm_ids(manifest, vm_ids).on(host)
        if vm_ids:
            found = Diagnostics()
            check_manifest(resolver.site, placed, found)
            found.raise_errors("The ids of --vm-id")
        return cls(
            verb=verb,
            request=dataclasses.replace(request, vm_ids=vm_ids),
            resolver=resolver,
            manifest=placed,
            host=host,
            settings=settings,
        )

    @property
    def timeouts(self) -> Timeouts:
        """How long phases may take."""
        return timeouts_of(self.request, self.resolver)

    def require_current(self) -> None:
        """Refuse to continue from a site or a manifest that was changed since it was read.

        Raises:
            InputChangedError: It was.
        """
        if not (self.resolver.site.is_current() and self._is_same_file()):
            raise InputChangedError(f"The manifest '{self.manifest.name}' or its site was changed meanwhile.")

    def _is_same_file(self) -> bool:
        if self.request.file is None:
            return True
        now = find_manifest(self.resolver.site, ManifestRequest(file=self.request.file))
        placed = with_vm_ids(now, self.request.vm_ids).on(self.host)
        return placed.document() == self.manifest.document()

    @cached_property
    def chosen(self) -> frozenset[str]:
        """The nodes that are meant: all, those down to a depth, or some with what they need or need them."""
        names = {node.name for node in self.manifest.nodes}
        if self.request.depth is not None and self.verb is not Verb.DESTROY:
            names = {node.name for node in self.manifest.up_to(self.request.depth).nodes}
        if self.request.targets:
            graph = self.manifest.graph
            is_going = self.verb is Verb.DESTROY
            reach = graph.descendants if is_going else graph.ancestors
            names &= {*self.request.targets, *reach(*self.request.targets)}
        return frozenset(names)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that chosen nodes are on, in the order of the file."""
        return tuple(dict.fromkeys(map(self.root_host, self._in_order(self.chosen))))

    def roots_on(self, host: str) -> tuple[Node, ...]:
        """Return the chosen nodes that run on a host itself."""
        here = self.manifest.scopes.get(Scope(host=host), ())
        return tuple(node for node in here if node.name in self.chosen)

    def inside(self, name: str) -> tuple[Node, ...]:
        """Return the chosen nodes that run inside of a node of a host, at any depth."""
        return self._inside.get(name, ())

    @cached_property
    def _inside(self) -> Mapping[str, tuple[Node, ...]]:
        found: dict[str, list[Node]] = {}
        for node in self.manifest.nodes:
            if node.parent is not None and node.name in self.chosen:
                found.setdefault(self.root_of(node.name).name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def root_of(self, name: str) -> Node:
        """Return the node on a host that a node is, or runs inside of."""
        node = self.manifest.by_name[name]
        while node.parent is not None:
            node = self.manifest.by_name[node.parent]
        return node

    def root_host(self, name: str) -> str:
        """Return the host of the site that a node is on, however deep inside."""
        return self.root_of(name).scope.host or self.host

    def with_root(self, name: str) -> ManifestRun:
        """Return the same for a node of a host and all that is inside of it."""
        root = self.manifest.by_name[name]
        kept = {one.name for one in self.manifest.nodes if self.root_of(one.name) is root}
        request = dataclasses.replace(self.request, targets=tuple(sorted(kept)))
        return dataclasses.replace(self, request=request)

    def host_of(self, name: str) -> str:
        """Return the host or node that a node runs on."""
        return str(self.manifest.by_name[name].scope)

    def open_record(self, host: str) -> RecordStore:
        """Return where the record of a host is kept."""
        return RecordStore(self.settings.store, self.manifest.name, host)

    def is_whole(self, host: str) -> bool:
        """Return whether everything that the manifest has on a host is meant."""
        return len(self.roots_on(host)) == len(self.manifest.scopes.get(Scope(host=host), ()))

    def _in_order(self, names: Iterable[str]) -> list[str]:
        wanted = set(names)
        return [node.name for node in self.manifest.nodes if node.name in wanted]


def timeouts_of(request: VerbRequest, resolver: ConfigResolver) -> Timeouts:
    """Return how long phases may take: what was asked for before what the site says."""
    return Timeouts.of(resolver.site.settings.defaults.timeouts, request.timeouts)


def settings_for(request: VerbRequest, resolver: ConfigResolver, roots: int) -> RunSettings:
    """Return how the engine is run for a request."""
    return RunSettings(
        store=resolver.site.store,
        provider=ProviderChoice(request.provider),
        cli_config=read_cli_config_path(),
        lock_wait_s=request.lock_wait_s,
        parallelism=request.parallel or min(max(_FEWEST_AT_ONCE, roots + 2), _MOST_AT_ONCE),
    )


def with_vm_ids(manifest: Manifest, vm_ids: Mapping[str, int]) -> Manifest:
    """Return a manifest some of whose nodes have other ids."""
    nodes = tuple(
        dataclasses.replace(node, entry={**node.entry, "vmid": vm_ids[node.name]})
        if node.name in vm_ids
        else node
        for node in manifest.nodes
    )
    return dataclasses.replace(manifest, nodes=nodes)


def _list_previous_ids(settings: RunSettings, manifest: Manifest, host: str) -> dict[str, int]:
    """Return the ids that were given before for guests that are still there."""
    record = RecordStore(settings.store, manifest.name, host).read()
    if record is None or record.is_over:
        return {}
    return {name: vm_id for name, vm_id in record.vm_ids.items() if name in manifest.by_name}
