"""The built-in Proxmox provider: bpg/proxmox's resources, in this process, without a download.

    async with provider.serve(provider.Options(environment=...)) as served:
        workdir = Workdir(..., reattach=served.reattach)

It speaks the plugin protocol version 6 and is handed to the engine under the address of bpg/proxmox, so that
the same configuration and the same state work with either. It knows nothing of sites, guests or plans of
ours: a resource is what the engine says it is. `kinds` says what one consists of, `resources` holds them.
"""

from __future__ import annotations

from stackyard.provider.serve import Options, Served, serve

__all__ = ["Options", "Served", "serve"]
