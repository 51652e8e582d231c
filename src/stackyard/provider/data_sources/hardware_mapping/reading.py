"""How a mapping of any type is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.hardware_mapping.mappings import mapping_values

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["SAME_PICTURE_S", "make_source"]

# Anyone who asks twice within one plan gets the same picture.
SAME_PICTURE_S = 1.0


def make_source(kind: str) -> DataSource:
    """Return the data source of mappings of a type."""

    async def read(work: Work, config: Object) -> Object:
        name = config["name"]
        path = f"/cluster/mapping/{kind}/{proxmox.quote(name)}"
        found = await work.client.get(path, max_age_s=SAME_PICTURE_S)
        return {**config, "id": name, **mapping_values(kind, found)}

    return DataSource(names=both_names(f"hardware_mapping_{kind}"), read=read)
