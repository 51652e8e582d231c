"""Nodes of type `pve` whose image has no Proxmox VE: it is installed before anything runs inside of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import StackyardError
from stackyard.operator.delegation.inner_host import InnerHost, InnerHostError, Steps
from stackyard.operator.guests.access import log_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base import events
    from stackyard.clients import ssh
    from stackyard.operator.guests import GuestContext
    from stackyard.operator.outcome import Phase
    from stackyard.sources.site.load import Site

__all__ = ["InstallPve", "ensure_pve"]


class InstallPve(Protocol):
    """Installs Proxmox VE on a machine with Debian, and makes it ready for use."""

    async def __call__(self, host: ssh.Host, site: Site, name: str, emit: events.Emit) -> str:
        """Do it; return which version there is.

        Raises:
            StackyardError: It cannot be installed there.
        """
        ...


async def ensure_pve(
    name: str,
    hosts: Sequence[ssh.Host],
    ctx: GuestContext,
    install: InstallPve,
    emit: events.Emit,
    *,
    timeout_s: float | None,
) -> tuple[Phase, ...]:
    """Let a guest be a Proxmox node; return what was done, which is nothing where it is one already.

    A phase that failed is the last one, and says why.
    """
    steps = Steps(host=name, emit=emit)
    try:
        async with log_in(hosts, ctx) as shell:
            inner = InnerHost(name=name, shell=shell)
            if (await inner.run("command -v pvesh || echo none")).strip() != "none":
                return ()
            host = shell.host
        with steps.step("setup_pve", "Installing Proxmox VE") as step:
            try:
                async with asyncio.timeout(timeout_s):
                    step.log(await install(host, ctx.resolver.site, name, emit))
            except TimeoutError as err:
                raise InnerHostError(
                    f"Proxmox VE was not installed on {name} within {timeout_s:g} s.",
                    remedy="Give it more time (`--timeout setup_pve=SECONDS`), or use an image that has it.",
                ) from err
    except StackyardError:
        if not steps.done:
            raise
    return tuple(steps.done)
