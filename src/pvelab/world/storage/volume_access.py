"""Who may read a volume: by its content, the storage and the guest that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.storage.volume_names import parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["check_volume_access"]


def check_volume_access(call: Call, volid: str, content: str | None = None, vmid: int | None = None) -> None:
    """Refuse the use of a volume that has another content or that the caller may not read.

    Args:
        call: The call.
        volid: The volume, or a path.
        content: What it has to be.
        vmid: The guest that is to use it.

    Raises:
        PveError: 403, or what is wrong with the volume.
    """
    if ":" not in volid:
        if not call.is_root:
            raise PveError("Only root can pass arbitrary filesystem paths.")
        return
    storage, name = parse_volume_id(volid)
    parsed = parse_name(call.world.storages.config(storage), name)
    kind, owner = parsed.content, parsed.vmid
    if content is not None and kind != content and not (content == "rootdir" and kind == "images"):
        raise PveError(f"unable to use volume {volid} - content type needs to be '{content}'")
    if call.may(f"/storage/{storage}", "Datastore.Allocate"):
        return
    if kind in ("iso", "vztmpl", "import"):
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace", "Datastore.Audit", any_of=True)
    elif owner is not None and owner == vmid:
        return
    elif kind == "backup" and owner is not None:
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
        call.check(f"/vms/{owner}", "VM.Backup")
    elif kind in ("images", "rootdir") and owner is not None:
        call.check(f"/storage/{storage}", "Datastore.Audit")
        call.check(f"/vms/{owner}", "VM.Config.Disk")
    else:
        raise PveError(f"missing privileges to access {volid}")
