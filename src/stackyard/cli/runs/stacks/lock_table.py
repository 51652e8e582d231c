"""The runs of `stackyard stack lock-table`: both locks, the proof, and one lock."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import files
from stackyard.base.errors import ExitStatus, StackyardError, UsageError
from stackyard.cli.result import Result
from stackyard.clients.git.compare import Comparison
from stackyard.path.stacks.lock_table import (
    LockProof,
    ProofStatus,
    TableStack,
    find_table_stacks,
    open_table,
    prove_stack,
)
from stackyard.sources.stacks.changes import find_default_tip
from stackyard.sources.stacks.lock_settings import add_lockfile, drop_table, read_lock_settings
from stackyard.sources.stacks.repository import find_stacks

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["run_add_lockfile", "run_delete_table", "run_drop", "run_status"]

_MAY_GO = {ProofStatus.PROVEN}
# A name, or what AWS calls a table by across accounts.
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,1024}")


class TableInUseError(StackyardError):
    """A lock table is to be deleted that somebody still uses."""

    code = "E-LOCK-TABLE-IN-USE"
    summary = "The lock table is still in use"
    default_remedy = "`stackyard stack lock-table status` shows what is left to do."


@dataclass(frozen=True, slots=True)
class _Branch:
    """The default branch."""

    repository: StackRepository
    git: Comparison | None
    tip: str

    @classmethod
    async def find(cls) -> _Branch:
        repository = find_stacks()
        if not repository.tree.is_git:
            return cls(repository, None, "")
        git = Comparison(top=Path(repository.tree.top))
        return cls(repository, git, (await find_default_tip(git))[0])


async def run_status(table: str | None, since: float | None) -> Result:
    """Show how far each stack is."""
    branch = await _Branch.find()
    proofs = [(one, await prove_stack(one, branch.git, branch.tip, since)) for one in _list(branch, table)]
    return Result(
        document={"stacks": [_document(branch, one, proof) for one, proof in proofs]},
        show=lambda writer: _show(writer, proofs),
    )


async def run_add_lockfile(table: str | None) -> Result:
    """Add `use_lockfile` to the code of each stack with a table."""
    branch = await _Branch.find()
    changed = []
    for one in _list(branch, table):
        if not one.has_lockfile:
            path = one.require_file()
            data = path.read_bytes()
            # Two stacks may share a backend config file.
            if not read_lock_settings(data).has_lockfile:
                _replace(path, add_lockfile(data, str(path)))
            changed.append(_relative(branch, path))
    return _edited(sorted(set(changed)), "Both locks: ", "No stack names a lock table without use_lockfile.")


async def run_drop(table: str | None, since: float | None, *, is_unproven_taken: bool) -> Result:
    """Remove the table from the code of each stack whose clients have both locks."""
    branch = await _Branch.find()
    proofs = [(one, await prove_stack(one, branch.git, branch.tip, since)) for one in _list(branch, table)]
    may_go = _MAY_GO | ({ProofStatus.UNPROVEN} if is_unproven_taken else set())
    left = [(one, proof) for one, proof in proofs if proof.status not in may_go]
    kept = {one.table_file for one, _ in left}
    # A file that several stacks share goes with the last of them.
    paths = {one.require_file() for one, proof in proofs if proof.status in may_go} - kept
    for path in sorted(paths):
        _replace(path, drop_table(path.read_bytes(), str(path)))
    changed = [_relative(branch, path) for path in sorted(paths)]

    def show(writer: TextWriter) -> None:
        for path in changed:
            writer.line(f"The lock object alone: {path}")
        if changed:
            writer.line(
                "Commit and merge this. Then delete the table: stackyard stack lock-table delete TABLE"
            )
        if left:
            writer.line("Not changed:", style="yellow")
            _show(writer, left)
        elif not changed:
            writer.line("No stack names a lock table.")

    return Result(
        document={"changed": changed, "left": [_document(branch, one, proof) for one, proof in left]},
        show=show,
        status=ExitStatus.FAILED if left else ExitStatus.DONE,
    )


async def run_delete_table(table: str, *, is_unproven_taken: bool) -> Result:
    """Delete a table that no stack names any more, here and on the default branch."""
    branch = await _Branch.find()
    stacks = find_table_stacks(branch.repository)
    _require_unused_here(branch, stacks, table)
    if branch.git is not None and branch.tip:
        # Every file: a stack may be there that is not here.
        files = await branch.git.find_files_with(branch.tip, _naming(table))
        if files:
            raise TableInUseError(f"On the default branch, {', '.join(files[:5])} names the table {table}.")
    places = {tuple(sorted(_place_of(one).items())): one for one in stacks}
    if len(places) > 1:
        raise UsageError("The stacks use several regions or accounts: delete the table with the AWS CLI.")
    settings = next(iter(places.values())).settings if places else {}
    if any(name.partition(".")[0] in ("assume_role", "role_arn") for name in settings):
        raise UsageError(
            "The stacks assume a role, which is not used here: delete the table with the AWS CLI."
        )
    text = await asyncio.to_thread(_delete, table, settings, _States(stacks), is_unproven_taken)
    return Result(document={"table": table, "deleted": True}, show=lambda writer: writer.line(text))


def _require_unused_here(branch: _Branch, stacks: list[TableStack], table: str) -> None:
    """Refuse a table that a stack names here, or may name.

    Raises:
        TableInUseError: One does.
        UsageError: This is no name of a table.
    """
    if not _TABLE_NAME.fullmatch(table):
        raise UsageError(f"`{table[:60]}` is no name of a table.")
    using = [one.stack.name for one in stacks if one.table == table]
    if using:
        raise TableInUseError(f"The code of {', '.join(using)} names the table {table}.")
    unknown = [one.stack.name for one in stacks if one.has_table and not one.table]
    unknown += branch.repository.broken
    if unknown:
        raise TableInUseError(
            f"Which table {', '.join(unknown)} uses cannot be read from the code.",
            remedy="Correct the code, or write the name of the table as a plain text, then repeat it.",
        )


def _naming(table: str) -> str:
    """Return an extended expression for a line that names a table for a lock, in both syntaxes.

    A line that is a comment does not.
    """
    literal = "".join(one if one.isalnum() else f"[{one}]" for one in table)
    begin = "^[[:space:]]*([^#/[:space:]][^#]*)?"
    return f'{begin}dynamodb_table"?[[:space:]]*[=:][[:space:]]*"{literal}"'


def _delete(table: str, settings: Any, known: _States, is_unproven_taken: bool) -> str:
    with open_table(table, settings) as opened:
        if not opened.exists():
            return f"There is no table {table}: it is deleted already."
        locks, digests = opened.list_items()
        if locks:
            held = "; ".join(f"{one.who} holds {one.state}" for one in locks)
            raise TableInUseError(f"Locks are held in the table {table}: {held}.")
        others = [one for one in digests if not known.have(one)]
        if others and not is_unproven_taken:
            raise TableInUseError(
                f"The table {table} has digests of states that no stack here has: {', '.join(others[:5])}.",
                remedy="If no other repository uses the table, repeat with --without-proof.",
            )
        opened.delete()
    return f"Deleted the table {table}."


class _States:
    """The states of stacks, those of their workspaces included."""

    def __init__(self, stacks: list[TableStack]) -> None:
        settings = [one.settings for one in stacks]
        self._known = {
            (said["bucket"], said.get("workspace_key_prefix", "env:"), said["key"])
            for said in settings
            if "bucket" in said and "key" in said
        }

    def have(self, state: str) -> bool:
        """Return whether `BUCKET/KEY` is one of them."""
        for bucket, prefix, key in self._known:
            above = f"{bucket}/{prefix}/"
            if state == f"{bucket}/{key}":
                return True
            if state.startswith(above) and state.removeprefix(above).partition("/")[2] == key:
                return True
        return False


def _place_of(one: TableStack) -> dict[str, str]:
    names = ("region", "profile", "endpoints.dynamodb", "dynamodb_endpoint")
    return {name: one.settings.get(name, "") for name in names}


def _list(branch: _Branch, table: str | None) -> list[TableStack]:
    found = [one for one in find_table_stacks(branch.repository) if one.has_table]
    return found if table is None else [one for one in found if one.table == table]


def _replace(path: Path, data: bytes) -> None:
    files.replace_file(path, data, mode=path.stat().st_mode & 0o777)


def _relative(branch: _Branch, path: Path) -> str:
    return os.path.relpath(path, branch.repository.root)


def _document(branch: _Branch, one: TableStack, proof: LockProof) -> dict[str, Any]:
    return {
        "stack": one.stack.name,
        "table": one.table or None,
        "file": None if one.table_file is None else _relative(branch, one.table_file),
        "has_lockfile": one.has_lockfile,
        "status": proof.status.value,
        "details": list(proof.details),
        "versions": proof.versions,
    }


def _edited(changed: list[str], title: str, nothing: str) -> Result:
    def show(writer: TextWriter) -> None:
        for path in changed:
            writer.line(f"{title}{path}")
        writer.line("Commit and merge this, and update every client." if changed else nothing)

    return Result(document={"changed": changed}, show=show)


def _show(writer: TextWriter, proofs: list[tuple[TableStack, LockProof]]) -> None:
    if not proofs:
        writer.line("No stack names a lock table.")
    for one, proof in proofs:
        colour = "green" if proof.status is ProofStatus.PROVEN else "yellow"
        writer.line(
            f"{one.stack.name}: {proof.status} (table {one.table or 'named by an expression'})", style=colour
        )
        for detail in proof.details:
            writer.line(f"  {detail}")
