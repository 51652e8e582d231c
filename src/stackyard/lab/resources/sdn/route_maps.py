"""Route maps, the routing policies of controllers: `/cluster/sdn/route-maps`.

A document `sdn_route_maps/<id>_<order>` is one entry of a map, with `action`, `match`, `set`, `call` and
`exit-action`.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.params import properties
from stackyard.lab.problems import PveError
from stackyard.lab.resources.sdn.locks import changing_sdn
from stackyard.lab.resources.sdn.objects import Part
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.lab.call import Call

__all__ = [
    "ROUTE_MAPS",
    "create_entry",
    "delete_entry",
    "list_all_entries",
    "list_entries",
    "list_maps",
    "read_entry",
    "update_entry",
]

ROUTE_MAPS = Part(name="route_maps", key="id", missing="route map entry '{}' does not exist")

_BASE = "/cluster/sdn/route-maps"
_ONE = f"{_BASE}/entries/{{route-map-id}}/entry/{{order}}"
_SETTINGS = ("action", "match", "set", "call", "exit-action")
_WITHOUT_VALUE = frozenset(
    (
        *("ip-next-hop-peer-address", "ip-next-hop-unchanged", "ip6-next-hop-peer-address"),
        *("ip6-next-hop-prefer-global", "on-match-next"),
    )
)
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9\-_]{0,31}")
_CHANGED_NUMBER = re.compile(r"[+-]?\d{1,10}")


@route(f"GET {_BASE}")
def list_maps(call: Call) -> Any:
    """List the maps that the caller may see."""
    found, _ = ROUTE_MAPS.chosen(call)
    names = sorted({str(entry["route-map-id"]) for entry in found.values()})
    return [{"id": name} for name in names if _may_see(call, name)]


@route(f"GET {_BASE}/entries")
def list_all_entries(call: Call) -> Any:
    """List the entries of all maps that the caller may see."""
    return [row for row in _rows(call) if _may_see(call, str(row["route-map-id"]))]


@route(f"GET {_BASE}/entries/{{route-map-id}}")
def list_entries(call: Call) -> Any:
    """List the entries of one map."""
    return [row for row in _rows(call) if row["route-map-id"] == call.params["route-map-id"]]


@route(f"GET {_ONE}")
def read_entry(call: Call) -> Any:
    """Answer one entry."""
    return {**ROUTE_MAPS.require(call.store, _key(call)), "digest": ROUTE_MAPS.file(call.store).digest}


@route(f"POST {_BASE}/entries")
def create_entry(call: Call) -> Any:
    """Add an entry to a map, which is there with its first entry."""
    key = _key(call)
    with changing_sdn(call, "creating route map entry failed"):
        file = ROUTE_MAPS.file(call.store)
        file.check_digest(call.params.get("digest"))
        if file.get(key) is not None:
            raise PveError(f"route map entry '{key}' already exists")
        identity = {"route-map-id": call.params["route-map-id"], "order": call.params["order"]}
        file.put(key, {**identity, **_given(call, f"POST {_BASE}/entries")})


@route(f"PUT {_ONE}")
def update_entry(call: Call) -> Any:
    """Change an entry."""
    key, dropped = _key(call), call.params.get("delete", ())
    with changing_sdn(call, "updating route map entry failed"):
        file = ROUTE_MAPS.file(call.store)
        file.check_digest(call.params.get("digest"))
        changed = {**ROUTE_MAPS.require(call.store, key), **_given(call, f"PUT {_ONE}")}
        file.put(key, {name: value for name, value in changed.items() if name not in dropped})


@route(f"DELETE {_ONE}")
def delete_entry(call: Call) -> Any:
    """Remove an entry; a map without entries is gone."""
    key = _key(call)
    with changing_sdn(call, "deleting route map entry failed"):
        ROUTE_MAPS.require(call.store, key)
        ROUTE_MAPS.file(call.store).remove(key)


def _rows(call: Call) -> list[dict[str, Any]]:
    found, digest = ROUTE_MAPS.chosen(call)
    rows = []
    for key in sorted(found, key=_place):
        name, order = _place(key)
        rows.append({**found[key], "route-map-id": name, "order": order, "digest": digest})
    return rows


def _place(key: str) -> tuple[str, int]:
    name, _, order = key.rpartition("_")
    return name, int(order)


def _may_see(call: Call, name: str) -> bool:
    return call.may(f"/sdn/route-maps/{name}", "SDN.Audit", "SDN.Allocate", any_of=True)


def _key(call: Call) -> str:
    return f"{call.params['route-map-id']}_{call.params['order']}"


def _given(call: Call, declared: str) -> dict[str, Any]:
    given = {key: call.params[key] for key in _SETTINGS if key in call.params}
    for key in ("match", "set"):
        if key in given:
            schema = call.world.facts.schema(declared, key)["items"]["format"]
            given[key] = [_checked(schema, text) for text in given[key]]
    if "exit-action" in given:
        schema = call.world.facts.schema(declared, "exit-action")["format"]
        given["exit-action"] = _checked(schema, given["exit-action"])
    return given


def _checked(schema: properties.PropertySchema, text: str) -> str:
    """Return `key=K,value=V` as it is kept.

    Raises:
        PveError: The value is not one for the key.
    """
    parts = properties.parse(schema, text)
    key, value = str(parts["key"]), parts.get("value")
    if key in _WITHOUT_VALUE:
        if value is not None:
            raise PveError(f"unexpected value for `{key}`")
        return f"key={key}"
    if value is None:
        raise PveError(f"missing field `value` for `{key}`")
    if not _FITS.get(key, _is_number)(str(value)):
        raise PveError(f"invalid value '{value}' for `{key}`")
    return f"key={key},value={value}"


def _is_number(value: str) -> bool:
    return value.isdecimal() and int(value) < 2**32


def _is_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None


def _is_address(version: int | None) -> Callable[[str], bool]:
    def fits(value: str) -> bool:
        try:
            return version in (None, ipaddress.ip_address(value).version)
        except ValueError:
            return False

    return fits


_FITS: Mapping[str, Callable[[str], bool]] = {
    "route-type": lambda value: (
        value in ("ead", "macip", "multicast", "es", "prefix", "1", "2", "3", "4", "5")
    ),
    "vni": lambda value: value.isdecimal() and 1 <= int(value) < 2**24,
    "ip-address-prefix-list": _is_name,
    "ip6-address-prefix-list": _is_name,
    "ip-next-hop-prefix-list": _is_name,
    "ip6-next-hop-prefix-list": _is_name,
    "ip-next-hop-address": _is_address(4),
    "ip6-next-hop-address": _is_address(6),
    "ip-next-hop": _is_address(4),
    "ip6-next-hop": _is_address(6),
    "src": _is_address(None),
    "peer": lambda value: bool(value),
    "tag": lambda value: value == "untagged" or _is_number(value),
    "metric": lambda value: value in ("rtt", "+rtt", "-rtt") or bool(_CHANGED_NUMBER.fullmatch(value)),
    "local-preference": lambda value: bool(_CHANGED_NUMBER.fullmatch(value)),
}
