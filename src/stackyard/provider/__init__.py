"""The built-in Proxmox provider: bpg/proxmox's resources, in this process, without a download.

    async with provider.serve(provider.Options(environment=...)) as served:
        workdir = Workdir(..., reattach=served.reattach)

It implements version 6 of the plugin protocol. The engine gets it under the address of bpg/proxmox, so the
same configuration and the same state work with either. It does not know sites, guests or plans of
stackyard: a resource is what the engine sends. `kinds` defines the parts of a resource, `resources` holds
them.
"""

from __future__ import annotations

import os

from stackyard.provider.serve import Options, RunningProvider, serve

__all__ = ["Options", "RunningProvider", "serve"]

# Our programs are started by fork and exec at once. gRPC's handlers would begin threads between the two, and
# these end the program when its descriptors are closed. It looks at this once, when it is first imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
