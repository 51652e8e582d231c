"""Objects of the whole cluster that are listed in one place and made by one call each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.exporting.read import create_call
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.exporting.read import Source

__all__ = ["list_base_calls", "list_group_calls", "list_guest_calls"]


@dataclass(frozen=True, slots=True)
class _ObjectKind:
    """A kind of object: where its list is, what makes one, and the path of one if the list tells little."""

    listed: str
    made_by: str
    one: str | None = None


# Before the guests' places in them are taken: what these refer to.
_EARLY = (
    _ObjectKind("/cluster/qemu/custom-cpu-models", "POST /cluster/qemu/custom-cpu-models"),
    _ObjectKind("/cluster/mapping/pci", "POST /cluster/mapping/pci"),
    _ObjectKind("/cluster/mapping/usb", "POST /cluster/mapping/usb"),
    _ObjectKind("/cluster/mapping/dir", "POST /cluster/mapping/dir"),
    _ObjectKind("/cluster/sdn/dns", "POST /cluster/sdn/dns"),
    _ObjectKind("/cluster/sdn/controllers", "POST /cluster/sdn/controllers"),
    _ObjectKind("/cluster/sdn/zones", "POST /cluster/sdn/zones"),
    _ObjectKind("/cluster/sdn/vnets", "POST /cluster/sdn/vnets"),
)
_LATE = (
    _ObjectKind("/cluster/ha/resources", "POST /cluster/ha/resources"),
    _ObjectKind("/cluster/ha/rules", "POST /cluster/ha/rules"),
    _ObjectKind("/cluster/replication", "POST /cluster/replication"),
    _ObjectKind("/cluster/backup", "POST /cluster/backup"),
    _ObjectKind(
        "/cluster/metrics/server", "POST /cluster/metrics/server/{id}", one="/cluster/metrics/server/{id}"
    ),
)


async def list_base_calls(source: Source) -> list[dict[str, Any]]:
    """Return the calls that set the options of the cluster and make mappings and virtual networks."""
    calls = await _options(source)
    for kind in _EARLY:
        calls += await _calls(source, kind)
    networks = await _subnets(source)
    calls += networks
    if any(str(call["path"]).startswith("/cluster/sdn") for call in calls):
        calls.append({"method": "PUT", "path": "/cluster/sdn"})
    return calls


async def list_guest_calls(source: Source) -> list[dict[str, Any]]:
    """Return the calls that make what refers to guests: high availability, replication, backup jobs."""
    calls: list[dict[str, Any]] = []
    for kind in _LATE:
        calls += await _calls(source, kind)
    return calls


async def list_group_calls(source: Source) -> list[dict[str, Any]]:
    """Return the calls that make HA groups; a cluster that has migrated them to rules has none."""
    try:
        groups = await source.require("/cluster/ha/groups")
    except PveError:
        # Who may not see groups gets an error at the resources; where there are rules, groups are refused.
        return []
    return [create_call(source, "POST /cluster/ha/groups", row) for row in groups]


async def _options(source: Source) -> list[dict[str, Any]]:
    options = await source.entry("/cluster/options")
    # The list of tags that are registered is given twice, once split.
    found = {key: value for key, value in options.items() if key != "allowed-tags"}
    call = create_call(source, "PUT /cluster/options", found)
    return [call] if call.get("parameters") else []


async def _calls(source: Source, kind: _ObjectKind) -> list[dict[str, Any]]:
    calls = []
    for row in await source.rows(kind.listed):
        told = row
        path = None
        if kind.one is not None:
            path = kind.one.format(**row)
            told = {**row, **await source.entry(path)}
        calls.append(create_call(source, kind.made_by, told, path))
    return calls


async def _subnets(source: Source) -> list[dict[str, Any]]:
    calls = []
    for vnet in await source.rows("/cluster/sdn/vnets"):
        path = f"/cluster/sdn/vnets/{vnet['vnet']}/subnets"
        for row in await source.rows(path):
            subnet = {**row, "subnet": row.get("cidr", row["subnet"]), "type": "subnet"}
            calls.append(create_call(source, "POST /cluster/sdn/vnets/{vnet}/subnets", subnet, path))
    return calls
