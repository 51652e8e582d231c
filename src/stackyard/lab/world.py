"""The whole lab in one object: the store, the clock, and everything that stands on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.lab.access.login import Login
from stackyard.lab.access.permissions import Permissions
from stackyard.lab.access.tickets import Tickets
from stackyard.lab.blobs import Blobs
from stackyard.lab.cluster import Cluster
from stackyard.lab.cluster_log import ClusterLog
from stackyard.lab.executions import Executions
from stackyard.lab.fault_kinds import follow_faults
from stackyard.lab.faults import Faults
from stackyard.lab.fetching import Fetcher
from stackyard.lab.guests import Guests
from stackyard.lab.ha.desk import Desk
from stackyard.lab.inside.machines import Machines
from stackyard.lab.journal import Journal
from stackyard.lab.locks import Locks
from stackyard.lab.nested.nest import Nest
from stackyard.lab.pools import Pools
from stackyard.lab.rows import GuestRows
from stackyard.lab.scheduler import Scheduler
from stackyard.lab.storages import Storages
from stackyard.lab.tasks import Tasks
from stackyard.lab.volumes import Volumes

if TYPE_CHECKING:
    from stackyard.lab.clock import LabClock
    from stackyard.lab.facts import Facts
    from stackyard.lab.latency import Latency
    from stackyard.lab.nested.uplink import Uplink
    from stackyard.lab.store import Store

__all__ = ["World", "assemble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What handlers and workers act on."""

    facts: Facts
    store: Store
    clock: LabClock
    latency: Latency
    faults: Faults
    journal: Journal
    permissions: Permissions
    tickets: Tickets
    login: Login
    tasks: Tasks
    locks: Locks
    cluster: Cluster
    guests: Guests
    pools: Pools
    storages: Storages
    volumes: Volumes
    rows: GuestRows
    blobs: Blobs
    fetcher: Fetcher
    uplink: Uplink | None
    nest: Nest
    ha: Desk
    scheduler: Scheduler
    log: ClusterLog
    machines: Machines
    executions: Executions = field(default_factory=Executions)
    # Public keys that open every guest, for as long as this process lives: the owner names them when needed.
    owner_keys: set[str] = field(default_factory=set)


def assemble(
    facts: Facts,
    store: Store,
    clock: LabClock,
    latency: Latency,
    *,
    blobs: Blobs | None = None,
    fetcher: Fetcher | None = None,
    uplink: Uplink | None = None,
    machines: Machines | None = None,
) -> World:
    """Build the world on a store.

    Args:
        facts: What Proxmox declares.
        store: What the lab knows.
        clock: Its time.
        latency: How long work takes.
        blobs: Where the bytes of files are; a folder that goes with the lab if None.
        fetcher: What asks the web; one that stays on this machine if None.
        machines: The inside of guests; in a folder that goes with the lab if None.
        uplink: The guest that this lab is in, None for one that is in none.
    """
    faults = Faults()
    follow_faults(store, faults)
    permissions = Permissions(store, clock)
    tickets = Tickets(store, clock)
    storages = Storages(store)
    cluster = Cluster(store)
    blobs = blobs or Blobs()
    blobs.follow(store)
    world = World(
        facts=facts,
        store=store,
        clock=clock,
        latency=latency,
        faults=faults,
        journal=Journal(),
        permissions=permissions,
        tickets=tickets,
        login=Login(store, clock, permissions.directory, tickets),
        tasks=Tasks(store, clock, latency, faults),
        locks=Locks(clock),
        cluster=cluster,
        guests=Guests(store, cluster),
        pools=Pools(store),
        storages=storages,
        volumes=Volumes(store, storages, clock),
        rows=GuestRows(store),
        blobs=blobs,
        fetcher=fetcher or Fetcher(),
        uplink=uplink,
        nest=Nest() if uplink is None else Nest(directory=uplink.world.nest.directory),
        ha=Desk(store, clock, latency),
        scheduler=Scheduler(store, clock),
        log=ClusterLog(),
        machines=machines or Machines(store),
    )
    world.machines.follow(world)
    return world
