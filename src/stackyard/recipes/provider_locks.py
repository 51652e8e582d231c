"""The lock file of a new stack: which version of each provider it uses, with checksums.

Entries come from the lock files of other stacks that want the same, else from the registry. OpenTofu neither
writes nor reads an entry of a provider that is served to it, as the built-in one for bpg/proxmox is. So such
a stack has a lock file without that entry, until somebody runs it with the provider of the registry.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories
from stackyard.base.errors import StackyardError
from stackyard.engine import tofu
from stackyard.engine.tools.find import find_engine
from stackyard.engine.workdir import Limits, Workdir
from stackyard.path.stacks.environment import engine_environment, find_cli_config, plugin_cache
from stackyard.recipes.hcl_edit import quote, read_required
from stackyard.sources.stacks.kinds import LOCK_FILE, is_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["LockText", "list_required", "make_lock"]

_SERVED = "bpg/proxmox"
_BUILT_IN = "terraform.io/builtin/"
_DOWNLOAD_S = 300.0
_ENTRY = re.compile(r'(?ms)^provider "(?P<source>[^"]+)" \{\n.*?^\}\n')
_CONSTRAINTS = re.compile(r'(?m)^\s*constraints\s*=\s*"([^"]*)"')
_HEADER = "# The providers of this stack, with their checksums. OpenTofu maintains this file; commit it.\n"
_SERVED_NOTE = (
    "# bpg/proxmox is not listed: stackyard serves its built-in provider in its place, and nothing is\n"
    "# downloaded. `tofu init` adds it, for those who run this stack with the provider of the registry.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockText:
    """A lock file.

    Attributes:
        text: What it says.
        locked: The providers that it has.
        served: The providers that it does not need, because stackyard serves them.
        missing: The providers that it should have.
        reason: Why those are missing.
    """

    text: str
    locked: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reason: str = ""


def list_required(files: Iterable[tuple[str, bytes]]) -> dict[str, frozenset[str]]:
    """Return the constraints of each provider that files of code require, by its source.

    Args:
        files: Names and contents.
    """
    found: dict[str, frozenset[str]] = {}
    for name, data in files:
        if not is_code(name) or name.endswith(".json"):
            continue
        for source, version in read_required(data):
            constraints = {_normal(one) for one in version.split(",") if one.strip()}
            found[source] = found.get(source, frozenset()) | constraints
    return found


async def make_lock(
    repository: StackRepository, required: Mapping[str, frozenset[str]], *, is_served: bool = True
) -> LockText:
    """Return the lock file of a stack.

    Args:
        repository: All stacks.
        required: The constraints of each provider.
        is_served: Whether stackyard serves bpg/proxmox.
    """
    served = tuple(one for one in sorted(required) if is_served and one == _SERVED)
    wanted = [one for one in sorted(required) if one not in served and not one.startswith(_BUILT_IN)]
    known = _find_known(repository, {one: required[one] for one in wanted})
    entries = "\n".join(known[one] for one in wanted if one in known)
    note = _SERVED_NOTE if served else ""
    text = _HEADER + note + (f"\n{entries}" if entries else "")
    found = LockText(text=text, locked=tuple(known), served=served)
    left = tuple(one for one in wanted if one not in known)
    if not left:
        return found
    try:
        whole = await _ask_registry(required, left, text)
    except StackyardError as err:
        return replace(found, missing=left, reason=f"{err.summary}.")
    return LockText(text=note + whole, locked=tuple(wanted), served=served)


def _normal(constraint: str) -> str:
    """Return a constraint as OpenTofu writes it."""
    matched = re.fullmatch(r"(~>|>=|<=|!=|=|>|<)?\s*(\S+)", constraint.strip())
    if matched is None:
        return constraint.strip()
    sign = matched[1] or ""
    return f"{sign} {matched[2]}" if sign not in ("", "=") else matched[2]


def _find_known(repository: StackRepository, wanted: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return the entries of other stacks that want exactly the same."""
    found: dict[str, str] = {}
    for stack in repository.stacks.values():
        if len(found) == len(wanted):
            break
        try:
            text = (stack.folder / LOCK_FILE).read_text()
        except (OSError, UnicodeDecodeError):
            continue
        for entry in _ENTRY.finditer(text):
            for source, constraints in wanted.items():
                if source not in found and _is_same(entry["source"], source):
                    said = _CONSTRAINTS.search(entry[0])
                    listed = {one.strip() for one in said[1].split(",")} if said and said[1] else set()
                    if listed == constraints and "hashes" in entry[0]:
                        found[source] = entry[0]
    return found


def _is_same(listed: str, source: str) -> bool:
    """Return whether an entry, which has the host of a registry, is about a source, which may have none."""
    return listed == source or (source.count("/") == 1 and listed.partition("/")[2] == source)


async def _ask_registry(required: Mapping[str, frozenset[str]], wanted: Iterable[str], known: str) -> str:
    """Return the lock file that the engine writes for some providers beside those that are known.

    Raises:
        StackyardError: There is no engine, or the registry cannot be reached.
    """
    engine = (await find_engine()).engine
    environment = engine_environment()
    environment["TF_PLUGIN_CACHE_DIR"] = str(directories.ensure_private(plugin_cache(environment)))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stackyard-lock-")))
        sources = {*wanted, *(one for one in required if f'/{one}" {{' in known)}
        lines = [
            f"    p{number} = {_format_required(one, required[one])}"
            for number, one in enumerate(sorted(sources))
        ]
        body = "\n".join(lines)
        (folder / "main.tf").write_text(f"terraform {{\n  required_providers {{\n{body}\n  }}\n}}\n")
        (folder / LOCK_FILE).write_text(known)
        workdir = Workdir(
            engine=engine,
            folder=folder,
            environment=environment,
            cli_config=find_cli_config(),
            limits=Limits(work_s=_DOWNLOAD_S),
        )
        await tofu.init(workdir)
        return (folder / LOCK_FILE).read_text()


def _format_required(source: str, constraints: frozenset[str]) -> str:
    version = f", version = {quote(', '.join(sorted(constraints)))}" if constraints else ""
    return f"{{ source = {quote(source)}{version} }}"
