"""Which guests there are: all that match, or one; from the one list that the cluster keeps of all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.fields.guest import split_tags
from stackyard.provider.checks import one_of
from stackyard.provider.kinds import DataSource
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["find_guest", "list_guests"]

_SAME_PICTURE_S = 1.0
_FILTERS = ("name", "template", "status", "node_name")


async def _guests(work: Work, kind: str) -> list[Object]:
    listed: list[dict[str, Any]] = await work.client.get(
        "/cluster/resources", {"type": "vm"}, max_age_s=_SAME_PICTURE_S
    )
    found = [_guest(one) for one in listed if one.get("type") == kind]
    return sorted(found, key=lambda guest: (guest["node_name"], guest["vm_id"]))


def _guest(found: dict[str, Any]) -> Object:
    return {
        "name": str(found.get("name") or ""),
        "node_name": str(found["node"]),
        "status": str(found.get("status") or "unknown"),
        "tags": sorted(split_tags(found.get("tags"))),
        "template": bool(found.get("template")),
        "vm_id": int(found["vmid"]),
    }


def _matches(guest: Object, filter_: Object, place: int) -> bool:
    value = guest[filter_["name"]]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if not filter_.get("regex"):
        return text in filter_["values"]
    for index, pattern in enumerate(filter_["values"]):
        try:
            if re.search(pattern, text):
                return True
        except re.error as err:
            raise AttributeValueError(
                f"{pattern!r} is no regular expression: {err}.", ("filter", place, "values", index)
            ) from err
    return False


def _filter_guests(guests: Iterable[Object], config: Object) -> list[Object]:
    node, tags = config.get("node_name"), {tag.strip() for tag in config.get("tags") or ()} - {""}
    return [
        guest
        for guest in guests
        if (not node or guest["node_name"] == node)
        and tags <= set(guest["tags"])
        and all(_matches(guest, one, place) for place, one in enumerate(config.get("filter") or ()))
    ]


def list_guests(kind: str, attribute: str) -> DataSource:
    """Return the data source of all guests of a kind that match."""

    async def read(work: Work, config: Object) -> Object:
        chosen = _filter_guests(await _guests(work, kind), config)
        return {**config, "id": attribute, attribute: chosen}

    return DataSource(
        names=(f"proxmox_virtual_environment_{attribute}",),
        read=read,
        rules={"filter.name": Rule(check=one_of(*_FILTERS))},
    )


def find_guest(kind: str, name: str) -> DataSource:
    """Return the data source of one guest of a kind."""

    async def read(work: Work, config: Object) -> Object:
        vm_id, node = int(config["vm_id"]), config["node_name"]
        for guest in await _guests(work, kind):
            if guest["vm_id"] == vm_id and guest["node_name"] == node:
                return {**config, "id": str(vm_id), **guest}
        raise AttributeValueError(f"There is no {name} {vm_id} on node {node}.", ("vm_id",))

    return DataSource(names=(f"proxmox_virtual_environment_{name}",), read=read)
