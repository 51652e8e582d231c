"""What everything that is done with guests needs: the site, the way to them, and what they should be."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stackyard.clients import ssh
from stackyard.desired import Vm
from stackyard.operator.configured import guest_values, spec_of
from stackyard.operator.guests.documents import posture_port, push_document
from stackyard.path.manifests import KIND, first_boots_of
from stackyard.path.ssh_login import AGENT_VARIABLE, jump_of, key_files, known_hosts
from stackyard.path.target import Target
from stackyard.sources.manifest.model import NodeType
from stackyard.sources.site.specs import resolve_spec
from stackyard.sources.site.timeouts import Timeouts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.base.redaction import Redactor
    from stackyard.desired import Guest
    from stackyard.operator.guests.pull import PullService
    from stackyard.path.first_boots import FirstBoots
    from stackyard.sources.manifest.model import Manifest, Node
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.hosts import HostConfig

__all__ = ["GuestContext", "GuestTimeouts", "guest_context"]

_ROOT = "root"
_SSH_PORT = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestTimeouts:
    """How long things may take.

    Attributes:
        ssh_s: Until a guest answers over SSH.
        refused_s: Until a guest that answers lets us in: its first boot makes the user.
        boot_s: Until its first boot is done, with what it fetches.
        apply_s: Until a spec is applied; packages come from the network.
    """

    ssh_s: float = 180.0
    refused_s: float = 30.0
    boot_s: float = 900.0
    apply_s: float = 1800.0

    def longer(self, seconds: float) -> GuestTimeouts:
        """Return it with some time on top of every wait; who is refused needs no time, but another key."""
        return GuestTimeouts(
            ssh_s=self.ssh_s + seconds,
            refused_s=self.refused_s,
            boot_s=self.boot_s + seconds,
            apply_s=self.apply_s + seconds,
        )

    def limit(self, timeouts: Timeouts) -> GuestTimeouts:
        """Return it with what the run or the site says of single phases."""
        return GuestTimeouts(
            ssh_s=timeouts.said.get("wait_ssh", self.ssh_s),
            refused_s=min(self.refused_s, timeouts.said.get("wait_ssh", self.refused_s)),
            boot_s=timeouts.said.get("wait_first_boot", self.boot_s),
            apply_s=timeouts.said.get("apply_spec", self.apply_s),
        )


@dataclass(frozen=True, kw_only=True)
class GuestContext:
    """What is needed to work with the guests of a manifest on one host.

    Attributes:
        resolver: The site.
        manifest: The manifest, with a host for every node that runs on one.
        host: The host.
        jump: The machine through which guests are reached; directly when absent.
        jumps: The connections to such machines.
        redactor: Masks secrets in all output.
        service: The controller that guests fetch from; None where the site has one of its own, or none does.
        patience: How long things may take.
        settled: Guests that have fetched their specs; remembered when the context ends.
    """

    resolver: ConfigResolver
    manifest: Manifest
    host: HostConfig
    jump: ssh.Host | None
    jumps: ssh.Jumps = field(repr=False)
    redactor: Redactor = field(repr=False)
    service: PullService | None = None
    patience: GuestTimeouts = GuestTimeouts()
    settled: set[str] = field(default_factory=set)

    @property
    def target(self) -> Target:
        """The target whose state has these guests."""
        return Target(kind=KIND, name=self.manifest.name, node=self.host.name)

    @property
    def boots(self) -> FirstBoots:
        """What was made for the first boots of these guests."""
        return first_boots_of(self.resolver, self.target)

    @cached_property
    def values(self) -> Mapping[str, Mapping[str, Any]]:
        """What is said of each guest, merged from all layers, by name."""
        return guest_values(self.resolver.site, self.manifest, self.host.name)

    def spec_of(self, node: Node) -> str | None:
        """Return the spec of a node, None where it has none."""
        return spec_of(self.resolver.site, node, self.values.get(node.name, node.entry))

    def document(self, node: Node) -> dict[str, Any] | None:
        """Return what a node should be, with nothing left to look up; None where nothing is applied to it."""
        spec, site = self.spec_of(node), self.resolver.site
        if node.mode == "pull" and node.type is not NodeType.CT:
            return None if spec is None else resolve_spec(site, spec, guest=node.name)
        packages = self.values.get(node.name, node.entry).get("packages") or ()
        is_container = node.type is NodeType.CT
        if spec is None and not is_container:
            return None
        return push_document(
            site,
            node.name,
            spec=spec,
            posture=self.manifest.posture,
            packages=tuple(packages),
            is_container=is_container,
        )

    def hosts(self, node: Node, guest: Guest, address: str) -> tuple[ssh.Host, ...]:
        """Return the ways to log in to a guest, the likeliest first.

        The SSH server of a guest whose spec was applied may have another port, and root may be let in no
        more.
        """
        site = self.resolver.site
        users = (self.host.automation_user, *((_ROOT,) if node.type is NodeType.CT else ()))
        port = posture_port(self.document(node))
        ports = dict.fromkeys((port or _SSH_PORT, _SSH_PORT))
        pinned = _host_keys(guest)
        return tuple(
            ssh.Host(
                address=address,
                port=number,
                username=user,
                key_files=key_files(site),
                agent_socket=os.environ.get(AGENT_VARIABLE),
                known_hosts=known_hosts(site),
                alias=self.alias(node.name),
                host_keys=pinned,
                via=self.jump,
                connect_s=10.0,
                openssh=ssh.OpenSsh(keys_only=True),
            )
            for number in ports
            for user in dict.fromkeys(users)
        )

    def alias(self, guest: str) -> str:
        """Return the name by which the key of a guest is remembered, where it is not pinned."""
        return f"{self.target.state_name}/{guest}"

    def forget(self, *guests: str) -> None:
        """Forget the keys of guests that are no more, so that others of the same name can come."""
        self.boots.forget(guests)
        ssh.forget_hosts(known_hosts(self.resolver.site), [self.alias(guest) for guest in guests])


def _host_keys(guest: Guest) -> tuple[str, ...]:
    """Return the keys that a guest was given; one that makes its own is known from the first contact on."""
    init = guest.cloud_init if isinstance(guest, Vm) else None
    if init is None or init.host_key is None or init.user_data is not None:
        return ()
    return (init.host_key.public,)


@contextlib.asynccontextmanager
async def guest_context(
    resolver: ConfigResolver,
    manifest: Manifest,
    host: str,
    *,
    service: PullService | None = None,
    patience: GuestTimeouts | None = None,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[GuestContext]:
    """Give what is needed to work with guests, for the length of a block.

    Args:
        resolver: The site.
        manifest: The manifest.
        host: The host that they run on.
        service: The controller that guests fetch from, where `pull_service` gave one.
        patience: How long things may take; the manifest's `timeout_buffer` is put on top in any case.
        timeouts: What the run or the site says of phases, which counts as it is.
    """
    chosen = resolver.resolve_host(host)
    buffer_s = float(manifest.settings.timeout_buffer)
    async with ssh.Jumps() as jumps:
        context = GuestContext(
            resolver=resolver,
            manifest=manifest.on(host),
            host=chosen,
            jump=jump_of(resolver.site, chosen),
            jumps=jumps,
            redactor=_redactor(resolver, service),
            service=service,
            patience=(patience or GuestTimeouts()).longer(buffer_s).limit(timeouts or Timeouts()),
        )
        try:
            yield context
        finally:
            context.boots.settle(context.settled)


def _redactor(resolver: ConfigResolver, service: PullService | None) -> Redactor:
    known = resolver.site.redactor()
    return known if service is None else known.with_secrets(service.tokens.values())
