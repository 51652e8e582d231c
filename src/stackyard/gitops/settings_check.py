"""Settings of a pull request that change how the engine works, or which store and which rules are used."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics
from stackyard.gitops.model import CodeFinding, CodeRisk
from stackyard.sources.site.document import parse_document
from stackyard.sources.stacks.kinds import STACK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.clients.git.compare import Comparison

__all__ = ["find_settings"]

_REPOSITORY = "stackyard.yaml"
# By the name of a file, the keys of it that decide more than what a target is.
_KEYS = {
    STACK_FILE: ("engine", "provider", "policy", "backend_config"),
    _REPOSITORY: ("store", "policy", "defaults"),
    "site.yaml": ("store", "provider", "engine"),
    "deployment.yaml": ("store",),
}
_OF_PATHS = ("var_files", "secrets", "backend_config", "domains", "policy", "watch")
# What an engine loads beside the code, and what nobody commits: providers, copies of modules, states.
_FOLDERS = frozenset((".terraform", "terraform.d", ".stackyard", ".git"))
_ENGINE_FILES = (".terraformrc", ".tofurc", ".tfrc", ".tfbackend", ".tfstate", ".rego")
_SETTINGS_OF_TOOLS = frozenset(("ansible.cfg", ".sops.yaml", "terraform.rc"))


async def find_settings(git: Comparison, base: str, top: Path, paths: Sequence[str]) -> list[CodeFinding]:
    """Return the settings of a merge that are other ones than on the base branch.

    Args:
        git: The commits.
        base: The commit of the base branch.
        top: The files of the merge.
        paths: What differs, from the top.

    Raises:
        GitError: git cannot read the base branch.
    """
    there = await asyncio.to_thread(lambda: [path for path in paths if os.path.lexists(top / path)])
    found = [one for path in there for one in _find_files(path)]
    for path in paths:
        keys = _KEYS.get(path.rpartition("/")[2])
        if keys is None:
            continue
        before = _values(await git.read_file(base, path) or b"", path)
        now = _values(await asyncio.to_thread(_read, top / path), path)
        found += _compare(path, before, now, keys)
        found += _find_paths(path, before, now)
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _find_files(path: str) -> Iterator[CodeFinding]:
    folders, name = path.split("/")[:-1], path.rpartition("/")[2]
    for folder in sorted(_FOLDERS.intersection((*folders, name))):
        yield CodeFinding(
            risk=CodeRisk.SOURCE,
            path=path,
            line=0,
            detail=f"{folder} is loaded by engines, and not committed",
        )
    if name.endswith(_ENGINE_FILES) or name in _SETTINGS_OF_TOOLS:
        yield CodeFinding(risk=CodeRisk.ENGINE, path=path, line=0, detail=f"{name} was changed")


def _values(data: bytes, path: str) -> Mapping[str, Any] | None:
    """Return what a file says, nothing for none, None for one that cannot be read."""
    if not data.strip():
        return {}
    document = parse_document(data.decode("utf-8", "replace"), path, Diagnostics())
    return None if document is None else document.data


def _compare(
    path: str, before: Mapping[str, Any] | None, now: Mapping[str, Any] | None, keys: Sequence[str]
) -> Iterator[CodeFinding]:
    if now is None:
        return
    for key in keys:
        old = (before or {}).get(key)
        if now.get(key) != old:
            yield CodeFinding(risk=CodeRisk.ENGINE, path=path, line=0, detail=f"`{key}` was changed")


def _find_paths(
    path: str, before: Mapping[str, Any] | None, now: Mapping[str, Any] | None
) -> Iterator[CodeFinding]:
    for key in _OF_PATHS:
        old, new = ((said or {}).get(key) for said in (before, now))
        named = new if isinstance(new, list) else [new]
        for text in named:
            if isinstance(text, str) and text not in (old if isinstance(old, list) else [old]):
                place = os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(text)))
                if os.path.isabs(place) or place == ".." or place.startswith("../"):
                    detail = f"`{key}` names {text}"
                    yield CodeFinding(risk=CodeRisk.PATH, path=path, line=0, detail=detail)
