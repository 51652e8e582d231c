"""The lab: a Proxmox VE API server that real clients believe, without hardware.

`start` runs one for the length of an `async with` block, `running` in a thread for clients that block:

    async with lab.start(nodes=("pve1", "pve2")) as running:
        ...  # running.url, running.api_token, running.username, running.password

It stands on `serving` and knows nothing else of stackyard. A request goes `http` (paths, bodies, who calls)
-> `dispatch` (route, permission, node, parameters) -> a handler under `resources`, bound by
`routing.route`. Handlers act on the `World`: documents in a `store` (SQLite behind it, if there is a data
folder), `tasks` with UPIDs, `guests`, `storages`, `volumes`, `locks`, permissions under `access`, time from
a `clock` of its own. What Proxmox declares (names, types, limits, privileges) is in `facts`; what the lab
has of it, `coverage` prints.

Beside the API stand the `ssh` side, whose commands make the same calls, and the routes under /_lab/
(`control`, `controls`), which order `faults`, read the `journal` and change everything at once through the
`lifecycle`: filled from one of the `seeds`, reset, `saved` and restored.

What is `inside` guests are records or sandboxes, or real VMs (`qemu`); a guest that is a Proxmox node itself
has a lab of its own inside (`nested`, where connections between guests of all depths are carried too).
"""

from __future__ import annotations

from stackyard.lab.expected import expected_ready
from stackyard.lab.inside.machine import Kind
from stackyard.lab.latency import Latency, Speed, Work, parse_latency
from stackyard.lab.problems import PveError
from stackyard.lab.running import Options, Running, running, start
from stackyard.lab.seeds import Seed, SeedError, is_node_name, load_seed

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
