"""`pvesm`: storages."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from pvelab.ssh.programs.cli.model import BOOLEAN, INTEGER, STRING, Command, Tree, optional
from pvelab.ssh.programs.cli.run import Tool, show_task
from pvelab.ssh.programs.guest_shared import make_refusal
from pvelab.ssh.programs.inputs import file_content, password_from
from pvelab.world.storage.volume_names import path_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.programs.cli.model import CommandCall, PrintedAnswer

__all__ = ["PVESM"]

_API_VERSION = 13
_API_AGE = 4
_NODE = "/nodes/{node}"
_KEEP = ("keep-all", "keep-last", "keep-hourly", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly")
_STREAMS = "the disks of its guests have no bytes to send"


async def _print_status(shown: PrintedAnswer) -> None:
    width = max((len(row["storage"]) for row in shown.data), default=0) + 1
    heads = ("Name", "Type", "Status", "Total (KiB)", "Used (KiB)", "Available (KiB)", "%")
    form = f"{{:<{width}}} {{:>10}} {{:>10}} {{:>15}} {{:>15}} {{:>15}} {{:>8}}"
    await shown.streams.say(form.format(*heads))
    for row in sorted(shown.data, key=lambda row: str(row["storage"])):
        total, used, free = (int(row.get(key) or 0) for key in ("total", "used", "avail"))
        share = f"{used * 100 / total if total else 0:.2f}%"
        state = "active" if row.get("active") else "inactive"
        if not row.get("enabled"):
            share, state = "N/A", "disabled"
        figures = (total // 1024, used // 1024, free // 1024)
        await shown.streams.say(form.format(row["storage"], row["type"], state, *figures, share))


async def _print_content(shown: PrintedAnswer) -> None:
    rows = shown.data
    name = max((len(row["volid"]) for row in rows), default=0)
    size = len(str(max((int(row.get("size") or 0) for row in rows), default=0)))
    form = f"{{:<{name}}} {{:<7}} {{:<9}} {{:>{size}}}"
    await shown.streams.say(f"{form.format('Volid', 'Format', 'Type', 'Size')} VMID")
    owned = [row for row in rows if row.get("vmid")]
    others = sorted((row for row in rows if not row.get("vmid")), key=lambda row: str(row["format"]))
    for row in (*owned, *others):
        line = form.format(row["volid"], row["format"], row["content"], row.get("size", "-"))
        await shown.streams.say(f"{line} {row['vmid']}" if row.get("vmid") else line)


async def _print_created(shown: PrintedAnswer) -> None:
    await shown.streams.say(f"successfully created '{shown.data}'")


async def _path(asked: CommandCall) -> int:
    volid = str(asked.parameters["volume"])
    storage, _ = parse_volume_id(volid)
    config = asked.session.world.storages.require(storage, asked.session.node)
    await asked.streams.say(path_of(config, volid))
    return 0


async def _api_info(asked: CommandCall) -> int:
    await asked.streams.say(f"APIVER {_API_VERSION}\nAPIAGE {_API_AGE}")
    return 0


async def _extract_config(asked: CommandCall) -> int:
    path = f"/nodes/{asked.session.node}/vzdump/extractconfig"
    text = await asked.session.call("GET", path, {"volume": asked.parameters["volume"]})
    await asked.streams.say(str(text))
    return 0


async def _free(asked: CommandCall) -> int:
    volid = str(asked.parameters["volume"])
    given = {key: value for key, value in asked.parameters.items() if key in ("delay",)}
    storage = str(asked.parameters.get("storage") or parse_volume_id(volid)[0])
    path = f"/nodes/{asked.session.node}/storage/{storage}/content/{volid}"
    await show_task(asked.session, await asked.session.call("DELETE", path, given), asked.streams)
    return 0


async def _prune(asked: CommandCall) -> int:
    given = dict(asked.parameters)
    storage, is_dry = str(given.pop("storage")), bool(given.pop("dry-run", 0))
    keep = [f"{key}={given.pop(key)}" for key in _KEEP if key in given]
    sent = {**given, **({"prune-backups": ",".join(keep)} if keep else {})}
    path = f"/nodes/{asked.session.node}/storage/{storage}/prunebackups"
    if not is_dry:
        await show_task(asked.session, await asked.session.call("DELETE", path, sent), asked.streams)
        return 0
    rows = await asked.session.call("GET", path, sent)
    if not rows:
        await asked.streams.say("No backups found")
        return 0
    await asked.streams.say(
        "NOTE: this is only a preview and might not be what a subsequent\n"
        "prune call does if backups are removed/added in the meantime.\n"
    )
    width = max(len(row["volid"]) for row in rows) + 1
    await asked.streams.say(f"{'Backup':<{width}} {'Backup-ID':>15} {'Prune-Mark':>10}")
    for row in sorted(rows, key=lambda row: (int(row.get("vmid") or 0), int(row["ctime"]))):
        owner = f"{row['type']}/{row['vmid']}" if row.get("vmid") else str(row["type"])
        await asked.streams.say(f"{row['volid']:<{width}} {owner:>15} {row['mark']:>10}")
    return 0


async def _settings(asked: CommandCall) -> Mapping[str, Any]:
    """Read what is named as a file, and a password that is not on the command line."""
    given = dict(asked.parameters)
    if given.get("password") == "":
        given["password"] = await password_from(asked, prompt="Enter Password: ", confirmed=False)
    if given.get("encryption-key", "autogen") != "autogen":
        given["encryption-key"] = await file_content(asked, str(given["encryption-key"]))
    if "master-pubkey" in given:
        text = await file_content(asked, str(given["master-pubkey"]))
        given["master-pubkey"] = base64.b64encode(text.encode()).decode()
    if "keyring" in given:
        given["keyring"] = await file_content(asked, str(given["keyring"]))
    return given


_TREE: Tree = {
    "add": Command(route="POST /storage", arguments=("type", "storage"), adapt=_settings),
    "alloc": Command(
        route=f"POST {_NODE}/storage/{{storage}}/content",
        arguments=("storage", "vmid", "filename", "size"),
        show=_print_created,
    ),
    "apiinfo": Command(own=_api_info),
    "export": make_refusal(_STREAMS),
    "extractconfig": Command(own=_extract_config, arguments=("volume",), parameters={"volume": STRING}),
    "free": Command(
        own=_free,
        arguments=("volume",),
        parameters={"volume": STRING, "storage": optional(STRING), "delay": optional(INTEGER)},
    ),
    "import": make_refusal(_STREAMS),
    "list": Command(
        route=f"GET {_NODE}/storage/{{storage}}/content", arguments=("storage",), show=_print_content
    ),
    "path": Command(own=_path, arguments=("volume",), parameters={"volume": STRING}),
    "prune-backups": Command(
        own=_prune,
        arguments=("storage",),
        parameters={
            "storage": STRING,
            "dry-run": BOOLEAN,
            "type": optional(STRING),
            "vmid": optional(INTEGER),
            **{key: BOOLEAN if key == "keep-all" else optional(INTEGER) for key in _KEEP},
        },
    ),
    "remove": Command(route="DELETE /storage/{storage}", arguments=("storage",)),
    "set": Command(route="PUT /storage/{storage}", arguments=("storage",), adapt=_settings),
    "status": Command(route=f"GET {_NODE}/storage", show=_print_status),
}

PVESM = Tool("pvesm", _TREE)
