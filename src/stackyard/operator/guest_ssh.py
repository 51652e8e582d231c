"""Reaching guests by SSH: to configure them, look at them, and run what is inside of them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.operator.delegation.archive import find_archive
from stackyard.operator.delegation.delegate import DelegationContext, delegate
from stackyard.operator.delegation.offer import offer_store
from stackyard.operator.guests import configure, guest_context, inspect, pull_service
from stackyard.operator.guests.access import log_in
from stackyard.operator.outcome import Phase, PhaseStatus, Verb
from stackyard.operator.progress import PhaseFailedError
from stackyard.operator.pve_nodes import ensure_pve
from stackyard.path.ssh_login import node_host
from stackyard.sources.manifest.model import NodeType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.desired import Guest
    from stackyard.operator.delegation.archive import Archive
    from stackyard.operator.delegation.delegate import Delegated
    from stackyard.operator.guest_actions import GuestActions, HandsFor
    from stackyard.operator.guests import GuestContext
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.pve_nodes import InstallPve
    from stackyard.operator.request import VerbRequest
    from stackyard.path.verify import GuestUp
    from stackyard.sources.manifest.model import Manifest, Node

__all__ = ["guest_actions_by_ssh"]


def guest_actions_by_ssh(
    manifest_run: ManifestRun, install: InstallPve | None = None, emit: events.Emit = events.ignore
) -> HandsFor:
    """Return what gives, for each host, what reaches into its guests.

    Args:
        manifest_run: What is done.
        install: Installs Proxmox VE on nodes of type `pve` that have none; without, they stay as they are.
        emit: Takes the events.
    """
    packed = _ArchiveCache(emit)

    @contextlib.asynccontextmanager
    async def guest_actions_for(host: str) -> AsyncIterator[GuestActions]:
        resolver, manifest = manifest_run.resolver, manifest_run.manifest
        async with contextlib.AsyncExitStack() as stack:
            service = None
            if manifest_run.verb in (Verb.CREATE, Verb.TEST):
                service = await stack.enter_async_context(pull_service(resolver, manifest, host, emit=emit))
            context = await stack.enter_async_context(
                guest_context(resolver, manifest, host, service=service, timeouts=manifest_run.timeouts)
            )
            yield _SshGuestActions(
                manifest_run=manifest_run, context=context, packed=packed, install=install, emit=emit
            )

    return guest_actions_for


class _ArchiveCache:
    """The archive that inner hosts are sent, found when the first of them needs it, and once a run."""

    def __init__(self, emit: events.Emit) -> None:
        self._emit = emit
        self._turn = asyncio.Lock()
        self._archive: Archive | None = None

    async def archive(self) -> Archive:
        async with self._turn:
            if self._archive is None:
                self._archive = await find_archive(self._emit)
            return self._archive


@dataclass(frozen=True, kw_only=True)
class _SshGuestActions:
    """Reaches into the guests of one host."""

    manifest_run: ManifestRun
    context: GuestContext
    packed: _ArchiveCache
    install: InstallPve | None
    emit: events.Emit

    async def configure(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        if not self._is_worth_a_login(node):
            return (Phase(name="wait_ssh", status=PhaseStatus.SKIPPED, detail="`verify_ssh` is off."),)
        phases = await configure(node, guest, up, self.context, self.emit)
        if node.type is not NodeType.PVE or any(one.status is PhaseStatus.FAILED for one in phases):
            return phases
        return (*phases, *await self._ensure_pve(node, guest, up))

    async def _ensure_pve(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        if self.install is None or not up.addresses:
            return ()
        hosts = self.context.hosts(node, guest, up.addresses[0])
        buffer_s = float(self.manifest_run.manifest.settings.timeout_buffer)
        time_s = self.manifest_run.timeouts.seconds("setup_pve", buffer_s=buffer_s)
        return await ensure_pve(node.name, hosts, self.context, self.install, self.emit, timeout_s=time_s)

    def _is_worth_a_login(self, node: Node) -> bool:
        """Return whether there is a reason to log in: the manifest wants it, or there is something to do."""
        is_asked = self.manifest_run.manifest.settings.verify_ssh
        has_work = self.context.document(node) is not None
        return is_asked or has_work or node.type is NodeType.PVE

    async def inspect(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        address = up.addresses[0] if up.addresses else None
        if not self._is_worth_a_login(node):
            return (Phase(name="verify_address", detail=address or ""),)
        return await inspect(node, guest, address, self.context, self.emit)

    async def delegate(
        self, verb: Verb, node: Node, guest: Guest, up: GuestUp, *, subtree: Manifest, request: VerbRequest
    ) -> Delegated:
        if not up.addresses:
            raise PhaseFailedError(f"No address of {node.name} is known, so that nothing can be run there.")
        hosts = self.context.hosts(node, guest, up.addresses[0])
        async with log_in(hosts, self.context) as shell:
            inner = shell.host
        site, host = self.context.resolver.site, self.context.host.name
        archive = await self.packed.archive()
        with offer_store(
            self.manifest_run.settings.store, self.manifest_run.manifest.name, host, node.name
        ) as offered:
            context = DelegationContext(
                site=site,
                host=host,
                inner=inner,
                outer=node_host(site, self.context.host),
                request=request,
                jumps=self.context.jumps,
                archive=archive,
                offered=offered,
                whole_s=self.manifest_run.timeouts.seconds("delegate"),
            )
            return await delegate(verb, node, up.addresses[0], subtree=subtree, ctx=context, emit=self.emit)
