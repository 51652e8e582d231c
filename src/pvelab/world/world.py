"""The whole lab in one object: the store, the clock, and everything that depends on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pvelab.faults.faults import Faults
from pvelab.faults.kinds import follow_faults
from pvelab.machines.machines import Machines
from pvelab.nested.nest import NestedLabs
from pvelab.server.journal import Journal
from pvelab.world.access.login import Login
from pvelab.world.access.permissions import Permissions
from pvelab.world.access.tickets import Tickets
from pvelab.world.cluster.cluster import Cluster
from pvelab.world.cluster.log import ClusterLog
from pvelab.world.cluster.pools import Pools
from pvelab.world.guests.executions import Executions
from pvelab.world.guests.guests import Guests
from pvelab.world.guests.rows import GuestRows
from pvelab.world.ha.manager_trigger import ManagerTrigger
from pvelab.world.locks import Locks
from pvelab.world.scheduler import Scheduler
from pvelab.world.storage.blobs import Blobs
from pvelab.world.storage.download import Fetcher
from pvelab.world.storage.storages import Storages
from pvelab.world.storage.volumes import Volumes
from pvelab.world.tasks import Tasks

if TYPE_CHECKING:
    from pvelab.faults.latency import Latency
    from pvelab.nested.uplink import Uplink
    from pvelab.server.facts import Facts
    from pvelab.world.clock import LabClock
    from pvelab.world.store import Store

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
    nest: NestedLabs
    ha: ManagerTrigger
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
        nest=NestedLabs() if uplink is None else NestedLabs(directory=uplink.world.nest.directory),
        ha=ManagerTrigger(store, clock, latency),
        scheduler=Scheduler(store, clock),
        log=ClusterLog(),
        machines=machines or Machines(store),
    )
    world.machines.follow(world)
    return world
