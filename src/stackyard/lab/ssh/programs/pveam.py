"""`pveam`: templates of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.lab.problems import PveError
from stackyard.lab.ssh.programs.cli.model import STRING, Command, Tree, optional
from stackyard.lab.ssh.programs.cli.running import Tool, show_task
from stackyard.lab.volumes import parse_volume_id

if TYPE_CHECKING:
    from stackyard.lab.ssh.programs.cli.model import Asked

__all__ = ["PVEAM"]

_MIB = 2**20


async def _update(asked: Asked) -> int:
    await asked.streams.say("update successful")
    return 0


async def _available(asked: Asked) -> int:
    wanted = asked.parameters.get("section")
    rows = await asked.seat.call("GET", f"/nodes/{asked.seat.node}/aplinfo")
    for row in sorted(rows, key=lambda row: (str(row["section"]), str(row["template"]))):
        if wanted in (None, row["section"]):
            arch = row.get("architecture", "unknown")
            await asked.streams.say(f"{row['section']:<15} {row['template']:<60} {arch}")
    return 0


async def _list(asked: Asked) -> int:
    storage = str(asked.parameters["storage"])
    config = asked.seat.world.storages.require(storage, asked.seat.node)
    if "vztmpl" not in asked.seat.world.storages.content_types(config):
        raise PveError("Storage does not support templates!")
    path = f"/nodes/{asked.seat.node}/storage/{storage}/content"
    rows = await asked.seat.call("GET", path, {"content": "vztmpl"})
    await asked.streams.say(f"{'NAME':<60} {'SIZE':<6}")
    for row in rows:
        await asked.streams.say(f"{row['volid']:<60} {row['size'] / _MIB:<4.2f}MB")
    return 0


async def _remove(asked: Asked) -> int:
    volid = str(asked.parameters["template_path"])
    storage, _ = parse_volume_id(volid)
    path = f"/nodes/{asked.seat.node}/storage/{storage}/content/{volid}"
    await show_task(asked.seat, await asked.seat.call("DELETE", path), asked.streams)
    return 0


_TREE: Tree = {
    "available": Command(own=_available, parameters={"section": optional(STRING)}),
    "download": Command(route="POST /nodes/{node}/aplinfo", arguments=("storage", "template")),
    "list": Command(own=_list, arguments=("storage",), parameters={"storage": STRING}),
    "remove": Command(own=_remove, arguments=("template_path",), parameters={"template_path": STRING}),
    "update": Command(own=_update),
}

PVEAM = Tool("pveam", _TREE)
