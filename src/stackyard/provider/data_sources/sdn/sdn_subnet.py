"""`proxmox_sdn_subnet`: the addresses of a vnet, as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.checks import is_cidr
from stackyard.provider.data_sources.sdn.reading import SAME_PICTURE_S
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.sdn.sdn_subnet import SUBNET_FIELDS, list_subnets_at
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    vnet, cidr = config["vnet"], config["cidr"]
    listed = await work.client.get(list_subnets_at(config), max_age_s=SAME_PICTURE_S)
    # The name of a subnet begins with its zone, which may be any.
    found = next(
        (row for row in listed if str(row["subnet"]).partition("-")[2] == cidr.replace("/", "-")), None
    )
    if found is None:
        raise AttributeValueError(f"The vnet {vnet} has no subnet {cidr}.", ("cidr",))
    return {**config, "id": f"{vnet}/{cidr}", **values(SUBNET_FIELDS, found)}


DATA_SOURCE = DataSource(names=both_names("sdn_subnet"), read=_read, rules={"cidr": Rule(check=is_cidr)})
