"""`pve-setup` for a guest of a manifest: Proxmox VE is installed and set up, and no file is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.scenario.actions.install import EnsurePve
from stackyard.scenario.actions.setup import SetupPve
from stackyard.scenario.context import Context
from stackyard.scenario.machines import Remote
from stackyard.scenario.options import ScenarioOptions

if TYPE_CHECKING:
    from stackyard.base import events
    from stackyard.clients import ssh
    from stackyard.sources.site.load import Site

__all__ = ["install_pve"]


async def install_pve(host: ssh.Host, site: Site, name: str, emit: events.Emit) -> str:
    """Install Proxmox VE on a machine with Debian; return which version there is.

    Raises:
        MachineUnfitError: It has no Debian that Proxmox VE can be installed on, or does not come up with it.
        CommandFailedError: A command on it failed.
        SshUnreachableError: It cannot be reached, or does not come back from its restart.
    """
    machine = Remote(host, site.redactor())
    context = Context(machine=machine, options=ScenarioOptions(), site=site, name=name, emit=emit, phase=name)
    try:
        ensured = await EnsurePve().run(context)
        await SetupPve().run(context)
    finally:
        await machine.close()
    return ensured.message
