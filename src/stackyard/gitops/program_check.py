"""Files of a pull request that run, or read others, without being code of the engine: programs and templates.

A data source that the base branch has runs a program of the repository, so that a new text of that program is
run while it is planned. A template reads files by itself, wherever its text comes from.
"""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING

from stackyard.gitops.code_items import list_items
from stackyard.gitops.model import CodeFinding, CodeRisk
from stackyard.sources.stacks.kinds import is_code, is_left_out, is_values

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.clients.git.compare import Comparison

__all__ = ["find_programs"]

_MAY_RUN = re.compile(rb"external|local_command|script|local-exec")
_EVERY_PLAN = ("data ", "ephemeral ")
_TEMPLATE = re.compile(rb"[$%]\{")
# A call of a function that reads files, with whatever may be between its name and its brace.
_READS = re.compile(
    rb"\b(?:core::)?(file(?:set|exists|base64(?:sha256|sha512)?|md5|sha1|sha256|sha512)?|template(?:file|string))\b"
    rb"(?:\s|/\*.*?\*/|(?:#|//)[^\n]*\n)*\(",
    re.DOTALL,
)
_LARGEST_BYTES = 16 * 2**20


async def find_programs(git: Comparison, base: str, top: Path, paths: Sequence[str]) -> list[CodeFinding]:
    """Return the changed files that code of the merge runs, and the templates that newly read files.

    Args:
        git: The commits.
        base: The commit of the base branch.
        top: The files of the merge.
        paths: What differs, from the top.

    Raises:
        GitError: git cannot read the base branch.
    """
    others = [path for path in paths if not is_code(path.rpartition("/")[2])]
    if not others:
        return []
    blocks = await asyncio.to_thread(_list_blocks, top)
    found = [one for path in others if (one := _find_run(blocks, path)) is not None]
    for path in others:
        data = await asyncio.to_thread(_read, top / path)
        if _TEMPLATE.search(data) and (calls := set(_READS.findall(data))):
            new = calls - set(_READS.findall(await git.read_file(base, path) or b""))
            if new or await _reads_other(git, base, path, data):
                names = b", ".join(sorted(calls)).decode()
                detail = f"a template that reads files: {names}"
                found.append(CodeFinding(risk=CodeRisk.PATH, path=path, line=0, detail=detail))
    return found


async def _reads_other(git: Comparison, base: str, path: str, data: bytes) -> bool:
    """Return whether a line that reads a file is another one than before."""
    before = set((await git.read_file(base, path) or b"").splitlines())
    return any(_READS.search(line) and line not in before for line in data.splitlines())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.stat().st_size <= _LARGEST_BYTES else b""
    except OSError:
        return b""


def _list_blocks(top: Path) -> list[tuple[str, str, bool]]:
    """Return the text of each block that runs a program, its folder, and whether each plan runs it."""
    found = []
    for here, folders, names in os.walk(top):
        folders[:] = [one for one in folders if one not in (".git", ".terraform", ".stackyard")]
        for name in filter(is_code, names):
            data = _read(top / os.path.relpath(os.path.join(here, name), top))
            if not _MAY_RUN.search(data):
                continue
            folder = os.path.relpath(here, top)
            items = (one for one in list_items(name, data) if one.risk is CodeRisk.PROGRAM)
            found += [(one.text, folder, one.text.startswith(_EVERY_PLAN)) for one in items]
    return found


def _find_run(blocks: Sequence[tuple[str, str, bool]], path: str) -> CodeFinding | None:
    """Return a file that a block names, that is in a folder it names, or beside one that each plan runs."""
    folder, _, name = path.rpartition("/")
    if is_values(name) or is_left_out(path):
        return None
    last = folder.rpartition("/")[2]
    for text, here, is_every_plan in blocks:
        is_near = is_every_plan and (here == "." or f"{folder}/".startswith(f"{here}/"))
        if is_near or name in text or (last and f"{last}/" in text):
            detail = f"a part of what {text.partition(' {')[0].splitlines()[0][:100]} runs"
            return CodeFinding(risk=CodeRisk.PROGRAM, path=path, line=0, detail=detail)
    return None
