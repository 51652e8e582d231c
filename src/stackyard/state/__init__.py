"""The state service: OpenTofu's states, with locks, history, fencing and rollback, on any object store.

`StateService` is everything that can be done, in-process; `stackyard.state.http` serves it with the
protocol of the engines' `http` backend; `embedded` does so for the length of one run, and `daemon` until it
is stopped. All of it is built once on `stackyard.objects`: replacing the head of a state is the one moment
at which anything happens.
"""

from __future__ import annotations

from stackyard.state.audit import AuditLogs, ChainVerdict
from stackyard.state.contents import Content, Contents
from stackyard.state.document import Document, read_document
from stackyard.state.history import Versions
from stackyard.state.lockinfo import LockInfo, make_lock_info, parse_lock_info
from stackyard.state.locks import LockReport, Locks
from stackyard.state.model import (
    Action,
    Actor,
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
    "Action",
    "Actor",
    "AuditEntry",
    "AuditLogs",
    "BodyRefusedError",
    "ChainVerdict",
    "Content",
    "Contents",
    "Document",
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
