"""Who may use which object itself: the right `store`, by the state that an object belongs to.

=================================================================  ========================================
objects                                                            need
=================================================================  ========================================
``heads data targets journal operator operator-locks guests``      `store` on the state in the second part
``inventory plans inner state-changes kept-states``                of the key
``cluster-etcd cluster-locks``                                     the same
``records``                                                        `store` on the state behind the verb
``runs run-events run-control``                                    `store` on any prefix; to write, see
                                                                   `stackyard.state.http.run_owners`
``ssh``, ``system/checks``                                         `store` on any prefix
``system/site``                                                    `store` on any prefix; to write, on all
                                                                   states
all others below ``system``, and ``run-owners``                    `admin` on all states
all others, such as ``controller``                                 `store` on all states
=================================================================  ========================================

Who could write the principals or the audit log would have every right, and could hide that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.store.identity import IDENTITY
from stackyard.state import layout
from stackyard.state.names import name_of
from stackyard.state.principals import Right
from stackyard.state.record_keys import parse_record_key

if TYPE_CHECKING:
    from stackyard.state.principals import Principal

__all__ = ["describe_need", "has_any", "has_every", "is_admin", "may_read", "may_watch", "may_write"]

_OF_A_STATE = frozenset(
    (
        "heads data targets journal operator operator-locks guests inventory plans inner "
        "cluster-etcd cluster-locks state-changes kept-states"
    ).split()
)
_RECORDS = "records"
_OF_EVERYONE = frozenset({"runs", "run-events", "run-control", "ssh"})
_SYSTEM = "system/"
_CHECKS = "system/checks/"


def has_any(principal: Principal) -> bool:
    """Return whether a principal has the right on any prefix."""
    return any(Right.STORE in access.rights or Right.ADMIN in access.rights for access in principal.access)


def has_every(principal: Principal) -> bool:
    """Return whether a principal has the right on all states."""
    return principal.may(Right.STORE, "")


def is_admin(principal: Principal) -> bool:
    """Return whether a principal may do everything."""
    return principal.may(Right.ADMIN, "")


def may_read(principal: Principal, key: str) -> bool:
    """Return whether a principal may read an object."""
    state = _state_of(key)
    if state is not None:
        return principal.may(Right.STORE, state)
    if _is_for_admins(key):
        return is_admin(principal)
    return has_any(principal) if _is_for_everyone(key) or key == IDENTITY else has_every(principal)


def may_write(principal: Principal, key: str) -> bool:
    """Return whether a principal may write an object, as far as its key tells."""
    return has_every(principal) if key == IDENTITY else may_read(principal, key)


def may_watch(principal: Principal, prefix: str) -> bool:
    """Return whether a principal may learn that something below a prefix changed.

    That is the case if it may use one of the objects that could be there.
    """
    first, slash, rest = prefix.partition("/")
    if is_admin(principal):
        return True
    if prefix != _SYSTEM and _is_for_admins(prefix):
        return False
    if has_every(principal):
        return True
    if slash and first in _OF_A_STATE:
        part, ended, _ = rest.partition("/")
        return any(
            principal.may(Right.STORE, access.prefix) and _may_hold(access.prefix, name_of(part), bool(ended))
            for access in principal.access
        )
    is_shared = first == _RECORDS or prefix == IDENTITY or _is_for_everyone(prefix)
    return bool(slash) and is_shared and has_any(principal)


def describe_need(key: str, *, is_write: bool = False) -> str:
    """Return which right is needed for an object, for a person."""
    state = _state_of(key)
    if state is not None:
        return f"store on the state {state}"
    if _is_for_admins(key):
        return "admin on all states"
    is_shared = _is_for_everyone(key) or (key == IDENTITY and not is_write)
    return "store on any state" if is_shared else "store on all states"


def _state_of(key: str) -> str | None:
    first, _, rest = key.partition("/")
    if first == _RECORDS:
        record = parse_record_key(key)
        return None if record is None else record.state
    if first not in _OF_A_STATE or not rest:
        return None
    return name_of(rest.partition("/")[0])


def _is_for_everyone(key: str) -> bool:
    first, slash, _ = key.partition("/")
    return bool(slash) and (first in _OF_EVERYONE or key.startswith(_CHECKS))


def _is_for_admins(key: str) -> bool:
    if key.startswith(layout.RUN_OWNERS):
        return True
    return key.startswith(_SYSTEM) and key != IDENTITY and not key.startswith(_CHECKS)


def _may_hold(allowed: str, name: str, is_whole: bool) -> bool:
    """Return whether a state below an allowed prefix may begin with a name, or is it."""
    above = allowed.rstrip("/")
    if name == above or name.startswith(f"{above}/"):
        return True
    return not is_whole and above.startswith(name)
