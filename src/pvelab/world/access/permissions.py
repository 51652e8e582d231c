"""The privileges of a user or token on a path of the access tree.

The rules are Proxmox's: an entry for the token goes before one for the user, the user before the groups; an
entry deeper in the tree replaces what was inherited; only propagating entries are inherited; `NoAccess`
beats all; a member of a pool also has the roles of the pool; a token with privilege separation has what
both it and its user have. root@pam has everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import not_permitted
from pvelab.world.access.directory import ROOT, Directory, split_token
from pvelab.world.access.roles import PRIVILEGES

if TYPE_CHECKING:
    from pvelab.world.clock import LabClock
    from pvelab.world.store import Document, Store

__all__ = ["Permissions", "normalize_path", "privileges_to_share"]

# A privilege or role to whether it propagates.
Granted = Mapping[str, int]

_EVERYTHING: Granted = dict.fromkeys(sorted(PRIVILEGES), 1)
_NOTHING: Granted = {}
_PATH = re.compile(r"[A-Za-z0-9.\-_/]+")
# What else than Permissions.Modify lets someone change the ACL of a path below these.
_OWNING = {"storage": "Datastore.Allocate", "vms": "VM.Allocate", "pool": "Pool.Allocate"}
_DEPENDS_ON = ("users", "groups", "roles", "acl", "pool_members")


def normalize_path(path: str) -> str | None:
    """Return an access path without doubled or trailing slashes, or None if it can be none."""
    tidy = "/" + "/".join(part for part in path.split("/") if part)
    return tidy if path and _PATH.fullmatch(tidy) else None


def privileges_to_share(path: str) -> list[str]:
    """Return the privileges of which one is needed to change the ACL of a path."""
    parts = path.split("/")
    owning = _OWNING.get(parts[1]) if len(parts) > 2 else None
    return ["Permissions.Modify", *([owning] if owning else [])]


class Permissions:
    """Computes and remembers privileges; forgets when users, roles, ACLs or pools change."""

    def __init__(self, store: Store, clock: LabClock) -> None:
        self.directory = Directory(store, clock)
        self._cache: dict[tuple[str, str], Granted] = {}
        self._pool_roles: dict[str, Mapping[str, Mapping[str, int]]] = {}
        self._powerful: dict[str, bool] = {}
        for collection in _DEPENDS_ON:
            store.watch(collection, self._forget)

    def of(self, authid: str, path: str) -> Granted:
        """Return the privileges that a user or token has on a path."""
        if self.is_powerful(authid):
            return _EVERYTHING
        cached = self._cache.get((authid, path))
        if cached is None:
            cached = self._cache[authid, path] = self._compute(authid, path)
        return cached

    def is_powerful(self, authid: str) -> bool:
        """Return whether someone may do everything: root@pam, or a token with all its privileges."""
        known = self._powerful.get(authid)
        if known is None:
            token = self.directory.find_token(authid)
            known = authid == ROOT or (
                token is not None and split_token(authid)[0] == ROOT and not self._is_separated(authid)
            )
            self._powerful[authid] = known
        return known

    def has(self, authid: str, path: str, privileges: Iterable[str], *, any_of: bool = False) -> bool:
        """Return whether a user has all (or any) of some privileges on a path."""
        granted = self.of(authid, path)
        return any(p in granted for p in privileges) if any_of else all(p in granted for p in privileges)

    def check(self, authid: str, path: str, privileges: Iterable[str], *, any_of: bool = False) -> None:
        """Refuse unless a user has all (or any) of some privileges on a path.

        Raises:
            PveError: 403, naming the path and the first missing privilege, or all of which one is needed.
        """
        wanted = list(privileges)
        granted = self.of(authid, path)
        if any_of:
            if not any(name in granted for name in wanted):
                raise not_permitted(f"{path}, {'|'.join(wanted)}")
            return
        for name in wanted:
            if name not in granted:
                raise not_permitted(f"{path}, {name}")

    def roles(self, authid: str, path: str) -> Mapping[str, int]:
        """Return the roles that ACL entries give a user or token on a path, with their propagation."""
        userid, token = split_token(authid)
        if token is not None and not self._is_separated(authid):
            return self.roles(userid, path)
        groups = self.directory.groups_of(authid)
        roles: Mapping[str, int] = _NOTHING
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            entries = self.directory.acl("/" + "/".join(parts[:depth]))
            found = _entry(entries, authid, groups, final=depth == len(parts))
            roles = found or roles
        return {"NoAccess": roles["NoAccess"]} if "NoAccess" in roles else roles

    def _compute(self, authid: str, path: str) -> Granted:
        userid, token = split_token(authid)
        if token is not None:
            if self.directory.find_token(authid) is None:
                return _NOTHING
            if not self._is_separated(authid):
                return self.of(userid, path)
        elif not self.directory.has_user(authid):
            return _NOTHING
        granted = self._privileges(self._with_pools(authid, path))
        if token is None or userid == ROOT:
            return granted
        owner = self.of(userid, path)
        return {name: flag and owner[name] for name, flag in granted.items() if name in owner}

    def _privileges(self, roles: Mapping[str, int]) -> Granted:
        granted: dict[str, int] = {}
        for role, propagate in roles.items():
            for name in self.directory.role(role) or ():
                granted[name] = granted.get(name, 0) or propagate
        return granted

    def _with_pools(self, authid: str, path: str) -> Mapping[str, int]:
        roles = self.roles(authid, path)
        from_pools = self._roles_by_pool(authid).get(path)
        if not from_pools or "NoAccess" in roles:
            return roles
        if "NoAccess" in from_pools:
            return {"NoAccess": 0}
        return {**dict.fromkeys(from_pools, 0), **roles}

    def _roles_by_pool(self, authid: str) -> Mapping[str, Mapping[str, int]]:
        known = self._pool_roles.get(authid)
        if known is None:
            gathered: dict[str, dict[str, int]] = {}
            pools: dict[str, Mapping[str, int]] = {}
            for pool, member in self.directory.pools():
                if pool not in pools:
                    pools[pool] = self.roles(authid, f"/pool/{pool}")
                if pools[pool]:
                    gathered.setdefault(member, {}).update(pools[pool])
            known = self._pool_roles[authid] = gathered
        return known

    def _is_separated(self, authid: str) -> bool:
        token = self.directory.find_token(authid)
        return token is None or bool(token.get("privsep", 1))

    def _forget(self, _key: str, _old: Document | None, _new: Document | None) -> None:
        self._cache.clear()
        self._pool_roles.clear()
        self._powerful.clear()


def _entry(
    entries: Mapping[str, Any], authid: str, groups: frozenset[str], *, final: bool
) -> Mapping[str, int] | None:
    """Return the roles that one path's entries give, or None where they say nothing."""
    for kind in ("tokens", "users"):
        found = _select_propagated(entries.get(kind, {}).get(authid, {}), final=final)
        if found:
            return found
    merged: dict[str, int] = {}
    for group, roles in entries.get("groups", {}).items():
        if group in groups:
            merged.update(_select_propagated(roles, final=final))
    return merged or None


def _select_propagated(roles: Mapping[str, int], *, final: bool) -> dict[str, int]:
    return {role: propagate for role, propagate in roles.items() if final or propagate}
