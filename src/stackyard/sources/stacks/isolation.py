"""Stacks that are not apart: two with one state, or one that reads the state of another without saying so."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostic, Diagnostics, Kind, Severity
from stackyard.base.errors import Location
from stackyard.sources.stacks.reads import read_stack
from stackyard.sources.stacks.shared_key import describe_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = [
    "FOREIGN_KEY",
    "SHARED_STATE",
    "UNDECLARED_READ",
    "Isolation",
    "check_isolation",
    "key_setting",
    "state_identity",
]

SHARED_STATE = Kind(
    code="E-STACK-SHARED-STATE",
    summary="Two stacks keep their state in the same place",
    remedy="Give each stack a state of its own: each apply would destroy what the other one made.",
)


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


def key_setting(kind: str) -> str | None:
    """Return the setting of a backend that says under which key a state is; None where there is no such."""
    return _KEYS.get(kind)


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


@dataclass(frozen=True, slots=True)
class Isolation:
    """What is wrong with where stacks keep their states, and with whose states they read.

    Attributes:
        found: Every finding.
        by_stack: By the name of a stack, the findings about it; those without any are left out.
    """

    found: Diagnostics = field(default_factory=Diagnostics)
    by_stack: dict[str, Diagnostics] = field(default_factory=dict)

    def add(self, names: Iterable[str], finding: Diagnostic) -> None:
        """Add a finding about some stacks."""
        self.found.extend([finding])
        for name in names:
            self.by_stack.setdefault(name, Diagnostics()).extend([finding])

    def require(self, name: str) -> None:
        """Refuse to work on a stack that is not apart from the others.

        Raises:
            InvalidInputError: It is not; the error carries every finding about it.
        """
        if name in self.by_stack:
            self.by_stack[name].raise_errors(f"The state of stack:{name}")


def check_isolation(repository: StackRepository) -> Isolation:
    """Return every finding about states that stacks share, read or keep in odd places."""
    found = Isolation()
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
            setting = _PLACES[reads[same[0][0].name].backend[0]][0]  # type: ignore[index]
            change = describe_change(repository.tree, setting, [where for _, where in same])
            detail = f"The stacks {names} have the same backend and key.{change}"
            also = tuple(where for _, where in same[1:])
            finding = Diagnostic(kind=SHARED_STATE, detail=detail, where=same[0][1], also=also)
            found.add((stack.name for stack, _ in same), finding)
    _check_remote_states(repository, reads, owners, found)
    return found


def _check_key(
    stack: Stack, kind: str, settings: Mapping[str, str], where: Location, found: Isolation
) -> None:
    key = settings.get(_KEYS.get(kind, ""))
    parent = stack.name.rpartition("/")[0]
    if key is not None and parent and not f"/{key.strip('/')}/".replace("//", "/").count(f"/{parent}/"):
        detail = f"The key `{key}` of the stack `{stack.name}` is not below `{parent}/`."
        found.add((stack.name,), Diagnostic(kind=FOREIGN_KEY, detail=detail, where=where))


def _check_remote_states(
    repository: StackRepository,
    reads: Mapping[str, object],
    owners: Mapping[str, list[tuple[Stack, Location]]],
    found: Isolation,
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
                    where = Location(path, line)
                    finding = Diagnostic(kind=UNDECLARED_READ, detail=detail, where=where, also=(place,))
                    found.add((name,), finding)
