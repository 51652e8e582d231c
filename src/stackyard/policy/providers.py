"""The providers that a stack needs, with those of its local modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.sources.stacks.lock_file import is_built_in, short_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import PolicyContext
    from stackyard.sources.stacks.model import Stack

__all__ = ["is_locked_elsewhere", "list_constraints", "needed_providers"]

# stackyard's own provider takes its place, and OpenTofu locks nothing that it does not install.
_REPLACED = "bpg/proxmox"


def needed_providers(context: PolicyContext, folder: str) -> dict[str, Location]:
    """Return the sources of all providers that are not built in, each with the first place that needs it."""
    found: dict[str, Location] = {}
    for path in context.called_folders(folder):
        code = context.folder(path).code
        required = {name for said in code.values() for name in said.required}
        for file, said in code.items():
            for one in said.required.values():
                found.setdefault(short_source(one.source), Location(file, one.line))
            for name, line in said.used.items():
                if name not in required:
                    found.setdefault(short_source(name), Location(file, line))
    return {source: where for source, where in found.items() if not is_built_in(source)}


def list_constraints(context: PolicyContext, folder: str) -> Iterator[tuple[str, str, Location]]:
    """Return the source, the constraint and the place of each provider that code of a stack requires."""
    for path in context.called_folders(folder):
        for file, said in context.folder(path).code.items():
            for one in said.required.values():
                if one.version is not None:
                    yield short_source(one.source), one.version, Location(file, one.version_line)


def is_locked_elsewhere(stack: Stack, source: str) -> bool:
    """Return whether a provider is run by stackyard itself, so that no lock file has it."""
    return source == _REPLACED and stack.settings.provider != "bpg"
