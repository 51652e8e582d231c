"""`ha-manager`: high availability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.ssh.programs.cli.model import BOOLEAN, INTEGER, STRING, Alias, Command, PrintedAnswer, Tree
from pvelab.ssh.programs.cli.output import pretty_json, print_result
from pvelab.ssh.programs.cli.run import Tool
from pvelab.world.ha import config
from pvelab.world.ha.requests import check_state

if TYPE_CHECKING:
    from pvelab.ssh.programs.cli.model import CommandCall

__all__ = ["HA_MANAGER"]

_RESOURCES = "/cluster/ha/resources"
_RULES = "/cluster/ha/rules"
_GROUPS = "/cluster/ha/groups"
_NOT_SHOWN = frozenset(("digest", "sid", "type", "errors"))


async def _status(asked: CommandCall) -> int:
    for row in await asked.session.call("GET", "/cluster/ha/status/current"):
        await asked.streams.say(f"{row['type']} {row['status']}")
    if asked.parameters.get("verbose"):
        data = await asked.session.call("GET", "/cluster/ha/status/manager_status")
        await asked.streams.say(f"full cluster state:\n{pretty_json(data)}".removesuffix("\n"))
    return 0


async def _print_resources(shown: PrintedAnswer) -> None:
    for row in sorted(shown.data, key=lambda row: str(row["sid"])):
        await shown.streams.say(str(row["sid"]))
        for key in sorted(set(row) - _NOT_SHOWN):
            await shown.streams.say(f"\t{key} {row[key]}")
        await shown.streams.say("")


async def _print_groups(shown: PrintedAnswer) -> None:
    for row in sorted(shown.data, key=lambda row: str(row["group"])):
        await shown.streams.say(f"group: {row['group']}")
        for key in sorted(set(row) - {"digest", "group", "type"}):
            await shown.streams.say(f"\t{key} {row[key]}")
        await shown.streams.say("")


async def _print_rules(shown: PrintedAnswer) -> None:
    rows = [
        {
            **row,
            "enabled": int("disable" not in row),
            "state": "ignored (conflicts)" if row.get("errors") else "in use",
        }
        for row in shown.data
    ]
    told = PrintedAnswer(
        data=rows,
        schema=shown.schema,
        options=shown.options,
        parameters=shown.parameters,
        renderers=shown.renderers,
        streams=shown.streams,
    )
    await print_result(told, ("enabled", "state", "rule", "type", "resources", "comment"))


def _print_motion(verb: str) -> Any:
    async def show(shown: PrintedAnswer) -> None:
        data = shown.data or {}
        sid, node = data.get("sid"), data.get("requested-node")
        blocking = data.get("blocking-resources") or ()
        if blocking:
            lines = [f"cannot {verb} resource '{sid}' to node '{node}':", ""]
            for other in blocking:
                why = f" in negative affinity with resource '{sid}'"
                told = why if other.get("cause") == "resource-affinity" else ""
                lines.append(f"- resource '{other['sid']}' on target node '{node}'{told}")
            raise PveError("\n".join(lines))
        for other in data.get("comigrated-resources") or ():
            with_it = f"in positive affinity with resource '{sid}' to target node '{node}'"
            await shown.streams.say(f"also {verb} resource '{other}' {with_it}")

    return show


async def _stop(asked: CommandCall) -> int:
    world = asked.session.world
    sid = config.full_sid(world.guests, str(asked.parameters["sid"]))
    config.require_managed(world.store, sid)
    check_state(world, sid)
    _order(asked, f"stop {sid} {asked.parameters['timeout']}")
    return 0


def _maintenance(word: str) -> Command:
    async def set_maintenance(asked: CommandCall) -> int:
        node = str(asked.parameters["node"])
        if node not in asked.session.world.cluster.nodes():
            raise PveError(f"no such cluster node '{node}'")
        _order(asked, f"{word}-node-maintenance {node}")
        return 0

    return Command(own=set_maintenance, arguments=("node",), parameters={"node": STRING})


def _order(asked: CommandCall, text: str) -> None:
    world = asked.session.world
    with world.cluster.lock_file("ha"), world.store.transaction():
        config.order(world.store, text)


def _motion(verb: str) -> Command:
    return Command(
        route=f"POST {_RESOURCES}/{{sid}}/{verb}", arguments=("sid", "node"), show=_print_motion(verb)
    )


_TREE: Tree = {
    "add": Command(route=f"POST {_RESOURCES}", arguments=("sid",)),
    "config": Command(route=f"GET {_RESOURCES}", show=_print_resources),
    "crm-command": {
        "arm-ha": Command(route="POST /cluster/ha/status/arm-ha"),
        "disarm-ha": Command(route="POST /cluster/ha/status/disarm-ha", arguments=("resource-mode",)),
        "migrate": _motion("migrate"),
        "node-maintenance": {
            "disable": _maintenance("disable"),
            "enable": _maintenance("enable"),
        },
        "relocate": _motion("relocate"),
        "stop": Command(
            own=_stop, arguments=("sid", "timeout"), parameters={"sid": STRING, "timeout": INTEGER}
        ),
    },
    "groupadd": Command(route=f"POST {_GROUPS}", arguments=("group",)),
    "groupconfig": Command(route=f"GET {_GROUPS}", show=_print_groups),
    "groupremove": Command(route=f"DELETE {_GROUPS}/{{group}}", arguments=("group",)),
    "groupset": Command(route=f"PUT {_GROUPS}/{{group}}", arguments=("group",)),
    "migrate": Alias("crm-command migrate"),
    "relocate": Alias("crm-command relocate"),
    "remove": Command(route=f"DELETE {_RESOURCES}/{{sid}}", arguments=("sid",)),
    "rules": {
        "add": Command(route=f"POST {_RULES}", arguments=("type", "rule")),
        "config": Command(route=f"GET {_RULES}", show=_print_rules, formats=True),
        "list": Command(route=f"GET {_RULES}", show=print_result, formats=True),
        "remove": Command(route=f"DELETE {_RULES}/{{rule}}", arguments=("rule",)),
        "set": Command(route=f"PUT {_RULES}/{{rule}}", arguments=("type", "rule")),
    },
    "set": Command(route=f"PUT {_RESOURCES}/{{sid}}", arguments=("sid",)),
    "status": Command(own=_status, parameters={"verbose": BOOLEAN}),
}

HA_MANAGER = Tool("ha-manager", _TREE)
