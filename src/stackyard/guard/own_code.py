"""What a plan of the user's own code destroys, whatever the provider.

Nothing goes along with something else here: each resource that is destroyed or replaced has to be named, by
its name in Proxmox where it has one that is unique, and by its address otherwise.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.engine.changes import Action
from stackyard.guard.destruction import (
    ALLOW_DESTROY,
    NOTHING_IN_COMMON,
    describe_cause,
    report_guest,
    report_object,
)
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.subjects import is_guest, is_proxmox, name_in, short_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from stackyard.engine.changes import Change, Changes

__all__ = ["find_emptied_state", "find_forgotten", "find_own_destruction", "name_exactly"]

DESTROYS_RESOURCE = Kind(
    code="E-GUARD-DESTROYS-RESOURCE",
    summary="A resource would be destroyed",
    remedy="Keep it in the code; or name it, its resource or its module with --allow-destroy.",
)
STACK_PROTECTED = Kind(
    code="E-GUARD-STACK-PROTECTED",
    summary="A resource of a protected stack would be destroyed",
    remedy="Keep it in the code; or remove `protected` from stack.yaml first.",
)
FORGETS = Kind(
    code="W-GUARD-FORGETS-RESOURCE",
    summary="A resource leaves the state and stays as it is",
    remedy="Nothing manages it any more; remove it by hand, or import it where it belongs.",
    severity=Severity.WARNING,
)


def find_own_destruction(
    changes: Changes, spared: Collection[str] = (), *, protected: bool = False
) -> Iterator[Finding]:
    """Report each resource that would be destroyed or replaced.

    Args:
        changes: What the plan does.
        spared: Addresses that are reported elsewhere.
        protected: Whether that is refused whatever the user names.
    """
    for change in changes.planned:
        if not change.destroys or change.address in spared:
            continue
        if protected:
            yield Finding(kind=STACK_PROTECTED, detail=_describe(change), address=change.address)
        elif is_guest(change) and change.deposed is None:
            yield from report_guest(change)
        elif _own_name(change) and change.deposed is None:
            yield report_object(change)
        else:
            yield Finding(
                kind=DESTROYS_RESOURCE,
                detail=_describe(change),
                permit=Permit(option=ALLOW_DESTROY, name=change.address),
                address=change.address,
            )


def _describe(change: Change) -> str:
    what = "replaced" if change.action is Action.REPLACE else "destroyed"
    about = change.address
    if change.deposed is not None:
        # A replacement that failed half-way leaves the former object behind.
        about = f"The deposed object {change.deposed} of {change.address}"
    return f"{about} would be {what}{describe_cause(change)}."


def find_emptied_state(changes: Changes) -> Iterator[Finding]:
    """Report a plan that deletes all that the state has: another stack's state, or code that is cut off."""
    existing = [one for one in changes.planned if one.before is not None and one.deposed is None]
    if existing and all(change.action is Action.DELETE for change in existing):
        yield Finding(
            kind=NOTHING_IN_COMMON,
            detail=f"Not one of the {len(existing)} resources in the state would stay.",
        )


def find_forgotten(changes: Changes) -> Iterator[Finding]:
    """Report what is taken out of the state and not destroyed."""
    for change in changes.planned:
        if change.action is Action.FORGET:
            detail = f"{change.address} would be forgotten, and stay as it is."
            yield Finding(kind=FORGETS, detail=detail, address=change.address)


def name_exactly(findings: Iterable[Finding], changes: Changes) -> list[Finding]:
    """Return findings with names that only one resource has, and with addresses as labels.

    Guests in two modules may have the same name; then only an address says which of them is meant.
    """
    existing = [one for one in changes.planned if one.before is not None and one.deposed is None]
    names = collections.Counter(_own_name(change) for change in existing)
    exact = {one.address: name for one in existing if names[name := _own_name(one)] == 1 and name}
    return [_name_exactly(finding, exact) if finding.address else finding for finding in findings]


def _name_exactly(finding: Finding, exact: dict[str, str]) -> Finding:
    named = dataclasses.replace(finding, label=finding.address)
    if finding.permit is None or finding.permit.name == finding.address:
        return named
    name = exact.get(finding.address, finding.address)
    return dataclasses.replace(named, permit=dataclasses.replace(finding.permit, name=name))


def _own_name(change: Change) -> str:
    """Return what Proxmox calls a resource; empty for what it does not know."""
    values = change.before or change.after or {}
    return name_in(short_kind(change), values) if is_proxmox(change) else ""
