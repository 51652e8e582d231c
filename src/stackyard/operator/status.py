"""What a manifest has on its hosts now: its nodes, what drifted, and what no state knows."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import BusyError
from stackyard.clients import proxmox
from stackyard.engine.changes import Action
from stackyard.operator.create import guests_of
from stackyard.operator.remove import find_orphans
from stackyard.path.manifests import resolve_manifest
from stackyard.path.plan import make_plan
from stackyard.path.plan_request import PlanRequest
from stackyard.path.run import open_run
from stackyard.render.references import address_of
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.engine.changes import Change
    from stackyard.operator.manifest_run import ManifestRun
    from stackyard.operator.record import RunRecord
    from stackyard.path.plan import Plan

__all__ = ["NodeView", "StatusView", "look"]

_NOT_MADE = "not there"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node as it is.

    Attributes:
        name: The node.
        type: What it is.
        host: The host or node that it runs on.
        depth: Inside of how many nodes it runs.
        status: How far the last run got with it.
        vm_id: Its id.
        address: Where it answers.
        power: Whether it runs, as Proxmox says; nothing where that was not asked.
        drift: What is not as the manifest says; nothing where that was not looked at.
        error: What the last run says is wrong with it.
    """

    name: str
    type: str
    host: str
    depth: int
    status: str
    vm_id: int | None = None
    address: str | None = None
    power: str | None = None
    drift: tuple[str, ...] | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "name": self.name,
            "type": self.type,
            "host": self.host,
            "depth": self.depth,
            "status": self.status,
            "vm_id": self.vm_id,
            "ip": self.address,
            "power": self.power,
            "drift": None if self.drift is None else list(self.drift),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """A manifest as it is.

    Attributes:
        manifest: The manifest.
        host: The host that was asked for.
        nodes: Its nodes.
        runs: The last run on each host.
        orphans: Guests with its tag that are in no state.
        is_busy: Whether a run is at work on it, so that nothing could be compared.
    """

    manifest: str
    host: str
    nodes: tuple[NodeView, ...]
    runs: Mapping[str, RunRecord]
    orphans: tuple[str, ...] = ()
    is_busy: bool = False

    @property
    def has_drift(self) -> bool:
        """Whether a create would change anything."""
        return any(node.drift for node in self.nodes)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "manifest": self.manifest,
            "host": self.host,
            "has_drift": self.has_drift,
            "is_busy": self.is_busy,
            "nodes": [node.as_json() for node in self.nodes],
            "runs": {
                host: {
                    "verb": record.verb.value,
                    "state": record.state.value,
                    "started_at": record.started_at,
                    "finished_at": record.finished_at,
                    "error": record.error,
                }
                for host, record in self.runs.items()
            },
            "orphans": list(self.orphans),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _HostStatus:
    """What one host shows."""

    changes: Mapping[str, Change]
    power: Mapping[int, str]
    orphans: tuple[str, ...] = ()
    is_busy: bool = False


async def look(manifest_run: ManifestRun, emit: events.Emit = events.ignore) -> StatusView:
    """Look at a manifest on its hosts; nothing is changed.

    Raises:
        StackyardError: A host does not answer.
    """
    seen = {host: await _look_at(manifest_run, host, emit) for host in manifest_run.hosts}
    runs = {host: record for host in seen if (record := manifest_run.open_record(host).read()) is not None}
    nodes = [_node(manifest_run, name.name, seen, runs) for name in manifest_run.manifest.nodes]
    orphans = dict.fromkeys(text for one in seen.values() for text in one.orphans)
    return StatusView(
        manifest=manifest_run.manifest.name,
        host=manifest_run.host,
        nodes=tuple(nodes),
        runs=runs,
        orphans=tuple(orphans),
        is_busy=any(one.is_busy for one in seen.values()),
    )


async def _look_at(manifest_run: ManifestRun, host: str, emit: events.Emit) -> _HostStatus:
    resolved = resolve_manifest(manifest_run.resolver, manifest_run.manifest, host)
    guests = guests_of(resolved.desired, manifest_run.roots_on(host))
    with contextlib.closing(manifest_run.settings.store.read()) as objects:
        async with proxmox.Client(resolved.connection) as client:
            rows = await client.get("/cluster/resources", {"type": "vm"})
            orphans = await find_orphans(
                client, StateService(objects), manifest_run.resolver, manifest_run.manifest.name
            )
    power = {int(row["vmid"]): str(row.get("status", "")) for row in rows}
    try:
        async with (
            open_run(resolved, dataclasses.replace(manifest_run.settings, lock_wait_s=0.0), emit=emit) as run,
            make_plan(run, PlanRequest(unchanged=True)) as made,
        ):
            by_address = _by_address(made)
    except BusyError:
        return _HostStatus(changes={}, power=power, orphans=orphans, is_busy=True)
    changes = {
        name: by_address[address_of(guest)]
        for name, guest in guests.items()
        if address_of(guest) in by_address
    }
    return _HostStatus(changes=changes, power=power, orphans=orphans)


def _by_address(made: Plan) -> dict[str, Change]:
    return {change.address: change for change in made.changes.planned}


def _node(
    manifest_run: ManifestRun, name: str, seen: Mapping[str, _HostStatus], runs: Mapping[str, RunRecord]
) -> NodeView:
    node = manifest_run.manifest.by_name[name]
    host = manifest_run.root_host(name)
    record = runs.get(host)
    known = next((one for one in record.nodes if one.name == name), None) if record else None
    change = seen[host].changes.get(name)
    own = (change.before or {}).get("vm_id") if change is not None else None
    vm_id = own if isinstance(own, int) else known.vm_id if known else node.entry.get("vmid")
    is_here = node.parent is None
    return NodeView(
        name=name,
        type=node.type.value,
        host=manifest_run.host_of(name),
        depth=manifest_run.manifest.depth(name),
        status="pending" if known is None else known.status.value,
        vm_id=vm_id,
        address=None if known is None else known.address,
        power=seen[host].power.get(vm_id) if is_here and vm_id is not None else None,
        drift=_drift(change) if is_here and not seen[host].is_busy else None,
        error=None if known is None else known.error,
    )


def _drift(change: Change | None) -> tuple[str, ...]:
    if change is None or change.action in (Action.NOTHING, Action.READ):
        return ()
    if change.action is Action.CREATE:
        return (_NOT_MADE,)
    return tuple(dict.fromkeys(difference.name for difference in change.differences)) or (
        change.action.value,
    )
