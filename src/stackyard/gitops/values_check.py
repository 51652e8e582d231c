"""Values of a pull request that decide where providers log in: a token would be sent to a new address."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.gitops.model import CodeFinding, CodeRisk
from stackyard.sources.stacks.hcl import list_attributes, list_blocks
from stackyard.sources.stacks.hcl_expressions import text_of
from stackyard.sources.stacks.kinds import is_code, is_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from stackyard.clients.git.compare import Comparison

__all__ = ["find_addresses"]

# The blocks of providers and backends, with every variable that their code names.
_BLOCK = re.compile(
    rb"^[ \t]*(?:\"?(?:provider|backend)\b|(?:(?:data|ephemeral)\b[ \t]+)?"
    rb"\"?(?:external|http|local_command|shell_script|script)\b)[^\n{]*\{",
    re.MULTILINE,
)
_NAMED = re.compile(rb"\b(?:var|local)\.([\w-]+)")
# What gives a name a value that is made of others.
_FEED = re.compile(rb"(?:^|\{)[ \t]*\"?([\w-]+)\"?\s*[=:]([^\n]*\b(?:var|local)\.[^\n]*)", re.MULTILINE)
_COMPUTED = re.compile(rb"\b(?:local|module|data)\.\w+")
_ADDRESS = re.compile(rb"[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>,)]+", re.IGNORECASE)
_DATA = (".json", ".yaml", ".yml", ".toml")
_LARGEST_BYTES = 16 * 2**20
_LONGEST = 200


async def find_addresses(git: Comparison, base: str, top: Path, paths: Sequence[str]) -> list[CodeFinding]:
    """Return values that changed and that a provider block of the merge takes.

    Args:
        git: The commits.
        base: The commit of the base branch.
        top: The files of the merge.
        paths: What differs, from the top.

    Raises:
        GitError: git cannot read the base branch.
    """
    values = [path for path in paths if path.endswith(_DATA) or is_values(path) or is_code(_name(path))]
    if not values:
        return []
    names, is_computed = await asyncio.to_thread(_read_blocks, top)
    found: list[CodeFinding] = []
    for path in values:
        data = await asyncio.to_thread(_read, top / path)
        before = await git.read_file(base, path) or b""
        if is_code(_name(path)):
            found += _compare_code(path, data, before, names)
            continue
        if is_values(_name(path)):
            found += _compare(path, data, before, names)
        if is_computed:
            found += _find_new_addresses(path, data, before)
    return found


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _read_blocks(top: Path) -> tuple[frozenset[bytes], bool]:
    """Return what blocks of providers are made of, by name, and whether some take computed values."""
    names: set[bytes] = set()
    feeds: dict[bytes, set[bytes]] = {}
    is_computed = False
    for path in top.rglob("*"):
        if is_code(path.name) and ".terraform" not in path.parts and not path.is_symlink():
            data = _read(path)
            for match in _BLOCK.finditer(data):
                body = _read_body(data, match.end())
                names.update(_NAMED.findall(body))
                is_computed |= _COMPUTED.search(body) is not None
            for name, text in _FEED.findall(data):
                feeds.setdefault(name, set()).update(_NAMED.findall(text))
    pending = list(names)
    while pending:
        new = feeds.get(pending.pop(), set()) - names
        names |= new
        pending += new
    return frozenset(names), is_computed


def _compare_code(path: str, data: bytes, before: bytes, names: frozenset[bytes]) -> Iterator[CodeFinding]:
    """Yield what code newly gives to a name that a provider is made of."""
    if path.endswith(".json"):
        yield from _compare(path, data, before, names)
        return
    known = {(name, text) for name, text, _ in _list_given(before)}
    for name, text, line in _list_given(data):
        if name.encode() in names and (name, text) not in known:
            detail = f"{name}, which a provider takes"
            yield CodeFinding(risk=CodeRisk.PROVIDER, path=path, line=line, detail=detail)


def _list_given(data: bytes) -> Iterator[tuple[str, str, int]]:
    """Yield what variables are by default, and what locals and inputs of modules are."""
    for kind, labels, block in list_blocks(parse_tree(data)):
        for name, value in list_attributes(block):
            if kind == "variable" and name == "default" and labels:
                yield labels[0], text_of(value), line_of(value)
            elif kind in ("locals", "module"):
                yield name, text_of(value), line_of(value)


def _read_body(data: bytes, start: int) -> bytes:
    """Return what is between the braces of a block; a brace in a text only makes it longer or shorter."""
    depth, end = 1, start
    while depth and end < len(data):
        depth += {123: 1, 125: -1}.get(data[end], 0)
        end += 1
    return data[start:end]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.stat().st_size <= _LARGEST_BYTES else b""
    except OSError:
        return b""


def _compare(path: str, data: bytes, before: bytes, names: frozenset[bytes]) -> Iterator[CodeFinding]:
    for name in sorted(names):
        line = re.compile(rb"^[ \t]*\"?" + re.escape(name) + rb"\"?\s*[=:][ \t]*([^\n]*)", re.MULTILINE)
        old = line.findall(before)
        for match in line.finditer(data):
            if match[1] not in old:
                detail = f"{name.decode()}, which a provider takes"
                yield _finding(path, data, match.start(), detail)


def _find_new_addresses(path: str, data: bytes, before: bytes) -> Iterator[CodeFinding]:
    known = set(_ADDRESS.findall(before))
    for match in _ADDRESS.finditer(data):
        if match[0] not in known:
            yield _finding(path, data, match.start(), match[0].decode("utf-8", "replace")[:_LONGEST])


def _finding(path: str, data: bytes, at: int, detail: str) -> CodeFinding:
    line = data.count(b"\n", 0, at) + 1
    return CodeFinding(risk=CodeRisk.PROVIDER, path=path, line=line, detail=detail)
