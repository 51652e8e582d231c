"""Comparing what is needed with what our token may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.guard.facts import PERMISSIONS, VNETS
from stackyard.guard.privileges import find_lacking, find_root_only
from stackyard.guard.rights import Grant, Purpose, Right, needed
from stackyard.operator.preflight.model import Seen
from stackyard.path.foresight import caller_of, read_facts
from stackyard.path.places import by_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.guard import Finding
    from stackyard.operator.preflight.scene import Scene

__all__ = ["check_rights"]


async def check_rights(scene: Scene) -> Seen:
    """Check that the token may do everything that the run asks for; each missing privilege is named."""
    caller = caller_of(scene.resolved.connection)
    facts = await read_facts(scene.client, scene.cluster, (PERMISSIONS, VNETS), caller=caller)
    found: list[Finding] = []
    if not facts.is_root:
        declared = {vnet.name: vnet.zone for vnet in scene.desired.vnets}
        rights = [*needed_here(scene, {**facts.zones(), **declared}), *_advised(scene)]
        found += find_lacking(rights, facts)
    missing = len(found)
    if scene.subject.purpose is Purpose.CREATE:
        found += find_root_only(scene.implied, facts)
    locate = by_label(scene.resolved.locate, scene.desired)
    text = f"{missing} privileges are missing" if missing else "all that is needed"
    return Seen(text=text, findings=tuple(one.located(locate).diagnostic() for one in found))


def needed_here(scene: Scene, zones: Mapping[str, str]) -> Iterator[Right]:
    """Return what is needed; for a host alone, what any virtual machine with user data would need."""
    subject = scene.subject
    if not subject.is_general:
        yield from needed(scene.desired, zones=zones, purpose=subject.purpose, version=scene.version)
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
        (f"/nodes/{scene.node}", ("Sys.AccessNetwork",)),
    ]
    for path, privileges in plain:
        for privilege in privileges:
            yield Right(ways=((Grant(path, privilege),),), why="virtual machines with images and user data")


def _advised(scene: Scene) -> Iterator[Right]:
    """Return what makes the picture whole: figures of nodes and datastores are hidden without."""
    for node in scene.nodes:
        why = "the size, the time and the name servers of the node"
        yield Right(ways=((Grant(f"/nodes/{node}", "Sys.Audit"),),), why=why, is_advised=True)
