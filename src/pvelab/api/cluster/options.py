"""Options of the whole cluster: `/cluster/options`.

Kept under `cluster/options`, where what is written as a property string is an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.generate import DEFAULT_MAC_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["allowed_tags", "read_options", "update_options"]

_ROUTE = "PUT /cluster/options"
# These stay the text that was sent.
_TEXTS = frozenset(("bwlimit", "location"))
_LOWER, _UPPER = 100, 1_000_000


@route("GET /cluster/options")
def read_options(call: Call) -> Any:
    """Answer the options that are set, of which only those for its looks go to everyone."""
    kept = call.store.get("cluster", "options") or {}
    tags = sorted(allowed_tags(call))
    if not call.may("/", "Sys.Audit"):
        return {**{key: kept[key] for key in ("console", "tag-style") if key in kept}, "allowed-tags": tags}
    shown = {key: _as_read(call, key, value) for key, value in kept.items()}
    return {"mac_prefix": DEFAULT_MAC_PREFIX, "description": "", **shown, "allowed-tags": tags}


@route(_ROUTE)
def update_options(call: Call) -> None:
    """Set options, then unset those named by `delete`."""
    with call.world.cluster.lock_file("file-datacenter_cfg"):
        options = dict(call.store.get("cluster", "options") or {})
        options |= {
            key: _parse_option(call, key, value) for key, value in call.params.items() if key != "delete"
        }
        for name in split_list(call.params.get("delete", "")):
            options.pop(name, None)
        call.store.put("cluster", "options", _normalize(options))


def allowed_tags(call: Call) -> set[str]:
    """Return the tags that the caller may give to guests, as far as they are known."""
    options = call.store.get("cluster", "options") or {}
    registered = set(options.get("registered-tags", ()))
    access = options.get("user-tag-access") or {}
    mode, privileged = access.get("user-allow", "free"), call.may("/", "Sys.Modify")
    tags: set[str] = set()
    if mode != "none" or privileged:
        tags |= set(access.get("user-allow-list", ()))
    if mode in ("free", "existing") or privileged:
        for vmid, guest in call.world.guests.all().items():
            if guest["config"].get("tags") and (privileged or call.may(f"/vms/{vmid}", "VM.Audit")):
                tags |= set(split_list(guest["config"]["tags"]))
    return tags | registered if privileged else tags - registered


def _parse_option(call: Call, key: str, value: Any) -> Any:
    schema = call.world.facts.schema(_ROUTE, key)
    if key == "registered-tags":
        return sorted(split_list(value))
    if not isinstance(schema.get("format"), dict) or key in _TEXTS:
        return value
    parsed = properties.parse(schema["format"], value)
    if "user-allow-list" in parsed:
        parsed["user-allow-list"] = sorted(parsed["user-allow-list"].split(";"))
    return parsed


def _normalize(options: dict[str, Any]) -> dict[str, Any]:
    """Return options as the file keeps them."""
    kept = {key: value for key, value in options.items() if value not in ("", {}, [])}
    if str(kept.get("mac_prefix", "")).upper() == DEFAULT_MAC_PREFIX:
        del kept["mac_prefix"]
    if kept.get("console") == "applet":
        kept["console"] = "html5"
    if "migration_unsecure" in kept:
        unsecure = kept.pop("migration_unsecure")
        kept.setdefault("migration", {"type": "insecure" if unsecure else "secure"})
    # The description is a comment at the head of the file, line by line.
    description = str(kept.pop("description", "")).rstrip("\n")
    if description:
        kept["description"] = f"{description}\n"
    _check_range(kept.get("next-id") or {})
    return kept


def _check_range(next_id: Mapping[str, int]) -> None:
    lower, upper = next_id.get("lower", _LOWER), next_id.get("upper", _UPPER)
    if lower > upper:
        raise PveError(f"lower ({lower}) <= upper ({upper}) boundary rule broken")


def _as_read(call: Call, key: str, value: Any) -> Any:
    """Return a value as Proxmox reads it from its file, where numbers stay text and booleans do not."""
    schema = call.world.facts.schema(_ROUTE, key)
    if isinstance(value, dict):
        numbers = {name for name, part in schema["format"].items() if part["type"] in ("integer", "number")}
        return {name: str(part) if name in numbers else part for name, part in value.items()}
    return str(value) if schema["type"] == "integer" else value
