"""Every value of a TOML text has a place, and every text is read or refused with one."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stackyard.base.diagnostics import Diagnostics
from stackyard.sources.cluster.toml_text import parse_toml

TEXT = '''\
# Comment with [brackets] and "quotes"
top = 1
[network] # here
node_cidr = "192.0.2.0/24"   # after
dns_servers = [
  "1.1.1.1", # first
  "1.0.0.1",
]
"quoted.key" = { inner = true, "o.ther" = 'x' }
known_hosts = """
[not a table]
key = "no"
"""
raw = \'\'\'a'b\'\'\'
when = 2026-01-31 10:00:00
[kubernetes.api]
addr = "192.0.2.10"
[[nodes]]
name = "a"
[[nodes]]
name = "b"
vm.cores = 4
'''


def test_each_value_has_its_line() -> None:
    document = parse_toml(TEXT, "cluster.toml", Diagnostics())

    assert document is not None
    lines = {
        ("top",): 2,
        ("network", "node_cidr"): 4,
        ("network", "dns_servers", 1): 7,
        ("network", "quoted.key", "inner"): 9,
        ("network", "quoted.key", "o.ther"): 9,
        ("network", "known_hosts"): 10,
        ("network", "raw"): 14,
        ("network", "when"): 15,
        ("kubernetes", "api", "addr"): 17,
        ("nodes", 0, "name"): 19,
        ("nodes", 1, "name"): 21,
        ("nodes", 1, "vm", "cores"): 22,
        ("nodes", 1, "missing"): 20,
        ("missing",): 1,
    }
    assert {keys: document.place(keys).line for keys in lines} == lines
    assert str(document.place(("network", "node_cidr"))) == "cluster.toml:4:13"
    assert str(document.key_place(("network", "node_cidr"))) == "cluster.toml:4:1"


_KEYS = st.text(max_size=6)
_VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


def dump(value: Any) -> str:
    """Write a value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dump(key)} = {dump(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dump, value)) + "]"
    if isinstance(value, str):
        return (
            '"'
            + "".join(f"\\U{ord(one):08X}" if one < " " or one in '"\\\x7f' else one for one in value)
            + '"'
        )
    return str(value).lower()


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4))
def test_the_scan_follows_whatever_is_written(data: dict[str, Any]) -> None:
    text = "".join(f"{dump(key)} = {dump(value)}\n" for key, value in data.items())
    document = parse_toml(text, "x", Diagnostics())

    assert document is not None
    for number, key in enumerate(data, 1):
        assert document.place((key,)).line == number


@given(st.text(alphabet="ab=[]{}\"'.,#\n\r 01\\-", max_size=60) | st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    found = Diagnostics()
    document = parse_toml(text, "x", found)

    if document is None:
        assert [one.where is not None for one in found] == [True]
    else:
        assert document.data == tomllib.loads(text)
        for key in document.data:
            assert document.place((key,)).line


def test_deep_nesting_is_refused() -> None:
    found = Diagnostics()

    assert parse_toml("a = " + "[" * 5000 + "]" * 5000, "x", found) is None
    assert [one.kind.code for one in found] == ["E-TOML-SYNTAX"]


def test_a_syntax_error_quotes_no_value() -> None:
    found = Diagnostics()

    parse_toml('token = "hunter2" hunter2\n', "x", found)
    parse_toml('a = 1\n"hunter2" = 1\n"hunter2" = 2\n', "x", found)

    assert len(found) == 2
    assert "hunter2" not in repr(list(found))
