"""Those who manage the cluster: one of them is left, and the token in use keeps what it may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.engine.changes import Action
from stackyard.guard.facts import PERMISSIONS, ROOT
from stackyard.guard.findings import Finding
from stackyard.guard.hypervisor.access import ACL_KINDS, ROLES, foresee_access, read_access
from stackyard.guard.hypervisor.cluster_uses import ACL, USERS, token_of
from stackyard.guard.subjects import short_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.engine.changes import Change
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.hypervisor.access import Access
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "ACCESS_UNKNOWN",
    "LAST_ADMINISTRATOR",
    "NODE_RIGHTS",
    "NODE_TOKEN",
    "OWN_RIGHTS",
    "ask_access",
    "find_lost_rights",
]

LAST_ADMINISTRATOR = Kind(
    code="E-GUARD-LAST-ADMINISTRATOR",
    summary="Nobody would be left who may do everything",
    remedy="Keep one user or token that works and has the role Administrator on `/`; or enable root@pam.",
)
OWN_RIGHTS = Kind(
    code="E-GUARD-OWN-RIGHTS",
    summary="The token in use would lose rights",
    remedy="Keep its user, group, role, access and date as they are; or apply this with another token.",
)
NODE_TOKEN = Kind(
    code="E-GUARD-NODE-TOKEN",
    summary="A token that nodes of the site use could do nothing more",
    remedy="Keep what it may do and its date; or name another token in `api_token` of these nodes first.",
)
NODE_RIGHTS = Kind(
    code="W-GUARD-NODE-TOKEN",
    summary="A token that nodes of the site use would lose rights",
    remedy="Check that runs on these nodes do not need them.",
    severity=Severity.WARNING,
)
ACCESS_UNKNOWN = Kind(
    code="E-GUARD-ACCESS-UNKNOWN",
    summary="Nothing shows who would keep which rights",
    remedy="Give the token Sys.Audit on /access, or apply this with the token of an administrator.",
)

# Who has these on `/` can give himself all others.
_ADMINISTRATION = frozenset(("Permissions.Modify", "Sys.Modify", "User.Modify"))
_HARMLESS = (Action.NOTHING, Action.READ, Action.FORGET)
_MOST_LISTED = 8


def _narrows(change: Change) -> bool:
    """Return whether a change may take rights away: a new entry of the access list hides what is above it."""
    kind = short_kind(change)
    if kind not in ACL_KINDS or change.action in _HARMLESS:
        return False
    return kind == "acl" or change.action is not Action.CREATE


def ask_access(implied: ImpliedCalls, _cluster: Cluster) -> Iterator[ApiRead]:
    """Read who may do what, where a plan may take something away."""
    if any(map(_narrows, _list_changes(implied))):
        yield from (ACL, USERS, ROLES, PERMISSIONS)


def find_lost_rights(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report a plan after which nobody is an administrator, or the token in use may do less."""
    changes = _list_changes(implied)
    if not any(map(_narrows, changes)):
        return
    if not all(question in facts.answers for question in (ACL, USERS, ROLES, PERMISSIONS)):
        # Reported as unknown, with what Proxmox said.
        return
    for path in ("/access", "/access/groups"):
        if facts.may(path, "Sys.Audit") is not True:
            detail = f"All of it is shown only to Sys.Audit on {path}, which {facts.caller} does not have."
            yield Finding(kind=ACCESS_UNKNOWN, detail=detail)
            return
    before = read_access(facts)
    after = foresee_access(before, changes)
    administrators = _list_administrators(before)
    if administrators and not _list_administrators(after):
        gone = ", ".join(administrators[:_MOST_LISTED])
        yield Finding(
            kind=LAST_ADMINISTRATOR,
            detail=f"Now {gone} may do everything; then nobody would, and {ROOT} is disabled.",
        )
    # Why a token that is used may not be removed is said where its removal is planned.
    removed = {token_of(change.before or {}) for change in implied.beside.planned if _removes_token(change)}
    if facts.caller not in removed:
        yield from _find_own_loss(facts.caller, before, after)
    for token, nodes in sorted(implied.used_tokens.items()):
        if token not in removed:
            yield from _find_node_loss(token, nodes, before, after)


def _list_changes(implied: ImpliedCalls) -> tuple[Change, ...]:
    return (*implied.changes.planned, *implied.beside.planned)


def _removes_token(change: Change) -> bool:
    return change.destroys and short_kind(change) == "user_token"


def _list_administrators(access: Access) -> list[str]:
    """Return the users and tokens that work and may do everything."""
    accounts = (*access.users, *access.tokens)
    return sorted(one for one in accounts if access.privileges(one, "/") >= _ADMINISTRATION)


def _find_own_loss(caller: str, before: Access, after: Access) -> Iterator[Finding]:
    told = _list_losses(caller, before, after)
    if told:
        detail = f"{caller}, which applies this, would lose {_join(told)}."
        yield Finding(kind=OWN_RIGHTS, detail=detail)


def _find_node_loss(token: str, nodes: tuple[str, ...], before: Access, after: Access) -> Iterator[Finding]:
    told = _list_losses(token, before, after)
    if not told:
        return
    names = ", ".join(nodes)
    if any(after.privileges(token, path) for path in _list_paths(before, after)):
        yield Finding(kind=NODE_RIGHTS, detail=f"{token}, which {names} use, would lose {_join(told)}.")
    else:
        detail = f"{token}, which {names} use, would end or have no privileges."
        yield Finding(kind=NODE_TOKEN, detail=detail)


def _list_losses(holder: str, before: Access, after: Access) -> list[str]:
    """Return what a user or token would lose, path by path."""
    lost = {
        path: sorted(before.privileges(holder, path) - after.privileges(holder, path))
        for path in _list_paths(before, after)
    }
    return [f"{_shorten(privileges)} on {path}" for path, privileges in lost.items() if privileges]


def _list_paths(before: Access, after: Access) -> list[str]:
    return sorted({"/", *(one.path for one in before.entries | after.entries)})


def _join(told: list[str]) -> str:
    more = f", and more on {len(told) - _MOST_LISTED} paths" if len(told) > _MOST_LISTED else ""
    return f"{'; '.join(told[:_MOST_LISTED])}{more}"


def _shorten(privileges: list[str]) -> str:
    if len(privileges) <= _MOST_LISTED:
        return ", ".join(privileges)
    return f"{', '.join(privileges[:_MOST_LISTED])} and {len(privileges) - _MOST_LISTED} others"
