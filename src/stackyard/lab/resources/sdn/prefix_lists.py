"""Lists of prefixes for routing policies: `/cluster/sdn/prefix-lists`.

A document `sdn_prefix_lists/<id>` has the `entries` as texts, each with its number: `action=permit,
prefix=192.0.2.0/24,le=28,seq=5`.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from stackyard.lab.params import properties
from stackyard.lab.problems import PveError
from stackyard.lab.resources.sdn.locks import changing_sdn
from stackyard.lab.resources.sdn.objects import Part
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call

__all__ = [
    "PREFIX_LISTS",
    "create_entry",
    "create_list",
    "delete_entry",
    "delete_list",
    "list_entries",
    "list_lists",
    "read_entry",
    "read_list",
    "update_entry",
    "update_list",
]

PREFIX_LISTS = Part(name="prefix_lists", key="id", missing="prefix list '{}' does not exist")

_BASE = "/cluster/sdn/prefix-lists"
_KEYS = ("action", "prefix", "le", "ge", "seq")
_STEP = 5
_NUMBER: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**32 - 1}
# The declared API leaves some parameters of paths out.
_NAME: Mapping[str, Any] = {"type": "string", "format": "pve-sdn-prefix-list-id"}
_IN_PATH: Mapping[str, Mapping[str, Any]] = {"url_seq": _NUMBER}


@route(f"GET {_BASE}")
def list_lists(call: Call) -> Any:
    """List the lists that the caller may see, with their entries if asked."""
    rows = [
        row
        for row in PREFIX_LISTS.listed(call)
        if call.may(f"/sdn/prefix-lists/{row['id']}", "SDN.Audit", "SDN.Allocate", any_of=True)
    ]
    if call.params.get("verbose"):
        return rows
    return [{key: row[key] for key in ("id", "state", "pending", "digest") if key in row} for row in rows]


@route(f"GET {_BASE}/{{id}}")
def read_list(call: Call) -> Any:
    """Answer one list."""
    return PREFIX_LISTS.read(call, call.params["id"])


@route(f"POST {_BASE}")
def create_list(call: Call) -> Any:
    """Add a list."""
    ident = str(call.params["id"])
    with changing_sdn(call, "creating prefix list failed"):
        file = PREFIX_LISTS.file(call.store)
        file.check_digest(call.params.get("digest"))
        if file.get(ident) is not None:
            raise PveError(f"prefix list '{ident}' already exists")
        _put(call, ident, _numbered(_given(call, f"POST {_BASE}")))


@route(f"PUT {_BASE}/{{id}}")
def update_list(call: Call) -> Any:
    """Replace the entries of a list."""
    ident = str(call.params["id"])
    with changing_sdn(call, "updating prefix list failed"):
        PREFIX_LISTS.file(call.store).check_digest(call.params.get("digest"))
        entries = _entries(call, ident)
        if "entries" in call.params:
            entries = _numbered(_given(call, f"PUT {_BASE}/{{id}}"))
        _put(call, ident, [] if call.params.get("delete") else entries)


@route(f"DELETE {_BASE}/{{id}}")
def delete_list(call: Call) -> Any:
    """Remove a list."""
    with changing_sdn(call, "deleting prefix list failed"):
        PREFIX_LISTS.require(call.store, call.params["id"])
        PREFIX_LISTS.file(call.store).remove(str(call.params["id"]))


@route(f"GET {_BASE}/{{id}}/entries")
def list_entries(call: Call) -> Any:
    """List the entries of a list."""
    return _entries(call, str(call.params["id"]))


@route(f"GET {_BASE}/{{id}}/entries/{{url_seq}}", extra=_IN_PATH)
def read_entry(call: Call) -> Any:
    """Answer one entry."""
    return _entry(call, _entries(call, str(call.params["id"])))


@route(f"POST {_BASE}/{{id}}/entries")
def create_entry(call: Call) -> Any:
    """Add an entry, with the number that it is given or the next one."""
    ident = str(call.params["id"])
    with changing_sdn(call, "creating prefix list entry failed"):
        given = {key: call.params[key] for key in _KEYS if key in call.params}
        _put(call, ident, _numbered([*_entries(call, ident), given]))


@route(f"PUT {_BASE}/{{id}}/entries/{{url_seq}}", extra={**_IN_PATH, "id": _NAME})
def update_entry(call: Call) -> Any:
    """Change an entry."""
    ident, dropped = str(call.params["id"]), call.params.get("delete", ())
    with changing_sdn(call, "updating prefix list entry failed"):
        PREFIX_LISTS.file(call.store).check_digest(call.params.get("digest"))
        entries = _entries(call, ident)
        old = _entry(call, entries)
        given = {key: call.params[key] for key in _KEYS if key in call.params}
        changed = {key: value for key, value in {**old, **given}.items() if key not in dropped}
        _put(call, ident, _numbered([*(entry for entry in entries if entry is not old), changed]))


@route(f"DELETE {_BASE}/{{id}}/entries/{{url_seq}}", extra=_IN_PATH)
def delete_entry(call: Call) -> Any:
    """Remove an entry."""
    ident = str(call.params["id"])
    with changing_sdn(call, "deleting prefix list entry failed"):
        entries = _entries(call, ident)
        old = _entry(call, entries)
        _put(call, ident, [entry for entry in entries if entry is not old])


def _given(call: Call, declared: str) -> list[dict[str, Any]]:
    schema = call.world.facts.schema(declared, "entries")["items"]["format"]
    return [dict(properties.parse(schema, text)) for text in call.params.get("entries", ())]


def _numbered(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a number to entries that have none: five more than the highest, as FRR does.

    Raises:
        PveError: Two have the same number, or one cannot be.
    """
    done: list[dict[str, Any]] = []
    for entry in entries:
        highest = max((int(one["seq"]) for one in done), default=0)
        number = int(entry.get("seq", highest + _STEP))
        if any(one["seq"] == number for one in done):
            raise PveError(f"entry with sequence number {number} already exists!")
        _check(entry)
        done.append({**entry, "seq": number})
    return done


def _check(entry: Mapping[str, Any]) -> None:
    for key in ("action", "prefix"):
        if key not in entry:
            raise PveError(f"missing field `{key}`")
    network = ipaddress.ip_network(str(entry["prefix"]), strict=False)
    mask, most = network.prefixlen, network.max_prefixlen
    for sign, key in (("<=", "le"), (">=", "ge")):
        value = entry.get(key)
        if value is not None and int(value) > most:
            raise PveError(f"Prefix {sign} must not be greater than {most}")
        if value is not None and int(value) < mask:
            raise PveError(f"Prefix {sign} must not be less than {mask}")
    if "le" in entry and "ge" in entry and int(entry["ge"]) > int(entry["le"]):
        raise PveError(f"Prefix >= ({entry['ge']}) must not be greater than Prefix <= ({entry['le']})")


def _entries(call: Call, ident: str) -> list[dict[str, Any]]:
    texts = PREFIX_LISTS.require(call.store, ident).get("entries", ())
    found = []
    for text in texts:
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        found.append({key: int(value) if value.isdecimal() else value for key, value in parts.items()})
    return found


def _entry(call: Call, entries: list[dict[str, Any]]) -> dict[str, Any]:
    number = int(call.params["url_seq"])
    found = next((entry for entry in entries if entry["seq"] == number), None)
    if found is None:
        raise PveError(f"entry with sequence number {number} does not exist!")
    return found


def _put(call: Call, ident: str, entries: list[dict[str, Any]]) -> None:
    texts = [",".join(f"{key}={entry[key]}" for key in _KEYS if key in entry) for entry in entries]
    section: dict[str, Any] = {"type": "prefix-list"}
    PREFIX_LISTS.file(call.store).put(ident, {**section, "entries": texts} if texts else section)
