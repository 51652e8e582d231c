"""`proxmox_haresource`: a guest that the manager of the cluster keeps running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.checks import matches
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field, values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0
_FIELDS = (
    *(Field(attribute=name, form=TEXT) for name in ("comment", "group", "state", "type")),
    Field(attribute="failback", form=FLAG),
    *(Field(attribute=name, form=NUMBER) for name in ("max_relocate", "max_restart")),
)


async def _read(work: Work, config: Object) -> Object:
    name = config["resource_id"]
    found = await work.client.get(f"/cluster/ha/resources/{proxmox.quote(name)}", max_age_s=_SAME_PICTURE_S)
    return {**config, "id": name, **values(_FIELDS, found)}


DATA_SOURCE = DataSource(
    names=both_names("haresource"),
    read=_read,
    rules={"resource_id": Rule(check=matches(r"(vm|ct):\d+", "be vm:ID or ct:ID"))},
)
