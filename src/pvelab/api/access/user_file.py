"""The file that users, groups, roles, ACLs and pools share: its lock, and what goes along with an entry."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pvelab.server.call import Call
    from pvelab.world.store import Store

__all__ = ["clean_text", "drop_from_acl", "drop_role_from_acl", "lock_user_file", "require_group", "save_acl"]

KINDS = ("users", "groups", "tokens")


def lock_user_file(call: Call, failure: str) -> AbstractContextManager[None]:
    """Hold the lock of the file; `failure` is what refusals in the block begin with."""
    return call.world.cluster.lock_file("file-user_cfg", failure)


def require_group(store: Store, group: str) -> None:
    """Refuse a group that does not exist.

    Raises:
        PveError: There is no such group.
    """
    if store.get("groups", group) is None:
        raise PveError(f"group '{group}' does not exist")


def clean_text(text: str) -> str:
    """Return what the file keeps of a text between its colons: no spaces around it, and no single zero."""
    kept = text.strip(" ")
    return "" if kept == "0" else kept


def save_acl(store: Store, path: str, entries: dict[str, Any]) -> None:
    """Write the entries of a path, without what is empty."""
    kept: dict[str, Any] = {}
    for kind in KINDS:
        named = {ident: roles for ident, roles in entries.get(kind, {}).items() if roles}
        if named:
            kept[kind] = named
    if kept:
        store.put("acl", path, kept)
    else:
        store.delete("acl", path)


def drop_from_acl(store: Store, kind: str, is_gone: Callable[[str], bool]) -> None:
    """Remove the entries of users, groups or tokens from all paths."""
    for path, entries in list(store.items("acl").items()):
        gone = [ident for ident in entries.get(kind, {}) if is_gone(ident)]
        if gone:
            kept = copy.deepcopy(dict(entries))
            for ident in gone:
                del kept[kind][ident]
            save_acl(store, path, kept)


def drop_role_from_acl(store: Store, role: str) -> None:
    """Remove a role from the entries of all paths."""
    for path, entries in list(store.items("acl").items()):
        kept = copy.deepcopy(dict(entries))
        found = [roles for kind in KINDS for roles in kept.get(kind, {}).values() if role in roles]
        for roles in found:
            del roles[role]
        if found:
            save_acl(store, path, kept)
