"""The lab: a simulator of the Proxmox VE API that real clients work with, without hardware.

`start` runs one for the length of an `async with` block, `running` in a thread for clients that block:

    async with pvelab.start(nodes=("pve1", "pve2")) as running:
        ...  # running.url, running.api_token, running.username, running.password

It uses `stackyard.base`, `stackyard.talosapi`, and no other package of stackyard.

- `server` receives a request: `http` (paths, bodies, authentication), then `dispatch` (route, permission,
  node, parameters). `server/facts` holds what Proxmox declares: names, types, limits, privileges.
  `server/coverage` lists which methods the lab supports.
- `api` has the handlers, in the folders of the API: `/nodes/{node}/qemu/{vmid}/agent` is
  `api/nodes/qemu/agent.py`.
- `world` is what handlers change: documents in a `store` (with SQLite if there is a data folder), `tasks`
  with UPIDs, `guests`, `storage`, `cluster`, permissions under `access`, `ha`, and a `clock` of its own.
- `ssh` accepts commands, which send the same calls.
- `control` has the routes under /_lab/. They add `faults`, read the journal of calls, and fill, reset, save
  and restore the whole lab through `runtime/lifecycle`. `seeds` hold the content of a new lab.
- `machines` runs programs in guests: records, sandboxes, or real VMs (`machines/qemu`).
- `truenas` is a TrueNAS with one pool, for what makes datasets.
- `talos` lets VMs that boot a Talos image answer the Talos API, and has an image factory.
- `nested` is the lab inside a guest that is itself a Proxmox node. It also connects guests of all depths.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pvelab.faults.latency import Latency, Speed, Work, parse_latency
    from pvelab.machines.machine import Kind
    from pvelab.runtime.expected import expected_ready
    from pvelab.runtime.start import Options, Running, running, start
    from pvelab.seeds import Seed, SeedError, is_node_name, load_seed
    from pvelab.server.problems import PveError

__all__ = [
    "Kind",
    "Latency",
    "Options",
    "PveError",
    "Running",
    "Seed",
    "SeedError",
    "Speed",
    "Work",
    "expected_ready",
    "is_node_name",
    "load_seed",
    "parse_latency",
    "running",
    "start",
]

_HOMES = {
    "Kind": "machines.machine",
    "Latency": "faults.latency",
    "Options": "runtime.start",
    "PveError": "server.problems",
    "Running": "runtime.start",
    "Seed": "seeds",
    "SeedError": "seeds",
    "Speed": "faults.latency",
    "Work": "faults.latency",
    "expected_ready": "runtime.expected",
    "is_node_name": "seeds",
    "load_seed": "seeds",
    "parse_latency": "faults.latency",
    "running": "runtime.start",
    "start": "runtime.start",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first used: pytest loads the plugin of the lab for tests that need none."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
