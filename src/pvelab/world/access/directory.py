"""Users, tokens, groups, roles and ACLs as the permission code reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.world.access.roles import BUILTIN_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.world.clock import LabClock
    from pvelab.world.store import Document, Store

__all__ = ["ROOT", "Directory", "split_token"]

ROOT = "root@pam"

_NOBODY: Mapping[str, Any] = {}


def split_token(authid: str) -> tuple[str, str | None]:
    """Return the user and the token name of `user@realm!token`; None for a plain user."""
    user, mark, token = authid.partition("!")
    return user, token if mark else None


class Directory:
    """Reads the access documents of the store."""

    def __init__(self, store: Store, clock: LabClock) -> None:
        self._store = store
        self._clock = clock

    def user(self, userid: str) -> Document:
        """Return a user.

        Raises:
            PveError: There is no such user.
        """
        found = self._store.get("users", userid)
        if found is None:
            raise PveError(f"no such user ('{userid}')")
        return found

    def has_user(self, userid: str) -> bool:
        """Return whether a user exists."""
        return self._store.get("users", userid) is not None

    def require_enabled_user(self, userid: str) -> Document:
        """Return a user who may log in now.

        Raises:
            PveError: There is no such user, or it is disabled or expired.
        """
        user = self.user(userid)
        if not user.get("enable", 1):
            raise PveError(f"user '{userid}' is disabled")
        if user.get("expire") and user["expire"] < self._clock.now():
            raise PveError(f"user '{userid}' access expired")
        return user

    def token(self, userid: str, name: str) -> Document:
        """Return a token of a user.

        Raises:
            PveError: There is no such token.
        """
        found = self.user(userid).get("tokens", _NOBODY).get(name)
        if found is None:
            raise PveError(f"no such token '{name}' for user '{userid}'")
        return dict(found)

    def find_token(self, authid: str) -> Mapping[str, Any] | None:
        """Return a token by its full id, or None."""
        userid, name = split_token(authid)
        user = self._store.get("users", userid)
        found: Mapping[str, Any] | None = None if user is None else user.get("tokens", _NOBODY).get(name)
        return found

    def groups_of(self, userid: str) -> frozenset[str]:
        """Return the groups of a user."""
        user = self._store.get("users", userid)
        return frozenset(user.get("groups", ()) if user is not None else ())

    def members_of(self, group: str) -> Iterator[str]:
        """Yield the users of a group."""
        for userid, user in self._store.items("users").items():
            if group in user.get("groups", ()):
                yield userid

    def groups(self) -> Mapping[str, Document]:
        """Return all groups."""
        return self._store.items("groups")

    def role(self, roleid: str) -> frozenset[str] | None:
        """Return the privileges of a role, or None if there is no such role."""
        builtin = BUILTIN_ROLES.get(roleid)
        if builtin is not None:
            return builtin
        custom = self._store.get("roles", roleid)
        return None if custom is None else frozenset(custom.get("privs", ()))

    def acl(self, path: str) -> Document:
        """Return the entries of one path."""
        return self._store.get("acl", path) or _NOBODY

    def acl_paths(self) -> list[str]:
        """Return the paths that have entries."""
        return list(self._store.items("acl"))

    def pools(self) -> Iterator[tuple[str, str]]:
        """Yield every member of every pool as `(pool, ACL path of the member)`."""
        for member in self._store.items("pool_members").values():
            if "vmid" in member:
                yield member["pool"], f"/vms/{member['vmid']}"
            else:
                yield member["pool"], f"/storage/{member['storage']}"
