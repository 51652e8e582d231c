"""Firewalls, of the cluster, of each node and of each guest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.exporting.read import create_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.exporting.read import Source

__all__ = ["firewall_calls"]

Calls = list[dict[str, Any]]


async def firewall_calls(source: Source, nodes: Sequence[str], guests: Sequence[Mapping[str, Any]]) -> Calls:
    """Return the calls that make all sets, aliases, groups, rules and options, in an order that works."""
    base = "/cluster/firewall"
    calls = [
        *await _aliases(source, base, base),
        *await _sets(source, base, base),
        *await _groups(source, base),
        *await _rules(source, base, base),
        *await _options(source, base, base),
    ]
    for node in nodes:
        own, declared = f"/nodes/{node}/firewall", "/nodes/{node}/firewall"
        calls += await _rules(source, own, declared)
        calls += await _options(source, own, declared)
    for found in await source.all(_guest(source, guest) for guest in guests):
        calls += found
    return calls


async def _guest(source: Source, guest: Mapping[str, Any]) -> Calls:
    own = f"/nodes/{guest['node']}/{guest['type']}/{guest['vmid']}/firewall"
    declared = f"/nodes/{{node}}/{guest['type']}/{{vmid}}/firewall"
    return [
        *await _aliases(source, own, declared),
        *await _sets(source, own, declared),
        *await _rules(source, own, declared),
        *await _options(source, own, declared),
    ]


async def _aliases(source: Source, own: str, declared: str) -> Calls:
    path = f"{own}/aliases"
    return [create_call(source, f"POST {declared}/aliases", row, path) for row in await source.rows(path)]


async def _sets(source: Source, own: str, declared: str) -> Calls:
    path, calls = f"{own}/ipset", []
    for row in await source.rows(path):
        calls.append(create_call(source, f"POST {declared}/ipset", row, path))
        inner = f"{path}/{row['name']}"
        calls += [
            create_call(source, f"POST {declared}/ipset/{{name}}", entry, inner)
            for entry in await source.rows(inner)
        ]
    return calls


async def _groups(source: Source, base: str) -> Calls:
    path, calls = f"{base}/groups", []
    for row in await source.rows(path):
        calls.append(create_call(source, f"POST {base}/groups", row))
        calls += await _rules_at(source, f"{path}/{row['group']}", f"POST {base}/groups/{{group}}")
    return calls


async def _rules(source: Source, own: str, declared: str) -> Calls:
    return await _rules_at(source, f"{own}/rules", f"POST {declared}/rules")


async def _rules_at(source: Source, path: str, route: str) -> Calls:
    rows = [{key: value for key, value in row.items() if key != "pos"} for row in await source.rows(path)]
    # A new rule goes to the top, so the last one is created first.
    return [create_call(source, route, row, path) for row in reversed(rows)]


async def _options(source: Source, own: str, declared: str) -> Calls:
    path = f"{own}/options"
    call = create_call(source, f"PUT {declared}/options", await source.entry(path), path)
    return [call] if call.get("parameters") else []
