"""What a destroy leaves on the cluster: the tokens that the site uses, and what gives them their rights.

A run that removed them could not end. They leave the state, and the record of the target has them: the next
apply takes them over again.
"""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any

from stackyard.guard import Finding
from stackyard.guard.hypervisor.cluster_uses import acl_of
from stackyard.path.credentials import findings
from stackyard.path.credentials.rows import KeptAccess
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.clients import proxmox
    from stackyard.state.inside import Instance

__all__ = ["explain_kept", "find_kept_access", "import_id_of", "read_import_ids"]

# In the order in which they can be removed: a user takes its tokens and its entries of the access list along.
_REMOVALS = {"user": "user", "group": "group", "role": "role"}


def explain_kept(kept: KeptAccess, described: Iterable[str]) -> Iterator[Finding]:
    """Return what to say of what stays.

    Args:
        kept: What stays.
        described: The tokens that the target has made or adopted.
    """
    tokens = sorted(kept.tokens.intersection(described))
    if not tokens and not kept.objects:
        return
    objects = sorted(one for one in kept.objects if one[0] in _REMOVALS)
    names = [f"the token {token}" for token in tokens]
    names += [f"the {kind} {name}" for kind, name in objects]
    count = len(kept.objects) - len(objects)
    names += [f"{count} ACL {'entry' if count == 1 else 'entries'}"] if count else []
    commands = "".join(f"\n  {command}" for command in _list_commands(tokens, objects))
    detail = (
        f"The site uses {', '.join(sorted(kept.tokens))}, so these stay: {', '.join(names)}. The next apply "
        f"adopts them. If nothing else uses them, remove them on a node:{commands}"
    )
    yield Finding(kind=findings.ACCESS_KEPT, detail=detail)


def _list_commands(tokens: Iterable[str], objects: list[tuple[str, str]]) -> Iterator[str]:
    users = {name for kind, name in objects if kind == "user"}
    for token in tokens:
        user, _, name = token.partition("!")
        if user not in users:
            yield shlex.join(("pveum", "user", "token", "delete", user, name))
    for kind in _REMOVALS:
        yield from (shlex.join(("pveum", kind, "delete", name)) for of, name in objects if of == kind)


def import_id_of(kind: str, values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the kind and the id of a role, a user, a group or an ACL entry; None for anything else.

    Args:
        kind: The type of its resource, without its prefix.
        values: What the resource says.
    """
    if kind in _REMOVALS:
        return kind, str(values[f"{kind}_id"])
    if kind != "acl":
        return None
    path, owner, role = acl_of(values)
    return kind, f"{path}?{owner}?{role}"


async def find_kept_access(
    client: proxmox.Client,
    tokens: frozenset[str],
    instances: Mapping[str, Instance],
    earlier: frozenset[tuple[str, str]],
) -> KeptAccess:
    """Return what tokens need of a state, and of what an earlier destroy has left.

    Args:
        client: Speaks to the cluster.
        tokens: The tokens, by `USER@REALM!NAME`.
        instances: What the state has.
        earlier: The kind and the id of each object that was left.

    Raises:
        ProxmoxError: It cannot be read.
    """
    access = {
        address: found
        for address, one in instances.items()
        if (found := import_id_of(short_type(one.type), one.attributes)) is not None
    }
    if not access and not earlier:
        return KeptAccess(tokens=tokens)
    rows: tuple[list[Mapping[str, Any]], ...] = await asyncio.gather(
        client.get("/access/users", {"full": 1}), client.get("/access/acl")
    )
    users = {token.partition("!")[0] for token in tokens}
    groups = {group for row in rows[0] if row["userid"] in users for group in _read_groups(row)}
    holders = {*tokens, *users, *groups}
    roles = {str(row["roleid"]) for row in rows[1] if row["ugid"] in holders}
    needed = {"user": users, "group": groups, "role": roles}

    def is_needed(kind: str, name: str) -> bool:
        return name.split("?")[1] in holders if kind == "acl" else name in needed[kind]

    kept = {address: one for address, one in access.items() if is_needed(*one)}
    there = earlier & await read_import_ids(client) if earlier else frozenset()
    return KeptAccess(tokens=tokens, addresses=frozenset(kept), objects=frozenset(kept.values()) | there)


def _read_groups(row: Mapping[str, Any]) -> Iterator[str]:
    listed = row.get("groups") or ""
    yield from filter(None, listed if isinstance(listed, list) else str(listed).split(","))


async def read_import_ids(client: proxmox.Client) -> frozenset[tuple[str, str]]:
    """Return the kind and the id of each role, user, group and ACL entry of the cluster.

    Raises:
        ProxmoxError: It cannot be read.
    """
    rows: tuple[list[Mapping[str, Any]], ...] = await asyncio.gather(
        client.get("/access/roles"),
        client.get("/access/users"),
        client.get("/access/groups"),
        client.get("/access/acl"),
    )
    roles, users, groups, entries = rows
    return frozenset(
        (
            *(("role", str(row["roleid"])) for row in roles),
            *(("user", str(row["userid"])) for row in users),
            *(("group", str(row["groupid"])) for row in groups),
            *(("acl", f"{row['path']}?{row['ugid']}?{row['roleid']}") for row in entries),
        )
    )
