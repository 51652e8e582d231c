"""Comparing what is needed with what our token may do."""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING, Any

from stackyard.diagnostics import Diagnostics
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Seen, listed
from stackyard.operator.preflight.rights import Grant, Right, needed
from stackyard.proxmox import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stackyard.operator.preflight.scene import Scene

__all__ = ["check_rights"]

# Above this many guests, what holds for all of them is asked once.
_SINGLE_GUESTS = 40


async def check_rights(scene: Scene) -> Seen:
    """Check that the token may do everything that the run asks for; each missing privilege is named."""
    rights = _folded([*needed_here(scene, await _zones(scene)), *_advised(scene)])
    paths = sorted({grant.path for right in rights for way in right.ways for grant in way})
    answers = await asyncio.gather(*(scene.client.get("/access/permissions", {"path": p}) for p in paths))
    held = {path: _held(path, answer) for path, answer in zip(paths, answers, strict=True)}
    missing: dict[tuple[str, bool], list[tuple[Grant, str]]] = collections.defaultdict(list)
    for right in rights:
        for grant in _missing(right, held):
            missing[grant.privilege, right.is_advised].append((grant, right.why))
    found = Diagnostics()
    for (privilege, is_advised), places in sorted(missing.items()):
        kind = kinds.PRIVILEGE_ADVISED if is_advised else kinds.PRIVILEGE
        found.add(kind, _detail(privilege, places))
    text = "all that is needed" if not missing else f"{len(missing)} privileges are missing"
    return Seen(text=text, findings=tuple(found))


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


async def _zones(scene: Scene) -> Mapping[str, str]:
    """Return the zones of those bridges that are networks of the SDN."""
    declared = {vnet.name: vnet.zone for vnet in scene.desired.vnets}
    try:
        listed = await scene.client.get("/cluster/sdn/vnets")
    except RefusedError:
        return declared
    return {**{str(row["vnet"]): str(row.get("zone", "")) for row in listed}, **declared}


def _folded(rights: Iterable[Right]) -> list[Right]:
    """Return rights with all guests taken for one where they are too many to ask about."""
    listed = list(rights)
    guests = {grant.path for right in listed for way in right.ways for grant in way if _is_guest(grant)}
    if len(guests) <= _SINGLE_GUESTS:
        return listed
    return list({right.ways: right for right in map(_with_any_guest, listed)}.values())


def _is_guest(grant: Grant) -> bool:
    return grant.path.startswith("/vms/")


def _with_any_guest(right: Right) -> Right:
    ways = tuple(
        tuple(Grant("/vms", grant.privilege) if _is_guest(grant) else grant for grant in way)
        for way in right.ways
    )
    return Right(ways=ways, why=right.why, is_advised=right.is_advised)


def _held(path: str, answer: Any) -> frozenset[str]:
    """Return the privileges on a path; on that above all guests, those that the guests inherit."""
    granted: Mapping[str, Any] = (answer or {}).get(path, {}) if isinstance(answer, dict) else {}
    return frozenset(name for name, inherited in granted.items() if inherited or path != "/vms")


def _missing(right: Right, held: Mapping[str, frozenset[str]]) -> Sequence[Grant]:
    lacking = [[grant for grant in way if grant.privilege not in held[grant.path]] for way in right.ways]
    if not all(lacking):
        return ()
    # The first way is the one to name: it grants the least.
    return lacking[0]


def _detail(privilege: str, places: Sequence[tuple[Grant, str]]) -> str:
    paths = sorted({grant.path for grant, _ in places})
    reasons = sorted({why for _, why in places})
    return f"{privilege} is missing on {listed(paths)}; it is needed for {listed(reasons)}."
