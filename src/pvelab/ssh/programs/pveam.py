"""`pveam`: templates of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.ssh.programs.cli.model import STRING, Command, Tree, optional
from pvelab.ssh.programs.cli.run import Tool, show_task
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.ssh.programs.cli.model import CommandCall

__all__ = ["PVEAM"]

_MIB = 2**20


async def _update(asked: CommandCall) -> int:
    await asked.streams.say("update successful")
    return 0


async def _available(asked: CommandCall) -> int:
    wanted = asked.parameters.get("section")
    rows = await asked.session.call("GET", f"/nodes/{asked.session.node}/aplinfo")
    for row in sorted(rows, key=lambda row: (str(row["section"]), str(row["template"]))):
        if wanted in (None, row["section"]):
            arch = row.get("architecture", "unknown")
            await asked.streams.say(f"{row['section']:<15} {row['template']:<60} {arch}")
    return 0


async def _list(asked: CommandCall) -> int:
    storage = str(asked.parameters["storage"])
    config = asked.session.world.storages.require(storage, asked.session.node)
    if "vztmpl" not in asked.session.world.storages.content_types(config):
        raise PveError("Storage does not support templates!")
    path = f"/nodes/{asked.session.node}/storage/{storage}/content"
    rows = await asked.session.call("GET", path, {"content": "vztmpl"})
    await asked.streams.say(f"{'NAME':<60} {'SIZE':<6}")
    for row in rows:
        await asked.streams.say(f"{row['volid']:<60} {row['size'] / _MIB:<4.2f}MB")
    return 0


async def _remove(asked: CommandCall) -> int:
    volid = str(asked.parameters["template_path"])
    storage, _ = parse_volume_id(volid)
    path = f"/nodes/{asked.session.node}/storage/{storage}/content/{volid}"
    await show_task(asked.session, await asked.session.call("DELETE", path), asked.streams)
    return 0


_TREE: Tree = {
    "available": Command(own=_available, parameters={"section": optional(STRING)}),
    "download": Command(route="POST /nodes/{node}/aplinfo", arguments=("storage", "template")),
    "list": Command(own=_list, arguments=("storage",), parameters={"storage": STRING}),
    "remove": Command(own=_remove, arguments=("template_path",), parameters={"template_path": STRING}),
    "update": Command(own=_update),
}

PVEAM = Tool("pveam", _TREE)
