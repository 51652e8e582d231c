"""What of the Proxmox VE API the lab has: the table behind docs/reference/lab-coverage.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab import api as resources
from pvelab.server import facts
from pvelab.server.facts import PVE_VERSION
from pvelab.server.routing import Table, collect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.routing import Endpoint

__all__ = ["render"]

# Why a part of the API is left out, by the beginning of its path (or by a part that ends one).
_REASONS: Mapping[str, str] = {
    "/cluster/acme": "the settings of single challenge plugins are not in the lab",
    "/cluster/config": "the nodes of a lab are those that it was started with",
    "/nodes/{node}/execute": "several calls in one are made one by one",
    "/nodes/{node}/storage/{storage}/file-restore": "archives of the lab hold a configuration, but no files",
    "/access/openid": "there is no identity provider to log in at",
}
_NO_CONSOLE = "there is nothing at the other end of a console"
# The same by how a path ends.
_ENDINGS: Mapping[str, str] = {
    **dict.fromkeys(("vncproxy", "termproxy", "spiceproxy", "vncshell", "spiceshell"), _NO_CONSOLE),
    **dict.fromkeys(("vncticket", "vncwebsocket"), _NO_CONSOLE),
    "mtunnel": "tunnels between clusters are not simulated",
    "mtunnelwebsocket": "tunnels between clusters are not simulated",
    "remote_migrate": "there is no other cluster to go to",
}
_OTHERWISE = "no client that the lab is for calls it"


def render() -> str:
    """Return the coverage page: one table a group of paths, one line a method."""
    table = Table(facts.load(), collect(resources))
    groups: dict[str, list[Endpoint]] = {}
    for endpoint in table:
        groups.setdefault(_group(endpoint.method.path), []).append(endpoint)
    have = sum(1 for endpoint in table if endpoint.route is not None)
    total = sum(len(endpoints) for endpoints in groups.values())
    lines = [
        "# What the lab has of the Proxmox VE API",
        "",
        "<!-- Generated from the lab's table of routes; do not edit. -->",
        "",
        f"{have} of the {total} methods that Proxmox VE {PVE_VERSION} declares are answered. The",
        "others answer 501 and name themselves.",
    ]
    for group, endpoints in sorted(groups.items()):
        answered = sum(1 for endpoint in endpoints if endpoint.route is not None)
        lines += [
            "",
            f"## {group}",
            "",
            f"{answered} of {len(endpoints)}",
            "",
            "| method | lab |",
            "|---|---|",
        ]
        lines += [_line(endpoint) for endpoint in endpoints]
    return "\n".join(lines) + "\n"


def _line(endpoint: Endpoint) -> str:
    state = "yes" if endpoint.route is not None else f"501: {_reason(endpoint.method.path)}"
    return f"| `{endpoint.method.route}` | {state} |"


def _reason(path: str) -> str:
    ending = path.rpartition("/")[2]
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    return next((reason for start, reason in _REASONS.items() if path.startswith(start)), _OTHERWISE)


def _group(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/nodes/{node}/"):
        return "/".join(parts[:4])
    return "/".join(parts[:3]) if parts[1] == "cluster" else f"/{parts[1]}"
