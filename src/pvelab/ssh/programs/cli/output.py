"""Printing what the API answers: as JSON, as YAML, or as the tables that Proxmox draws."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.ssh.programs.cli.model import PrintedAnswer

__all__ = ["RENDERERS", "Columns", "canonical_json", "pretty_json", "print_result", "table", "timestamp"]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEPS = (("w", 7 * 24 * 3600), ("d", 24 * 3600), ("h", 3600), ("m", 60), ("s", 1))


def canonical_json(data: Any) -> str:
    """Return JSON in one line, the keys in order."""
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def pretty_json(data: Any) -> str:
    """Return JSON in many lines as Perl lays it out, with the line break at its end."""
    shown = json.dumps(data, indent=3, sort_keys=True, separators=(",", " : "), ensure_ascii=False)
    return f"{shown}\n"


def timestamp(seconds: float) -> str:
    """Return a point in time as Proxmox shows it; the clock of the lab's nodes runs in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _bytes(value: float) -> str:
    unit = int(math.log(value) / math.log(1024)) if value > 1023 else 0
    return f"{value / 1024**unit:.2f} {_UNITS[unit]}"


def _duration(seconds: float) -> str:
    rest, parts = round(seconds), []
    for unit, length in _STEPS:
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"


def _yaml(value: Any) -> str:
    return yaml.dump(value, default_flow_style=False, sort_keys=True, allow_unicode=True)


_RENDER = {
    "bytes": lambda value: _bytes(float(value)),
    "duration": lambda value: _duration(float(value)),
    "fraction_as_percentage": lambda value: f"{float(value) * 100:.2f}%",
    "timestamp": lambda value: timestamp(float(value)),
    "yaml": _yaml,
}
_GUEST: Mapping[str, str] = {
    **dict.fromkeys(
        ("mem", "memhost", "maxmem", "maxdisk", "diskread", "diskwrite", "netin", "netout"), "bytes"
    ),
    "uptime": "duration",
}
_STORAGE = {**dict.fromkeys(("total", "used", "avail"), "bytes"), "used_fraction": "fraction_as_percentage"}
# How values are shown to humans, by the path of the call; the declared facts do not tell.
RENDERERS: Mapping[str, Mapping[str, str]] = {
    "/cluster/resources": {**_GUEST, "disk": "bytes", "cpu": "fraction_as_percentage"},
    "/nodes": {"cpu": "fraction_as_percentage", "mem": "bytes", "maxmem": "bytes", "uptime": "duration"},
    "/nodes/{node}/qemu": _GUEST,
    "/nodes/{node}/qemu/{vmid}/status/current": _GUEST,
    "/nodes/{node}/qemu/{vmid}/snapshot": {"snaptime": "timestamp"},
    "/nodes/{node}/lxc": {**_GUEST, "disk": "bytes", "maxswap": "bytes"},
    "/nodes/{node}/lxc/{vmid}/status/current": {**_GUEST, "disk": "bytes", "maxswap": "bytes"},
    "/nodes/{node}/lxc/{vmid}/snapshot": {"snaptime": "timestamp"},
    "/nodes/{node}/storage": _STORAGE,
    "/nodes/{node}/storage/{storage}/status": _STORAGE,
    "/nodes/{node}/storage/{storage}/content": {"size": "bytes", "used": "bytes"},
    "/nodes/{node}/storage/{storage}/content/{volume}": {"size": "bytes", "used": "bytes"},
    "/nodes/{node}/tasks": {"starttime": "timestamp", "endtime": "timestamp"},
    "/nodes/{node}/time": {"time": "timestamp", "localtime": "timestamp"},
    "/nodes/{node}/certificates/info": {"notbefore": "timestamp", "notafter": "timestamp", "san": "yaml"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table.

    Attributes:
        names: Their properties, in order.
        schemas: What is declared of each.
        renderers: How single values are shown.
        titles: What is above one, where that is not its property.
    """

    names: Sequence[str]
    schemas: Mapping[str, Mapping[str, Any]]
    renderers: Mapping[str, str]
    titles: Mapping[str, str]

    def text(self, name: str, value: Any, *, human: bool = True) -> str:
        """Return a value as it is shown in a column."""
        return _text(value, self.schemas.get(name), self.renderers.get(name) if human else None)

    def is_number(self, name: str) -> bool:
        """Return whether a column is one of numbers, which are at its right side."""
        return self.schemas.get(name, {}).get("type") in ("integer", "number")


def _text(value: Any, schema: Mapping[str, Any] | None, renderer: str | None) -> str:
    if value is None:
        return ""
    if schema is not None and schema.get("type") == "boolean":
        return "1" if value and value != "0" else "0"
    if renderer is not None:
        return _RENDER[renderer](value)
    return canonical_json(value) if isinstance(value, dict | list | bool) else str(value)


async def print_result(shown: PrintedAnswer, names: Sequence[str] | None = None) -> None:
    """Print an answer in the format that is asked for."""
    if shown.options.get("quiet") or shown.schema.get("type") == "null":
        return
    if shown.schema.get("optional") and shown.data is None:
        return
    match shown.options.get("output-format", "text"):
        case "json":
            await shown.streams.say(canonical_json(shown.data))
        case "json-pretty":
            await shown.streams.say(pretty_json(shown.data).removesuffix("\n"))
        case "yaml":
            text = yaml.safe_dump(
                shown.data, explicit_start=True, default_flow_style=False, allow_unicode=True
            )
            await shown.streams.say(text.removesuffix("\n").removesuffix("\n..."))
        case _:
            text = _plain(shown, names)
            if text:
                await shown.streams.say(text.removesuffix("\n"))


def _plain(shown: PrintedAnswer, names: Sequence[str] | None) -> str:
    data, options = shown.data, shown.options
    kind = shown.schema.get("type") or _guess_type(data)
    human = bool(options.get("human-readable", 1))
    if kind == "object" and isinstance(data, dict):
        schemas = shown.schema.get("properties") or {}
        keys = names or _in_order(schemas) or sorted(data)
        columns = Columns(names=keys, schemas=schemas, renderers=shown.renderers, titles={})
        rows = [
            {"key": key, "value": columns.text(key, data[key], human=human)}
            for key in keys
            if data.get(key) is not None
        ]
        pair = Columns(names=("key", "value"), schemas={}, renderers={}, titles={})
        return table(rows, pair, options)
    if kind == "array" and isinstance(data, list):
        return _list(shown, names) if data else ""
    return f"{'' if data is None else data}\n"


def _list(shown: PrintedAnswer, names: Sequence[str] | None) -> str:
    items = shown.schema.get("items") or {}
    if items.get("type", _guess_type(shown.data[0])) != "object":
        column = Columns(names=("value",), schemas={"value": items}, renderers={}, titles={})
        rows = [{"value": value} for value in shown.data]
        return table(rows, column, {**shown.options, "noheader": 1})
    schemas = items.get("properties") or {}
    keys = names or _in_order(schemas) or sorted({key for row in shown.data for key in row})
    columns = Columns(names=keys, schemas=schemas, renderers=shown.renderers, titles={})
    return table(shown.data, columns, shown.options)


def _guess_type(data: Any) -> str:
    return "object" if isinstance(data, dict) else "array" if isinstance(data, list) else "string"


def _in_order(schemas: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return properties in the order of columns: those that are always there first."""
    return sorted(schemas, key=lambda name: (bool(schemas[name].get("optional")), name))


def table(rows: Sequence[Mapping[str, Any]], columns: Columns, options: Mapping[str, Any]) -> str:
    """Return a table with the borders that Proxmox draws in UTF-8, sorted by its first column.

    Args:
        rows: What is in it.
        columns: Its columns.
        options: `noborder`, `noheader`, `human-readable`, and `sort_key` (0: leave the order).
    """
    names = list(columns.names)
    human = bool(options.get("human-readable", 1))
    ordered = _sort_rows(rows, options.get("sort_key", names[0]), columns)
    cells = [
        {name: columns.text(name, row.get(name), human=human).split("\n") for name in names}
        for row in ordered
    ]
    titles = {name: columns.titles.get(name, name) for name in names}
    widths = {name: _width(name, titles[name], cells, columns) for name in names}
    drawing = _Drawing(names, widths, columns, bordered=not options.get("noborder"))
    lines = [] if not drawing.bordered else [drawing.rule("┌", "─", "┬", "┐")]
    if not options.get("noheader"):
        lines.append(drawing.line([titles[name] for name in names]))
    for number, row in enumerate(cells):
        if drawing.bordered and (number or not options.get("noheader")):
            strong = number == 0
            lines.append(drawing.rule("╞", "═", "╪", "╡") if strong else drawing.rule("├", "─", "┼", "┤"))
        for height in range(max(len(row[name]) for name in names)):
            texts = [row[name][height] if height < len(row[name]) else "" for name in names]
            lines.append(drawing.line(texts))
    if drawing.bordered:
        lines.append(drawing.rule("└", "─", "┴", "┘"))
    return "\n".join(lines) + "\n"


def _sort_rows(rows: Sequence[Mapping[str, Any]], key: Any, columns: Columns) -> list[Mapping[str, Any]]:
    if not key:
        return list(rows)
    if columns.is_number(key):
        return sorted(rows, key=lambda row: (row.get(key) is not None, row.get(key) or 0))
    return sorted(rows, key=lambda row: (row.get(key) is not None, str(row.get(key) or "")))


def _width(name: str, title: str, cells: Sequence[Mapping[str, Sequence[str]]], columns: Columns) -> int:
    longest = max([len(title), *(len(line) for row in cells for line in row[name])])
    limit = columns.schemas.get(name, {}).get("max_length")
    return longest if limit is None or limit > longest else int(limit)


class _Drawing:
    """The lines of one table."""

    def __init__(
        self, names: Sequence[str], widths: Mapping[str, int], columns: Columns, *, bordered: bool
    ) -> None:
        self.bordered = bordered
        self._names = names
        self._widths = widths
        self._columns = columns

    def rule(self, left: str, line: str, cross: str, right: str) -> str:
        """Return a line between rows."""
        return left + cross.join(line * (self._widths[name] + 2) for name in self._names) + right

    def line(self, texts: Sequence[str]) -> str:
        """Return one line of cells; without borders the last one is as long as it is."""
        cells = []
        for name, text in zip(self._names, texts, strict=True):
            width = self._widths[name]
            cut = text[:width]
            cells.append(cut.rjust(width) if self._columns.is_number(name) else cut.ljust(width))
        if self.bordered:
            return "│ " + " │ ".join(cells) + " │"
        return " ".join([*cells[:-1], texts[-1]])
