"""What `qm` and `pct` have in common: how guests are printed, and what has no call of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.ssh.programs.cli.model import BOOLEAN, FAILED, INTEGER, Command, optional
from pvelab.ssh.programs.cli.output import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.ssh.programs.cli.model import CommandCall, PrintedAnswer
    from pvelab.world.store import Document

__all__ = [
    "VMID",
    "encode_text",
    "make_refusal",
    "print_pending",
    "print_snapshots",
    "rescan_command",
    "shared_verbs",
    "unlock_command",
]

VMID: Mapping[str, Any] = INTEGER
_MOST_UNUSED = 256
_ALIGNED_AT = 30


def shared_verbs(kind: str) -> dict[str, Command]:
    """Return the subcommands that are one call each, for `qemu` or `lxc`."""
    base = f"/nodes/{{node}}/{kind}"
    guest = f"{base}/{{vmid}}"

    def task(route: str, *arguments: str) -> Command:
        return Command(route=route, arguments=("vmid", *arguments), follows_task=True)

    return {
        **{
            verb: task(f"POST {guest}/status/{verb}")
            for verb in ("start", "stop", "shutdown", "reboot", "suspend", "resume")
        },
        "clone": task(f"POST {guest}/clone", "newid"),
        "delsnapshot": task(f"DELETE {guest}/snapshot/{{snapname}}", "snapname"),
        "destroy": task(f"DELETE {guest}"),
        "listsnapshot": Command(route=f"GET {guest}/snapshot", arguments=("vmid",), show=print_snapshots),
        "migrate": task(f"POST {guest}/migrate", "target"),
        "pending": Command(route=f"GET {guest}/pending", arguments=("vmid",), show=print_pending),
        "rollback": task(f"POST {guest}/snapshot/{{snapname}}/rollback", "snapname"),
        "snapshot": task(f"POST {guest}/snapshot", "snapname"),
        "template": Command(route=f"POST {guest}/template", arguments=("vmid",)),
    }


def encode_text(text: str) -> str:
    """Return a text in one line, as a configuration file has it: odd characters as percent codes."""
    return "".join(
        character if " " <= character <= "~" and character not in "%:" else _percent(character)
        for character in text
    )


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


async def print_pending(shown: PrintedAnswer) -> None:
    """Print the present and the pending value of each option."""
    for row in sorted(shown.data, key=lambda row: str(row["key"])):
        key = row["key"]
        if key == "digest":
            continue
        value, pending = (
            None if row.get(name) is None else _one_line(key, row[name]) for name in ("value", "pending")
        )
        if value is not None:
            await shown.streams.say(f"{'del' if row.get('delete') else 'cur'} {key}: {value}")
        if pending is not None and not (value is not None and row.get("delete")):
            await shown.streams.say(f"new {key}: {pending}")


def _one_line(key: str, value: Any) -> str:
    return encode_text(str(value)) if key == "description" else str(value)


async def print_snapshots(shown: PrintedAnswer) -> None:
    """Print the snapshots of a guest as a tree."""
    rows = {str(row["name"]): row for row in shown.data}
    children: dict[str, list[str]] = {}
    for name, row in rows.items():
        parent = str(row.get("parent") or "")
        children.setdefault(parent if parent in rows else "", []).append(name)

    def moment(name: str) -> float:
        taken = rows[name].get("snaptime")
        return float("inf") if taken is None else float(taken)

    async def walk(names: Sequence[str], prefix: str) -> None:
        for name in sorted(names, key=moment):
            row = rows[name]
            when = "" if row.get("snaptime") is None else timestamp(row["snaptime"])
            lines = str(row.get("description") or "no-description").split("\n")
            width = max(0, _ALIGNED_AT - len(prefix))
            await shown.streams.say(f"{prefix} {name:<{width}} {when:<23} {lines[0]}")
            await walk(children.get(name, ()), f" {prefix}")

    await walk(children.get("", ()), "`->")


def make_refusal(reason: str) -> Command:
    """Return a subcommand that Proxmox has and the lab cannot have, which says why."""

    async def refuse(asked: CommandCall) -> int:
        await asked.streams.complain(f"the lab does not do this: {reason}")
        return FAILED

    return Command(own=refuse, is_raw=True)


def unlock_command(kind: str) -> Command:
    """Return `unlock`, which takes the lock off a guest without asking who set it."""

    async def unlock(asked: CommandCall) -> int:
        world, vmid = asked.session.world, asked.vmid
        async with world.locks.guest(kind, vmid):
            with world.store.transaction():
                guest = world.guests.require(kind, asked.session.node, vmid)
                config = dict(guest["config"])
                if kind == "lxc" and "lock" not in config:
                    raise PveError(f"no lock found trying to remove lock for CT {vmid}")
                config.pop("lock", None)
                pending = {key: value for key, value in guest["pending"].items() if key != "lock"}
                world.guests.update(guest, config=config, pending=pending)
        return 0

    return Command(own=unlock, arguments=("vmid",), parameters={"vmid": VMID})


def rescan_command(kind: str) -> Command:
    """Return `rescan`, which lists volumes that belong to a guest and that its configuration forgot."""
    word = "VM" if kind == "qemu" else "CT"

    async def rescan(asked: CommandCall) -> int:
        world, node, wanted = asked.session.world, asked.session.node, asked.parameters.get("vmid")
        dry = bool(asked.parameters.get("dryrun"))
        if dry:
            await asked.streams.say("NOTE: running in dry-run mode, won't write changes out!")
        await asked.streams.say("rescan volumes...")
        for guest in world.guests.on_node(node, kind):
            if wanted is not None and int(guest["vmid"]) != int(wanted):
                continue
            found = _list_orphans(asked, guest)
            for key, volid in found.items():
                text = f"{word} {guest['vmid']}: add unreferenced volume '{volid}' as '{key}' to config"
                await asked.streams.say(text)
            if found and not dry:
                with world.store.transaction():
                    world.guests.update(guest, config={**guest["config"], **found})
        return 0

    return Command(own=rescan, parameters={"vmid": optional(VMID), "dryrun": BOOLEAN})


def _list_orphans(asked: CommandCall, guest: Document) -> dict[str, str]:
    world = asked.session.world
    configs = (guest["config"], guest["pending"], *(found["config"] for found in guest["snapshots"].values()))
    texts = [str(value) for config in configs for value in config.values()]
    texts += [str(found.get("vmstate")) for found in guest["snapshots"].values()]
    named = {text.partition(",")[0].removeprefix("file=").removeprefix("volume=") for text in texts}
    lost = [
        str(volume["volid"])
        for volume in world.volumes.of_guest(int(guest["vmid"]), asked.session.node)
        if volume["volid"] not in named
    ]
    free = (key for number in range(_MOST_UNUSED) if (key := f"unused{number}") not in guest["config"])
    return dict(zip(free, sorted(lost), strict=False))
