"""The firewall and the replications of guests, as Proxmox keeps them: read beside their configuration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import quote
from stackyard.fields.properties import flag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.proxmox import Client
    from stackyard.path.importing.configuration import Configuration

__all__ = ["add_protection", "list_replications", "read_firewall"]

# The fields of the model by what Proxmox calls them, each with what it means when it is not set.
_OPTIONS: Mapping[str, tuple[str, Any]] = {
    "enable": ("enabled", False),
    "dhcp": ("dhcp", False),
    "ipfilter": ("ipfilter", False),
    "macfilter": ("macfilter", True),
    "ndp": ("ndp", True),
    "radv": ("radv", False),
    "policy_in": ("input_policy", "DROP"),
    "policy_out": ("output_policy", "ACCEPT"),
    "log_level_in": ("log_level_in", "nolog"),
    "log_level_out": ("log_level_out", "nolog"),
}
_RULE_TEXTS = ("macro", "source", "dest", "sport", "dport", "proto", "iface", "log", "comment")
# What a row says of its place in a list, and not of itself.
_ROW = frozenset(("pos", "digest", "ipversion", "type", "action", "enable", "errors", *_RULE_TEXTS))


async def read_firewall(client: Client, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the cluster has of a guest's firewall: options, rules, aliases and IP sets.

    Raises:
        ProxmoxError: It does not answer, or not to us.
    """
    path = f"/nodes/{quote(row['node'])}/{row['type']}/{row['vmid']}/firewall"
    parts = ("options", "rules", "aliases", "ipset")
    answers = await asyncio.gather(*(client.get(f"{path}/{part}") for part in parts))
    found = dict(zip(parts, answers, strict=True))
    names = [str(one["name"]) for one in found["ipset"]]
    entries = await asyncio.gather(*(client.get(f"{path}/ipset/{quote(name)}") for name in names))
    return {**found, "entries": dict(zip(names, entries, strict=True))}


async def list_replications(client: Client) -> dict[int, list[Mapping[str, Any]]]:
    """Return the replications of a cluster by the id of the guest, in the order of their numbers.

    Raises:
        ProxmoxError: It does not answer, or not to us.
    """
    found: dict[int, list[Mapping[str, Any]]] = {}
    rows = await client.get("/cluster/replication")
    for job in sorted(rows, key=lambda row: int(row["jobnum"])):
        if not job.get("remove_job"):
            found.setdefault(int(job["guest"]), []).append(job)
    return found


def add_protection(config: Configuration, row: Mapping[str, Any], fields: dict[str, Any]) -> None:
    """Put the firewall and the replications of a guest into its fields.

    Args:
        config: Takes what the model cannot carry.
        row: How the cluster lists it, with what was read of both.
        fields: The fields.
    """
    firewall = row.get("firewall") or {}
    options = {key: value for key, value in (firewall.get("options") or {}).items() if key != "digest"}
    if options or any(firewall.get(part) for part in ("rules", "aliases", "ipset")):
        fields["firewall"] = {
            "options": _options(config, options),
            "rules": [
                _rule(config, one) for one in sorted(firewall["rules"], key=lambda one: int(one["pos"]))
            ],
            "aliases": {
                str(one["name"]): _with_comment(one, cidr=one["cidr"]) for one in firewall["aliases"]
            },
            "ipsets": {
                str(one["name"]): _with_comment(one, entries=_entries(firewall["entries"][one["name"]]))
                for one in firewall["ipset"]
            },
        }
    jobs = row.get("replications") or ()
    if jobs:
        fields["replication"] = [_job(config, place, job) for place, job in enumerate(jobs)]


def _options(config: Configuration, options: Mapping[str, Any]) -> dict[str, Any]:
    for key in sorted(options.keys() - _OPTIONS.keys()):
        config.lack(f"firewall.options.{key}", "the model has nothing for it")
    found = {}
    for key, (field, unset) in _OPTIONS.items():
        value = options.get(key)
        found[field] = unset if value is None else (flag(value) if isinstance(unset, bool) else value)
    return found


def _rule(config: Configuration, row: Mapping[str, Any]) -> dict[str, Any]:
    for key in sorted(key for key in row.keys() - _ROW if row[key] not in (None, "")):
        config.lack(f"firewall.rules.{row['pos']}.{key}", "the model has nothing for it")
    rule: dict[str, Any] = {name: str(row[name]) for name in _RULE_TEXTS if row.get(name) not in (None, "")}
    rule["enabled"] = flag(row.get("enable"))
    if row["type"] == "group":
        return {**rule, "security_group": str(row["action"])}
    return {**rule, "type": str(row["type"]), "action": str(row["action"])}


def _with_comment(row: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    comment = str(row.get("comment") or "").strip()
    return {**fields, "comment": comment} if comment else fields


def _entries(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_with_comment(row, name=str(row["cidr"]), nomatch=flag(row.get("nomatch"))) for row in rows]


def _job(config: Configuration, place: int, job: Mapping[str, Any]) -> dict[str, Any]:
    if job.get("type", "local") != "local":
        config.lack(f"replication.{job['id']}", f"it is of the type {job['type']}")
    found = _with_comment(job, target=str(job["target"]))
    for key in ("schedule", "rate"):
        if job.get(key) is not None:
            found[key] = job[key] if key == "schedule" else float(job[key])
    if int(job["jobnum"]) != place:
        found["number"] = int(job["jobnum"])
    if flag(job.get("disable")):
        found["disable"] = True
    return found
