"""The state service: OpenTofu's states, with locks, history, fencing and rollback, on any object store.

`StateService` has every operation, in-process. `stackyard.state.http` serves it with the protocol of the
engines' `http` backend; `embedded` does so for one run, and `daemon` until it is stopped. All of it uses
`stackyard.clients.objects`. Replacing the head of a state is the one commit point of every operation.

The names below are imported when they are used: limits and logins of HTTP need no store.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.state.audit import AuditLogs, ChainVerdict
    from stackyard.state.contents import Content, Contents
    from stackyard.state.document import StateDocument, read_document
    from stackyard.state.history import Versions
    from stackyard.state.lockinfo import LockInfo, make_lock_info, parse_lock_info
    from stackyard.state.locks import LockReport, Locks
    from stackyard.state.model import (
        Actor,
        AuditAction,
        AuditEntry,
        Freeze,
        Grant,
        HeldLock,
        Override,
        Quarantined,
        SpentLock,
        StateHead,
        Tombstone,
        Version,
        VersionKind,
        Waiter,
    )
    from stackyard.state.names import StateNameError, check_name
    from stackyard.state.policy import Policy
    from stackyard.state.principals import Access, Principal, PrincipalError, Principals, Right
    from stackyard.state.refusals import (
        BodyRefusedError,
        NotHolderError,
        StateConflictError,
        StateDeletedError,
        StateLockedError,
        StateRefusedError,
        UnknownStateError,
        VersionMissingError,
    )
    from stackyard.state.service import StateService

__all__ = [
    "Access",
    "Actor",
    "AuditAction",
    "AuditEntry",
    "AuditLogs",
    "BodyRefusedError",
    "ChainVerdict",
    "Content",
    "Contents",
    "Freeze",
    "Grant",
    "HeldLock",
    "LockInfo",
    "LockReport",
    "Locks",
    "NotHolderError",
    "Override",
    "Policy",
    "Principal",
    "PrincipalError",
    "Principals",
    "Quarantined",
    "Right",
    "SpentLock",
    "StateConflictError",
    "StateDeletedError",
    "StateDocument",
    "StateHead",
    "StateLockedError",
    "StateNameError",
    "StateRefusedError",
    "StateService",
    "Tombstone",
    "UnknownStateError",
    "Version",
    "VersionKind",
    "VersionMissingError",
    "Versions",
    "Waiter",
    "check_name",
    "make_lock_info",
    "parse_lock_info",
    "read_document",
]

_HOMES = {
    "Access": "principals",
    "AuditAction": "model",
    "Actor": "model",
    "AuditEntry": "model",
    "AuditLogs": "audit",
    "BodyRefusedError": "refusals",
    "ChainVerdict": "audit",
    "Content": "contents",
    "Contents": "contents",
    "StateDocument": "document",
    "Freeze": "model",
    "Grant": "model",
    "HeldLock": "model",
    "LockInfo": "lockinfo",
    "LockReport": "locks",
    "Locks": "locks",
    "NotHolderError": "refusals",
    "Override": "model",
    "Policy": "policy",
    "Principal": "principals",
    "PrincipalError": "principals",
    "Principals": "principals",
    "Quarantined": "model",
    "Right": "principals",
    "SpentLock": "model",
    "StateConflictError": "refusals",
    "StateDeletedError": "refusals",
    "StateHead": "model",
    "StateLockedError": "refusals",
    "StateNameError": "names",
    "StateRefusedError": "refusals",
    "StateService": "service",
    "Tombstone": "model",
    "UnknownStateError": "refusals",
    "Version": "model",
    "VersionKind": "model",
    "VersionMissingError": "refusals",
    "Versions": "history",
    "Waiter": "model",
    "check_name": "names",
    "make_lock_info": "lockinfo",
    "parse_lock_info": "lockinfo",
    "read_document": "document",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
