"""The dependency lock file (`.terraform.lock.hcl`): read, and entries replaced as the engine writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stackyard.base.documents.constraints import Operator
from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.base.documents.versions import Version
from stackyard.sources.stacks.hcl import first_error, list_attributes, list_blocks
from stackyard.sources.stacks.hcl_expressions import convert

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.base.documents.constraints import Constraint, Term
    from stackyard.base.documents.hcltree import Node

__all__ = [
    "LockEntry",
    "LockFile",
    "describe_constraints",
    "is_built_in",
    "is_whole",
    "parse_lock",
    "read_lock",
    "replace_entries",
    "short_source",
]

# Where providers come from when no host is named, and what a lock file writes for it.
_DEFAULT_HOSTS = ("registry.opentofu.org/", "registry.terraform.io/")
_BUILT_IN = "terraform.io/builtin/"

_HEADER = b"""\
# This file is maintained automatically by "tofu init".
# Manual edits may be lost in future updates.
"""
# The order of terms with the same version, as OpenTofu 1.12 writes them; of two `~>`, the longer is first.
_PRIORITY = (
    Operator.GREATER,
    Operator.AT_LEAST,
    Operator.EQUAL,
    Operator.PESSIMISTIC,
    Operator.AT_MOST,
    Operator.LESS,
    Operator.NOT_EQUAL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockEntry:
    """What the file says of one provider.

    Attributes:
        version: The version that is used.
        constraints: What the code asked for.
        hashes: Checksums of its packages.
        line: Where it begins.
    """

    version: Version
    constraints: str = ""
    hashes: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)


class LockFile(NamedTuple):
    """A lock file: entries by their short sources, and the line of what cannot be read (0: nothing)."""

    providers: dict[str, LockEntry]
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
    entries = _entries(root)
    known = {span[0] for _, span in entries.values()}
    bad = next((block for *_, block in list_blocks(root) if block.start_byte not in known), None)
    line = line_of(first_error(root)) if root.has_error else 0 if bad is None else line_of(bad)
    return LockFile({short_source(address): entry for address, (entry, _) in entries.items()}, line)


def read_lock(data: bytes) -> dict[str, LockEntry]:
    """Return the entries by address; one that cannot be read is left out."""
    return {address: entry for address, (entry, _) in _entries(parse_tree(data)).items()}


def is_whole(data: bytes) -> bool:
    """Return whether every part of a file can be read, so that none is lost when it is written again."""
    return not parse_lock(data).bad_line


def replace_entries(data: bytes | None, entries: Mapping[str, LockEntry]) -> bytes:
    """Return a lock file with some entries replaced or added, in the order of their addresses.

    Args:
        data: The file; None where there is none.
        entries: The new entries by address.
    """
    known = _entries(parse_tree(data or b""))
    texts = {address: (data or b"")[slice(*span)] for address, (_, span) in known.items()}
    texts |= {address: _write(address, entry) for address, entry in entries.items()}
    start = min((span[0] for _, span in known.values()), default=None)
    header = _HEADER if data is None or start is None else data[:start].rstrip() + b"\n"
    return header.lstrip(b"\n") + b"".join(b"\n" + texts[address] + b"\n" for address in sorted(texts))


def describe_constraints(found: Iterable[Constraint]) -> str:
    """Return constraints in the form that the engine writes: each term once, sorted by version."""
    terms = {(term.operator, _spell(term)): term for one in found for term in one.terms}
    ordered = sorted(terms.values(), key=lambda one: (one.version, _PRIORITY.index(one.operator), -one.width))
    words = (
        f"{'' if one.operator is Operator.EQUAL else f'{one.operator} '}{_spell(one)}" for one in ordered
    )
    return ", ".join(dict.fromkeys(words))


def _spell(term: Term) -> str:
    if term.operator is Operator.PESSIMISTIC and term.width < 3 and not term.version.prerelease:
        return f"{term.version.major}.{term.version.minor}"
    return str(term.version)


def _entries(root: Node) -> dict[str, tuple[LockEntry, tuple[int, int]]]:
    found = {}
    for kind, labels, block in list_blocks(root):
        values = {name: convert(value) for name, value in list_attributes(block)}
        version, constraints, hashes = (values.get(key) for key in ("version", "constraints", "hashes"))
        if kind != "provider" or len(labels) != 1 or not isinstance(version, str):
            continue
        try:
            parsed = Version.parse(version)
        except ValueError:
            continue
        listed = hashes[1:] if isinstance(hashes, list) and hashes[:1] == ["l"] else []
        entry = LockEntry(
            version=parsed,
            constraints=constraints if isinstance(constraints, str) else "",
            hashes=tuple(one for one in listed if isinstance(one, str)),
            line=line_of(block),
        )
        found[labels[0]] = (entry, (block.start_byte, block.end_byte))
    return found


def _write(address: str, entry: LockEntry) -> bytes:
    gap = "     " if entry.constraints else " "
    lines = [f'provider "{address}" {{', f'  version{gap}= "{entry.version}"']
    lines += [f'  constraints = "{entry.constraints}"'] if entry.constraints else []
    lines += ["  hashes = [", *(f'    "{one}",' for one in sorted(entry.hashes)), "  ]", "}"]
    return "\n".join(lines).encode()
