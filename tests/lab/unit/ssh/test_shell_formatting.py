"""Answers are printed as Proxmox prints them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pvelab.ssh.programs.cli.model import PrintedAnswer
from pvelab.ssh.programs.cli.output import RENDERERS, print_result
from pvelab.ssh.shell.streams import CaptureSink, NullSink, Streams

ROWS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "node": {"type": "string"},
            "maxmem": {"type": "integer", "optional": True},
            "active": {"type": "boolean", "optional": True},
        },
    },
}


def printed(data: Any, schema: dict[str, Any], *, path: str = "", **options: Any) -> str:
    captured = CaptureSink()
    shown = PrintedAnswer(
        data=data,
        schema=schema,
        options={key.replace("_", "-"): value for key, value in options.items()},
        parameters={},
        renderers=RENDERERS.get(path, {}),
        streams=Streams(stdin=NullSink(), stdout=captured, stderr=NullSink()),
    )
    asyncio.run(print_result(shown))
    return captured.data.decode()


def test_a_list_is_a_table_with_what_is_always_there_first() -> None:
    data = [{"node": "b", "maxmem": 2**30, "active": 0}, {"node": "a", "maxmem": 512}]
    assert printed(data, ROWS, path="/nodes") == (
        "┌──────┬────────┬──────────┐\n"
        "│ node │ active │   maxmem │\n"
        "╞══════╪════════╪══════════╡\n"
        "│ a    │        │ 512.00 B │\n"
        "├──────┼────────┼──────────┤\n"
        "│ b    │ 0      │ 1.00 GiB │\n"
        "└──────┴────────┴──────────┘\n"
    )


def test_a_table_without_borders_and_heads_has_columns_all_the_same() -> None:
    data = [{"node": "a", "maxmem": 2048}]
    assert printed(data, ROWS, noborder=1, noheader=1, human_readable=0) == "a           2048\n"


def test_an_object_is_a_table_of_keys() -> None:
    assert printed({"b": {"x": 1}, "a": "text"}, {"type": "object"}) == (
        "┌─────┬─────────┐\n"
        "│ key │ value   │\n"
        "╞═════╪═════════╡\n"
        "│ a   │ text    │\n"
        "├─────┼─────────┤\n"
        '│ b   │ {"x":1} │\n'
        "└─────┴─────────┘\n"
    )


def test_a_cell_of_several_lines_makes_its_row_higher() -> None:
    table = printed([{"node": "a\nb"}], {"type": "array", "items": {"type": "object"}})
    assert table.splitlines()[3:5] == ["│ a    │", "│ b    │"]


def test_json_has_its_keys_in_order_and_yaml_its_mark() -> None:
    data = {"b": [1, None], "a": "ä"}
    assert printed(data, {"type": "object"}, output_format="json") == '{"a":"ä","b":[1,null]}\n'
    assert printed(data, {"type": "object"}, output_format="json-pretty") == (
        '{\n   "a" : "ä",\n   "b" : [\n      1,\n      null\n   ]\n}\n'
    )
    assert printed(data, {"type": "object"}, output_format="yaml") == "---\na: ä\nb:\n- 1\n- null\n"


@pytest.mark.parametrize("output_format", ["text", "json", "yaml"])
def test_a_call_that_answers_nothing_prints_nothing(output_format: str) -> None:
    assert printed(None, {"type": "null"}, output_format=output_format) == ""
    assert printed([1], {"type": "array"}, output_format=output_format, quiet=1) == ""


def test_an_empty_list_prints_nothing_as_text_and_brackets_as_json() -> None:
    assert printed([], ROWS) == ""
    assert printed([], ROWS, output_format="json") == "[]\n"
