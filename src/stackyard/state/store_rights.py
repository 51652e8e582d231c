"""Who may use which object itself: the right `store`, by the state that an object belongs to.

=================================================================  ========================================
objects                                                            need the right `store` on
=================================================================  ========================================
``heads data targets journal operator guests inventory plans``     the state in the second part of the key
``records``                                                        the state behind the last comma
``runs run-events run-control``                                    any prefix
all others, such as ``system`` and ``controller``                  all states
=================================================================  ========================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.state.names import name_of
from stackyard.state.principals import Right

if TYPE_CHECKING:
    from stackyard.state.principals import Principal

__all__ = ["describe_owner", "has_any", "has_every", "may_use", "may_watch"]

_OF_A_STATE = frozenset("heads data targets journal operator guests inventory plans".split())
_RECORDS = "records"
_OF_EVERYONE = frozenset({"runs", "run-events", "run-control"})


def has_any(principal: Principal) -> bool:
    """Return whether a principal has the right on any prefix."""
    return any(Right.STORE in access.rights or Right.ADMIN in access.rights for access in principal.access)


def has_every(principal: Principal) -> bool:
    """Return whether a principal has the right on all states."""
    return principal.may(Right.STORE, "")


def may_use(principal: Principal, key: str) -> bool:
    """Return whether a principal may read and write an object."""
    state = _state_of(key)
    if state is not None:
        return principal.may(Right.STORE, state)
    return has_any(principal) if _is_for_everyone(key) else has_every(principal)


def may_watch(principal: Principal, prefix: str) -> bool:
    """Return whether a principal may learn that something below a prefix changed.

    That is the case if it may use one of the objects that could be there.
    """
    first, slash, rest = prefix.partition("/")
    if has_every(principal):
        return True
    if slash and first in _OF_A_STATE:
        part, ended, _ = rest.partition("/")
        return any(
            principal.may(Right.STORE, access.prefix) and _may_hold(access.prefix, name_of(part), bool(ended))
            for access in principal.access
        )
    return bool(slash) and (first == _RECORDS or first in _OF_EVERYONE) and has_any(principal)


def describe_owner(key: str) -> str:
    """Return on what the right is needed, for a person."""
    state = _state_of(key)
    if state is not None:
        return f"the state {state}"
    return "any state" if _is_for_everyone(key) else "all states"


def _state_of(key: str) -> str | None:
    first, _, rest = key.partition("/")
    if first == _RECORDS:
        _, comma, state = rest.rpartition(",")
        return name_of(state) if comma and state else None
    if first not in _OF_A_STATE or not rest:
        return None
    return name_of(rest.partition("/")[0])


def _is_for_everyone(key: str) -> bool:
    first, slash, _ = key.partition("/")
    return bool(slash) and first in _OF_EVERYONE


def _may_hold(allowed: str, name: str, is_whole: bool) -> bool:
    """Return whether a state below an allowed prefix may begin with a name, or is it."""
    above = allowed.rstrip("/")
    if name == above or name.startswith(f"{above}/"):
        return True
    return not is_whole and above.startswith(name)
