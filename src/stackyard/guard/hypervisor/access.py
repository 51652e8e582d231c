"""Users, groups, roles and the access list, as they are and as a plan leaves them: who may do what where."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stackyard.guard.facts import ROOT, ApiRead
from stackyard.guard.hypervisor.cluster_uses import ACL, USERS, acl_of, token_of
from stackyard.guard.hypervisor.taken import is_expired
from stackyard.guard.subjects import short_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.engine.changes import Change
    from stackyard.guard.facts import Facts

__all__ = ["ACL_KINDS", "ROLES", "Access", "Account", "Entry", "foresee_access", "read_access"]

ROLES = ApiRead("/access/roles")
ACL_KINDS = ("acl", "group", "role", "user", "user_token")
_NO_ACCESS = "NoAccess"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user or token.

    Attributes:
        works: Whether it can be used: neither disabled nor over.
        groups: The groups of a user.
        is_separate: Whether a token has its own rights only, within those of its user.
    """

    works: bool = True
    groups: frozenset[str] = frozenset()
    is_separate: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Entry:
    """A line of the access list."""

    path: str
    holder: str
    role: str
    is_group: bool = False
    propagates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may do what.

    Attributes:
        users: The users.
        tokens: The tokens, by `USER!NAME`.
        roles: The privileges of each role.
        entries: The access list.
    """

    users: Mapping[str, Account] = field(default_factory=dict)
    tokens: Mapping[str, Account] = field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    entries: frozenset[Entry] = frozenset()

    def privileges(self, caller: str, path: str) -> frozenset[str]:
        """Return what a user or token may do on a path, by the rules of Proxmox; pools do not count."""
        user = caller.partition("!")[0]
        account = self.users.get(user)
        if account is None or not account.works:
            return frozenset()
        held = self._all if user == ROOT else self._held(user, account.groups, path)
        if user == caller:
            return held
        token = self.tokens.get(caller)
        if token is None or not token.works:
            return frozenset()
        return held & self._held(caller, frozenset(), path) if token.is_separate else held

    @property
    def _all(self) -> frozenset[str]:
        return frozenset().union(*self.roles.values())

    def _held(self, holder: str, groups: frozenset[str], path: str) -> frozenset[str]:
        roles: frozenset[str] = frozenset()
        for above in _list_paths(path):
            here = [one for one in self.entries if one.path == above and (one.propagates or above == path)]
            own = frozenset(one.role for one in here if not one.is_group and one.holder == holder)
            shared = frozenset(one.role for one in here if one.is_group and one.holder in groups)
            # The nearest entry counts, and an own one before those of groups.
            roles = own or shared or roles
        if _NO_ACCESS in roles:
            return frozenset()
        return frozenset().union(*(self.roles.get(role, frozenset()) for role in roles))


def _list_paths(path: str) -> Iterator[str]:
    """Return a path and all above it, the top first."""
    yield "/"
    parts = [part for part in path.split("/") if part]
    for count in range(1, len(parts) + 1):
        yield "/" + "/".join(parts[:count])


def read_access(facts: Facts) -> Access:
    """Return who may do what now."""
    users: dict[str, Account] = {}
    tokens: dict[str, Account] = {}
    for row in facts.rows(USERS):
        name, listed = str(row.get("userid")), row.get("groups") or ""
        groups = listed if isinstance(listed, list) else str(listed).split(",")
        works = str(row.get("enable", 1)) not in ("0", "False") and not is_expired(row.get("expire"))
        users[name] = Account(works=works, groups=frozenset(filter(None, groups)))
        for token in row.get("tokens") or ():
            tokens[f"{name}!{token.get('tokenid')}"] = Account(
                works=not is_expired(token.get("expire")), is_separate=bool(int(token.get("privsep", 1)))
            )
    return Access(
        users=users,
        tokens=tokens,
        roles={
            str(row.get("roleid")): frozenset(filter(None, str(row.get("privs") or "").split(",")))
            for row in facts.rows(ROLES)
        },
        entries=frozenset(
            Entry(
                path=str(row.get("path")),
                holder=str(row.get("ugid")),
                role=str(row.get("roleid")),
                is_group=row.get("type") == "group",
                propagates=bool(int(row.get("propagate", 1))),
            )
            for row in facts.rows(ACL)
        ),
    )


def foresee_access(access: Access, changes: Iterable[Change]) -> Access:
    """Return who may do what once a plan is applied."""
    mine = [change for change in changes if short_kind(change) in ACL_KINDS]
    for change in mine:
        if change.before is not None and (change.destroys or short_kind(change) == "acl"):
            access = _without(access, short_kind(change), change)
    for change in mine:
        if change.after is not None:
            access = _with(access, short_kind(change), change.after)
    return access


def _without(access: Access, kind: str, change: Change) -> Access:
    before = change.before or {}
    if kind == "acl":
        gone = acl_of(before)
        kept = frozenset(one for one in access.entries if (one.path, one.holder, one.role) != gone)
        return replace(access, entries=kept)
    if kind == "role":
        return replace(access, roles=_drop(access.roles, before.get("role_id")))
    if kind == "user_token":
        name = token_of(before)
        kept = frozenset(one for one in access.entries if one.holder != name)
        return replace(access, tokens=_drop(access.tokens, name), entries=kept)
    name = str(before.get("user_id") if kind == "user" else before.get("group_id"))
    kept = frozenset(
        one
        for one in access.entries
        if one.is_group != (kind == "group") or one.holder.partition("!")[0] != name
    )
    if kind == "group":
        return replace(access, entries=kept)
    tokens = {token: one for token, one in access.tokens.items() if token.partition("!")[0] != name}
    return replace(access, users=_drop(access.users, name), tokens=tokens, entries=kept)


def _with(access: Access, kind: str, after: Mapping[str, Any]) -> Access:
    if kind == "acl":
        path, holder, role = acl_of(after)
        new = Entry(
            path=path,
            holder=holder,
            role=role,
            is_group=bool(after.get("group_id")),
            propagates=after.get("propagate") is not False,
        )
        return replace(access, entries=access.entries | {new})
    works = after.get("enabled") is not False and not is_expired(after.get("expiration_date"))
    if kind == "user":
        user = Account(works=works, groups=_texts(after.get("groups")))
        return replace(access, users={**access.users, str(after.get("user_id")): user})
    if kind == "user_token":
        token = Account(works=works, is_separate=after.get("privileges_separation") is not False)
        return replace(access, tokens={**access.tokens, token_of(after): token})
    if kind == "role":
        privileges = _texts(after.get("privileges"))
        return replace(access, roles={**access.roles, str(after.get("role_id")): privileges})
    return access


def _drop(known: Mapping[str, Any], name: Any) -> dict[str, Any]:
    return {key: value for key, value in known.items() if key != name}


def _texts(value: Any) -> frozenset[str]:
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()
