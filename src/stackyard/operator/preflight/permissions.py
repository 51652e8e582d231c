"""Comparing what is needed with what our token may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.guard.facts import VNETS
from stackyard.guard.privileges import ask_paths, find_lacking, find_root_only
from stackyard.guard.rights import Grant, Purpose, Right, list_rights
from stackyard.operator.preflight.model import Observation
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.locate import by_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.guard import Finding
    from stackyard.operator.preflight.reachable_host import ReachableHost

__all__ = ["check_rights"]


async def check_rights(reachable: ReachableHost) -> Observation:
    """Check that the token may do everything that the run asks for; each missing privilege is named."""
    caller = caller_of(reachable.resolved.connection)
    facts = await read_facts(reachable.client, reachable.cluster, (VNETS,), caller=caller)
    found: list[Finding] = []
    if not facts.is_root:
        declared = {vnet.name: vnet.zone for vnet in reachable.desired.vnets}
        rights = [
            *list_needed_rights(reachable, {**facts.zones(), **declared}),
            *_list_advised_rights(reachable),
        ]
        facts = await read_facts(reachable.client, reachable.cluster, ask_paths(rights), caller=caller)
        found += find_lacking(rights, facts)
    missing = len(found)
    if reachable.subject.purpose is Purpose.CREATE:
        found += find_root_only(reachable.implied, facts)
    locate = by_label(reachable.resolved.locate, reachable.desired)
    text = f"{missing} privileges are missing" if missing else "all that is needed"
    return Observation(text=text, findings=tuple(one.locate(locate).diagnostic() for one in found))


def list_needed_rights(reachable: ReachableHost, zones: Mapping[str, str]) -> Iterator[Right]:
    """Return what is needed; for a host alone, what any virtual machine with user data would need."""
    subject = reachable.subject
    if not subject.is_general:
        yield from list_rights(
            reachable.desired, zones=zones, purpose=subject.purpose, version=reachable.version
        )
        return
    plain = [
        ("/vms", ("VM.Allocate", "VM.Audit", "VM.PowerMgmt", "VM.Config.CPU", "VM.Config.Memory")),
        ("/vms", ("VM.Config.Disk", "VM.Config.Network", "VM.Config.HWType", "VM.Config.Options")),
        ("/vms", ("VM.Config.Cloudinit", "VM.Config.CDROM")),
        (f"/storage/{subject.datastore}", ("Datastore.AllocateSpace",)),
        (
            f"/storage/{subject.file_datastore}",
            ("Datastore.Audit", "Datastore.Allocate", "Datastore.AllocateTemplate"),
        ),
        (f"/nodes/{reachable.node}", ("Sys.AccessNetwork",)),
    ]
    for path, privileges in plain:
        for privilege in privileges:
            yield Right(ways=((Grant(path, privilege),),), why="virtual machines with images and user data")


def _list_advised_rights(reachable: ReachableHost) -> Iterator[Right]:
    """Return what makes the picture whole: figures of nodes and datastores are hidden without."""
    for node in reachable.nodes:
        why = "the size, the time and the name servers of the node"
        yield Right(ways=((Grant(f"/nodes/{node}", "Sys.Audit"),),), why=why, is_advised=True)
