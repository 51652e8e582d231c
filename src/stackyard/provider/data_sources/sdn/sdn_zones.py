"""`proxmox_sdn_zones`: every zone, or those of one type, as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import one_of
from stackyard.provider.data_sources.sdn.reading import SAME_PICTURE_S, unsaid
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.sdn.zones import ZONE_FIELDS, ZONES, list_zone_fields
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# A field that zones of two types have is the same field.
_FIELDS = list({field.attribute: field for kind in ZONE_FIELDS for field in list_zone_fields(kind)}.values())


def _zone(row: Mapping[str, Any]) -> Object:
    set_ = {name: value for name, value in values(_FIELDS, row).items() if value is not None}
    return {
        "id": row["zone"],
        "type": row.get("type") or "",
        # As it is written, nothing is pending.
        "state": "",
        "pending": False,
        **unsaid(_FIELDS),
        **set_,
    }


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(ZONES, {"type": config.get("type")}, max_age_s=SAME_PICTURE_S)
    return {**config, "zones": [_zone(row) for row in listed]}


DATA_SOURCE = DataSource(
    names=both_names("sdn_zones"), read=_read, rules={"type": Rule(check=one_of(*ZONE_FIELDS))}
)
