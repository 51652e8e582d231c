"""The built-in Proxmox provider: bpg/proxmox's resources, in this process, without a download.

    async with provider.serve(provider.Options(environment=...)) as served:
        workdir = Workdir(..., reattach=served.reattach)

It speaks the plugin protocol version 6 and is handed to the engine under the address of bpg/proxmox, so that
the same configuration and the same state work with either. It knows nothing of sites, guests or plans of
ours: a resource is what the engine says it is. `kinds` says what one consists of, `resources` holds them.
"""

from __future__ import annotations

import os

from stackyard.provider.serve import Options, Served, serve

__all__ = ["Options", "Served", "serve"]

# Our programs are started by fork and exec at once. gRPC's handlers would begin threads between the two, and
# these end the program when its descriptors are closed. It looks at this once, when it is first imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
