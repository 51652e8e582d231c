"""A Ceph cluster as the lab knows it: its services, disks and pools, and what follows.

Documents: `ceph/config` (there once Ceph is set up: `fsid network cluster_network size min_size`),
`ceph_services/<kind>.<name>` (`mon`, `mgr` and `mds`: `node addr running created`), `ceph_osds/<id>` (`node
device size class in running ...`), `ceph_pools/<name>`. Health, quorum, space and the states of placement
groups are computed from these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["RELEASE", "SERVICES", "VERSION", "Ceph"]

VERSION, RELEASE = "19.2.3", "squid"
SERVICES, OSDS, POOLS = "ceph_services", "ceph_osds", "ceph_pools"
VERSION_TEXT = f"ceph version {VERSION} (c92aebb279828e9c3c1f5d24613efca272649e62) {RELEASE} (stable)"
_KEYRING = "/etc/pve/priv/ceph.client.admin.keyring"


class Ceph:
    """The cluster; made for a call or a step and not kept.

    Args:
        world: The lab.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store

    @property
    def config(self) -> Document | None:
        """How it was set up; None before that."""
        return self._store.get("ceph", "config")

    def require(self) -> Document:
        """Return the configuration of a cluster that answers.

        Raises:
            PveError: Ceph is not set up, or no monitor runs.
        """
        config = self.require_set_up()
        if not self.services("mon"):
            raise PveError(f"ceph not fully configured - missing '{_KEYRING}'")
        if not self.quorum():
            raise PveError("rados_connect failed - Connection timed out")
        return config

    def require_set_up(self) -> Document:
        """Return the configuration.

        Raises:
            PveError: Ceph is not set up.
        """
        config = self.config
        if config is None:
            raise PveError("pveceph configuration not enabled")
        return config

    def services(self, kind: str) -> dict[str, Document]:
        """Return the services of a kind by name."""
        prefix = f"{kind}."
        found = self._store.items(SERVICES).items()
        return {key.removeprefix(prefix): service for key, service in found if key.startswith(prefix)}

    def runs(self, service: Document) -> bool:
        """Return whether a service (or an OSD) works: it was not stopped, and its node is up."""
        return bool(service["running"]) and self._world.cluster.is_online(str(service["node"]))

    def quorum(self) -> list[str]:
        """Return the monitors that agree with each other; none if too few of them run."""
        monitors = self.services("mon")
        running = [name for name, service in sorted(monitors.items()) if self.runs(service)]
        return running if len(running) * 2 > len(monitors) else []

    def osds(self) -> dict[int, Document]:
        """Return the OSDs by number."""
        return {
            int(key): osd for key, osd in sorted(self._store.items(OSDS).items(), key=lambda i: int(i[0]))
        }

    def pools(self) -> Mapping[str, Document]:
        """Return the pools by name."""
        return self._store.items(POOLS)

    def require_pool(self, name: str) -> Document:
        """Return a pool.

        Raises:
            PveError: There is none of that name.
        """
        found = self._store.get(POOLS, name)
        if found is None:
            raise PveError(f"mon_command failed - unrecognized pool '{name}'")
        return found

    def require_osd(self, number: int) -> Document:
        """Return an OSD.

        Raises:
            PveError: There is none of that number.
        """
        found = self._store.get(OSDS, str(number))
        if found is None:
            raise PveError(f"no such OSD '{number}'")
        return found

    def rules(self) -> list[str]:
        """Return the rules by which data is placed: one for all, and one each erasure coded pool brings."""
        own = [str(pool["crush_rule"]) for pool in self.pools().values()]
        return sorted({"replicated_rule", *own})

    def total(self) -> int:
        """Return how many bytes the disks have that count."""
        return sum(int(osd["size"]) for osd in self.osds().values() if osd["in"])

    def pool_used(self, name: str) -> int:
        """Return how many bytes are in a pool, before they are copied."""
        used = 0
        for storage, config in self._world.storages.all().items():
            own = config["type"] == "rbd" and str(config.get("pool", "rbd")) == name
            if own and not config.get("monhost"):
                used += self._world.storages.used(storage, self._world.cluster.local())
        return used

    def used(self) -> int:
        """Return how many bytes of the disks are taken, copies and all."""
        return sum(self.pool_used(name) * int(pool["size"]) for name, pool in self.pools().items())

    def health(self) -> tuple[str, dict[str, Any]]:
        """Return the state of the cluster and what is wrong with it."""
        checks: dict[str, str] = {}
        monitors, quorum = self.services("mon"), self.quorum()
        if len(quorum) < len(monitors):
            checks["MON_DOWN"] = f"{len(monitors) - len(quorum)}/{len(monitors)} mons down"
        if monitors and not any(self.runs(mgr) for mgr in self.services("mgr").values()):
            checks["MGR_DOWN"] = "no active mgr"
        osds = self.osds()
        down = [number for number, osd in osds.items() if osd["in"] and not self.runs(osd)]
        if down:
            checks["OSD_DOWN"] = f"{len(down)} osds down"
        wanted = int((self.config or {}).get("size", 3))
        if len(osds) < wanted:
            checks["TOO_FEW_OSDS"] = f"OSD count {len(osds)} < osd_pool_default_size {wanted}"
        for name, pool in self.pools().items():
            if int(pool["size"]) > len(self._hosts()):
                checks["PG_DEGRADED"] = f"Degraded data redundancy: pool '{name}' lacks copies"
        detail = {
            key: {
                "severity": "HEALTH_WARN",
                "summary": {"message": text, "count": 1},
                "detail": [],
                "muted": False,
            }
            for key, text in checks.items()
        }
        return ("HEALTH_WARN" if checks else "HEALTH_OK"), detail

    def _hosts(self) -> set[str]:
        return {str(osd["node"]) for osd in self.osds().values() if osd["in"] and self.runs(osd)}

    def groups(self) -> dict[str, int]:
        """Return how many placement groups are in each state."""
        states: dict[str, int] = {}
        hosts = len(self._hosts())
        for pool in self.pools().values():
            if not hosts:
                state = "unknown"
            elif hosts < int(pool["size"]):
                state = "active+undersized" if hosts >= int(pool["min_size"]) else "undersized+peered"
            else:
                state = "active+clean"
            states[state] = states.get(state, 0) + int(pool["pg_num"])
        return states

    def refresh_capacities(self) -> None:
        """Let storages on the cluster have the room that its disks leave, in the running transaction."""
        for storage, config in self._world.storages.all().items():
            if config["type"] != "rbd" or config.get("monhost"):
                continue
            pool = self.pools().get(str(config.get("pool", "rbd")))
            if pool is not None:
                room = self.total() // max(1, int(pool["size"]))
                self._store.put("capacities", f"|{storage}", {"total": room})

    def address(self, node: str) -> str:
        """Return the address of a node in the network of Ceph."""
        return str(self._world.cluster.nodes()[node]["ip"])

    def next_pool(self) -> int:
        """Return the number of the next pool; numbers are not given twice."""
        kept = self._store.get("ceph", "counters") or {}
        number = int(kept.get("pool", 0)) + 1
        self._store.put("ceph", "counters", {**kept, "pool": number})
        return number
