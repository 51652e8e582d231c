"""The dependency lock file of a stack (`.terraform.lock.hcl`), and the names of providers in it."""

from __future__ import annotations

from typing import NamedTuple

from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.sources.stacks.hcl import attributes_of, blocks_of, head_of
from stackyard.sources.stacks.hcl_expressions import convert

__all__ = ["LockFile", "LockedProvider", "is_built_in", "parse_lock", "short_source"]

# Where providers come from when no host is named, and what a lock file writes for it.
_DEFAULT_HOSTS = ("registry.opentofu.org/", "registry.terraform.io/")
_BUILT_IN = "terraform.io/builtin/"


class LockedProvider(NamedTuple):
    """An entry; `line` is where it begins."""

    line: int
    version: str


class LockFile(NamedTuple):
    """A lock file: providers by their short source, and the line of the first mistake (0: none)."""

    providers: dict[str, LockedProvider]
    bad_line: int = 0


def short_source(source: str) -> str:
    """Return the source of a provider in one spelling: in lower case, without a default host."""
    text = source.strip().lower()
    for host in _DEFAULT_HOSTS:
        text = text.removeprefix(host)
    return text if "/" in text else f"hashicorp/{text}"


def is_built_in(source: str) -> bool:
    """Return whether a provider is part of OpenTofu, so that nothing is installed for it."""
    return source.startswith(_BUILT_IN) or source == "hashicorp/terraform"


def parse_lock(data: bytes) -> LockFile:
    """Return what a lock file holds, as far as it can be read."""
    root = parse_tree(data)
    found: dict[str, LockedProvider] = {}
    for block in blocks_of(root):
        kind, labels = head_of(block)
        if kind == "provider" and labels:
            values = dict(attributes_of(block))
            version = convert(values["version"]) if "version" in values else ""
            said = version if isinstance(version, str) else ""
            found[short_source(labels[0])] = LockedProvider(line_of(block), said)
    return LockFile(found, 1 if root.has_error else 0)
