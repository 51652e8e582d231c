"""Who there is and what they may do: realms, roles, groups, users, tokens, permissions, and the pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.exporting.read import create_call

if TYPE_CHECKING:
    from pvelab.exporting.read import Source

__all__ = ["access_calls", "pool_calls", "pool_members"]

_ROOT = "root@pam"
# Every lab has these.
_OWN_REALMS = ("pam", "pve")
_OWN_TOKEN = "lab"  # noqa: S105 - the name of a token


async def access_calls(source: Source) -> list[dict[str, Any]]:
    """Return the calls that make realms, roles, groups, users, tokens and permissions."""
    users = await source.rows("/access/users", full=1)
    return [
        *await _realms(source),
        *[
            create_call(source, "POST /access/roles", row)
            for row in await source.rows("/access/roles")
            if not row.get("special")
        ],
        *[create_call(source, "POST /access/groups", row) for row in await source.rows("/access/groups")],
        *[
            create_call(source, "POST /access/users", _user(row))
            for row in users
            if row.get("userid") != _ROOT
        ],
        *[call for row in users for call in _tokens(source, row)],
        *_permissions(source, await source.rows("/access/acl")),
    ]


async def pool_calls(source: Source) -> list[dict[str, Any]]:
    """Return the calls that make the pools, those that others are in first."""
    rows = await source.rows("/pools")
    rows.sort(key=lambda row: (str(row["poolid"]).count("/"), str(row["poolid"])))
    return [create_call(source, "POST /pools", row) for row in rows]


async def pool_members(source: Source) -> list[dict[str, Any]]:
    """Return the calls that put guests and storages into the pools, once these are there."""
    calls = []
    for row in await source.rows("/pools"):
        found = await source.rows("/pools", poolid=row["poolid"])
        members = found[0].get("members", []) if found else []
        parameters: dict[str, Any] = {"poolid": row["poolid"]}
        vms = [str(one["vmid"]) for one in members if "vmid" in one]
        storages = dict.fromkeys(str(one["storage"]) for one in members if one.get("type") == "storage")
        if vms:
            parameters["vms"] = ",".join(vms)
        if storages:
            parameters["storage"] = ",".join(storages)
        if len(parameters) > 1:
            calls.append({"method": "PUT", "path": "/pools", "parameters": parameters})
    return calls


async def _realms(source: Source) -> list[dict[str, Any]]:
    calls = []
    for row in await source.rows("/access/domains"):
        if row["realm"] not in _OWN_REALMS:
            entry = await source.entry(f"/access/domains/{row['realm']}")
            calls.append(create_call(source, "POST /access/domains", {**row, **entry}))
    return calls


def _user(row: dict[str, Any]) -> dict[str, Any]:
    # A user's keys are second factors.
    user = {key: value for key, value in row.items() if key not in ("keys", "tokens") and value != ""}
    groups = user.get("groups")
    return {**user, "groups": ",".join(groups)} if isinstance(groups, list) else user


def _tokens(source: Source, row: dict[str, Any]) -> list[dict[str, Any]]:
    calls = []
    for token in row.get("tokens") or ():
        name, user = str(token["tokenid"]), str(row["userid"])
        if (user, name) != (_ROOT, _OWN_TOKEN):
            path = f"/access/users/{user}/token/{name}"
            calls.append(create_call(source, "POST /access/users/{userid}/token/{tokenid}", token, path))
    return calls


def _permissions(source: Source, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls = []
    for row in rows:
        holder = {"user": "users", "group": "groups", "token": "tokens"}[str(row["type"])]
        fields = {holder: row["ugid"], "roles": row["roleid"], "path": row["path"]}
        propagate = {} if int(row.get("propagate", 1)) else {"propagate": 0}
        calls.append(create_call(source, "PUT /access/acl", {**fields, **propagate}))
    return calls
