"""`proxmox_virtual_environment_hosts`: the hosts file of a node, all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.node_settings.whole import WholeSettings
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["HOSTS", "RESOURCE"]


def _params(state: Object) -> Object:
    lines = [" ".join((entry["address"], *entry["hostnames"])) for entry in state["entry"]]
    return {"data": "".join(f"{line}\n" for line in lines)}


def _values(found: Mapping[str, Any]) -> Object:
    lines = str(found.get("data") or "").split("\n")
    # A line that starts with a space is no entry for bpg, so it is none here.
    parts = [line.split() for line in lines if line[:1] not in ("", "#", " ", "\t")]
    entries = [{"address": address, "hostnames": names} for address, *names in parts]
    return {
        "addresses": [entry["address"] for entry in entries],
        "digest": found.get("digest") or "",
        "entries": entries,
        "entry": entries,
        "hostnames": [entry["hostnames"] for entry in entries],
    }


def _some(names: list[Any]) -> str | None:
    return None if names else "needs at least one name"


HOSTS = WholeSettings(name="hosts", params=_params, values=_values, posted=True)
RESOURCE = HOSTS.resource(rules={"entry.hostnames": Rule(check=_some)})
