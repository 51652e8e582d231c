"""Stacks that are not apart: two with one state, or one that reads the state of another without saying so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import InvalidInputError, Location
from stackyard.sources.stacks.reads import read_stack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["SharedStateError", "check_isolation", "require_own_state", "state_identity"]

SHARED_STATE = Kind(
    code="E-STACK-SHARED-STATE",
    summary="Two stacks keep their state in the same place",
    remedy="Give each stack a state of its own: each apply would destroy what the other one made.",
)


class SharedStateError(InvalidInputError):
    """A stack is to be worked on, and another one keeps its state in the same place."""

    code = SHARED_STATE.code
    summary = SHARED_STATE.summary
    default_remedy = SHARED_STATE.remedy


UNDECLARED_READ = Kind(
    code="E-STACK-UNDECLARED-READ",
    summary="A stack reads the state of another one without saying so",
    remedy="Add the other stack to `after` in the stack.yaml of the one that reads it.",
)
FOREIGN_KEY = Kind(
    code="W-STACK-KEY",
    summary="The key of a state is not below the parent folder of its stack",
    remedy="Let the key begin with the parent folder of the stack: then no two stacks have the same one.",
    severity=Severity.WARNING,
)

# By type, the settings that say where a state is; those that have to be there first.
_PLACES: dict[str, tuple[str, ...]] = {
    "s3": ("key", "bucket", "endpoint", "endpoints.s3", "region", "workspace_key_prefix"),
    "gcs": ("bucket", "prefix"),
    "azurerm": ("key", "container_name", "storage_account_name"),
    "http": ("address",),
    "consul": ("path", "address"),
    "pg": ("conn_str", "schema_name"),
    "kubernetes": ("secret_suffix", "namespace"),
    "cos": ("key", "bucket", "prefix"),
    "oss": ("key", "bucket", "prefix"),
    "remote": ("workspaces.name", "organization", "hostname"),
    "cloud": ("workspaces.name", "organization", "hostname"),
    "local": ("path",),
}
# The same without the region: a bucket has its name in all of them.
_NOT_PLACES = frozenset(("region", "workspace_key_prefix"))
# Types whose states are told apart by these alone, when none of the first is set.
_DEFAULTS = {
    "pg": {"schema_name": "terraform_remote_state"},
    "gcs": {"prefix": ""},
    "local": {"path": "terraform.tfstate"},
}
_KEYS = {"s3": "key", "azurerm": "key", "cos": "key", "oss": "key", "gcs": "prefix", "consul": "path"}


def state_identity(kind: str, settings: Mapping[str, str], folder: str) -> str | None:
    """Return what tells a state from all others, None where that is not constant.

    Args:
        kind: The type of the backend.
        settings: Its constant settings.
        folder: The folder of the stack, absolute.
    """
    names = _PLACES.get(kind)
    if names is None:
        return None
    said = {**_DEFAULTS.get(kind, {}), **settings}
    if names[0] not in said:
        return None
    parts = {name: said[name].strip("/") for name in names if name in said and name not in _NOT_PLACES}
    if kind == "local":
        parts["path"] = os.path.realpath(os.path.join(folder, said["path"]))
    elif kind == "http":
        parts["address"] = said["address"].rstrip("/")
    return f"{'cloud' if kind == 'remote' else kind} {sorted(parts.items())}"


def check_isolation(repository: StackRepository) -> Diagnostics:
    """Return every finding about states that stacks share, read or keep in odd places."""
    found = Diagnostics()
    owners: dict[str, list[tuple[Stack, Location]]] = {}
    reads = {name: read_stack(repository, stack) for name, stack in repository.stacks.items()}
    for name, one in reads.items():
        if one.backend is None:
            continue
        stack = repository.stacks[name]
        kind, settings, path, line = one.backend
        where = Location(path, line)
        identity = state_identity(kind, settings, str(stack.folder))
        if identity is not None:
            owners.setdefault(identity, []).append((stack, where))
        _check_key(stack, kind, settings, where, found)
    for same in owners.values():
        if len(same) > 1:
            names = " and ".join(f"`{stack.name}` ({where})" for stack, where in same)
            detail = f"The stacks {names} have the same backend and key."
            found.add(SHARED_STATE, detail, same[0][1], also=tuple(where for _, where in same[1:]))
    _check_remote_states(repository, reads, owners, found)
    return found


def require_own_state(stack: Stack, findings: Diagnostics, prefix: str = "") -> None:
    """Refuse a stack whose state is that of another one too.

    Args:
        stack: The stack.
        findings: What `check_isolation` found.
        prefix: The repository from the top of the tree, with a slash at its end.

    Raises:
        SharedStateError: Whatever is done to its state is done to the other one.
    """
    for finding in findings.errors:
        places = [place for place in (finding.where, *finding.also) if place is not None]
        folders = {place.path.rpartition("/")[0] for place in places}
        if finding.kind is SHARED_STATE and f"{prefix}{stack.path}" in folders:
            raise SharedStateError(finding.detail, where=finding.where)


def _check_key(
    stack: Stack, kind: str, settings: Mapping[str, str], where: Location, found: Diagnostics
) -> None:
    key = settings.get(_KEYS.get(kind, ""))
    parent = stack.name.rpartition("/")[0]
    if key is not None and parent and not f"/{key.strip('/')}/".replace("//", "/").count(f"/{parent}/"):
        detail = f"The key `{key}` of the stack `{stack.name}` is not below `{parent}/`."
        found.add(FOREIGN_KEY, detail, where)


def _check_remote_states(
    repository: StackRepository,
    reads: Mapping[str, object],
    owners: Mapping[str, list[tuple[Stack, Location]]],
    found: Diagnostics,
) -> None:
    for name, one in reads.items():
        stack = repository.stacks[name]
        declared = {dependency.stack for dependency in stack.settings.after}
        for data, kind, settings, path, line in one.remote_states:  # type: ignore[attr-defined]
            identity = state_identity(kind, settings, str(stack.folder)) if kind else None
            for other, place in owners.get(identity or "", ()):
                if other.name != name and other.name not in declared and name not in other.settings.before:
                    detail = (
                        f"The stack `{name}` reads the state of `{other.name}` ({place}) with "
                        f"`data.terraform_remote_state.{data}`, and does not name it in `after`."
                    )
                    found.add(UNDECLARED_READ, detail, Location(path, line), also=(place,))
