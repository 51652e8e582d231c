"""`pvenode`: the node itself, and its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.ssh.programs.cli.model import Command, PrintedAnswer, Tree
from pvelab.ssh.programs.cli.output import print_result
from pvelab.ssh.programs.cli.run import Tool
from pvelab.ssh.programs.guest_shared import encode_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PVENODE"]

_NODE = "/nodes/{node}"
_TASK_COLUMNS: Sequence[str] = ("upid", "type", "id", "user", "starttime", "endtime", "status")


async def _print_config(shown: PrintedAnswer) -> None:
    for line in str(shown.data.get("description") or "").splitlines():
        await shown.streams.say(f"#{encode_text(line)}")
    for key in sorted(set(shown.data) - {"digest", "description"}):
        await shown.streams.say(f"{key}: {shown.data[key]}")


async def _print_tasks(shown: PrintedAnswer) -> None:
    rows = [{**row, "status": _outcome(row.get("status"))} for row in shown.data]
    told = PrintedAnswer(
        data=rows,
        schema=shown.schema,
        options=shown.options,
        parameters=shown.parameters,
        renderers=shown.renderers,
        streams=shown.streams,
    )
    await print_result(told, _TASK_COLUMNS)


def _outcome(status: object) -> str:
    if status is None:
        return "UNKNOWN"
    text = str(status)
    return text if text in ("OK", "RUNNING") or text.startswith("WARNINGS") else "ERROR"


async def _print_log(shown: PrintedAnswer) -> None:
    for row in shown.data:
        await shown.streams.say(str(row["t"]))


_TREE: Tree = {
    "config": {
        "get": Command(route=f"GET {_NODE}/config", show=_print_config),
        "set": Command(route=f"PUT {_NODE}/config"),
    },
    "migrateall": Command(route=f"POST {_NODE}/migrateall", arguments=("target",)),
    "startall": Command(route=f"POST {_NODE}/startall"),
    "stopall": Command(route=f"POST {_NODE}/stopall"),
    "task": {
        "list": Command(route=f"GET {_NODE}/tasks", show=_print_tasks, formats=True),
        "log": Command(
            route=f"GET {_NODE}/tasks/{{upid}}/log",
            arguments=("upid",),
            fixed={"limit": 1_000_000},
            show=_print_log,
        ),
        "status": Command(
            route=f"GET {_NODE}/tasks/{{upid}}/status", arguments=("upid",), show=print_result, formats=True
        ),
    },
}

PVENODE = Tool("pvenode", _TREE)
