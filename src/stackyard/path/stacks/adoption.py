"""Moving the state of a stack into our store, and back beside its code: each step can be repeated."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.errors import InvalidInputError
from stackyard.engine.statefile import read_snapshot
from stackyard.path.stacks.backend import BackendKind
from stackyard.sources.stacks.backend_block import write_backend

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.path.stacks.run import StackRun

__all__ = ["MovedState", "OtherStateError", "adopt_state", "leave_store"]

_OURS = 'backend "http" {}'
_STATE_FILE = "terraform.tfstate"
_KEPT = ".before-stackyard"


class OtherStateError(InvalidInputError):
    """Where the state of a stack is to go, there is another one, or a newer one."""

    code = "E-STACK-OTHER-STATE"
    summary = "There is another state where this one is to go"
    default_remedy = "Compare the two; `stackyard state show` shows the one in the store."


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedState:
    """Where the state of a stack went.

    Attributes:
        resources: How many resources it has; None where there was no state yet.
        before: Where it was.
        now: Where it is.
        changed: The file whose backend block was changed.
        kept: The copy that stays where it was, out of the engine's way.
    """

    resources: int | None
    before: str
    now: str
    changed: Path
    kept: str = ""


async def adopt_state(run: StackRun) -> MovedState:
    """Move the state of a stack into our store, and make its code name that.

    Args:
        run: The stack, locked.

    Raises:
        OtherStateError: Our store has another state of this stack.
        BackendEditError: The backend cannot be changed automatically; the state is stored, and can be again.
        StoreError: The state cannot be stored; nothing was changed.
    """
    backend, stack = run.resolved.backend, run.resolved.stack
    data = await run.read_state()
    if data is not None and run.lock is not None and backend.kind is not BackendKind.STORE:
        stored = await asyncio.to_thread(backend.read_store, run.states, run.resolved.target.state_name)
        if stored != data:
            _require_older(stored, data)
            await asyncio.to_thread(run.lock.store, data)
    changed = write_backend(stack.folder, _OURS)
    kept = backend.label
    path = backend.path or _find_leftover(stack.folder, data)
    if path is not None and path.exists():
        # The engine would offer to copy it, and a person might take it for the state.
        aside = path.with_name(path.name + _KEPT)
        os.replace(path, aside)
        kept = str(aside)
    return MovedState(
        resources=None if data is None else read_snapshot(data).resources,
        before=run.settings.store.label if backend.kind is BackendKind.STORE else backend.label,
        now=run.settings.store.label,
        changed=changed,
        kept="" if data is None else kept,
    )


async def leave_store(run: StackRun) -> MovedState:
    """Write the state of a stack beside its code, and make its code name no backend.

    Args:
        run: The stack, locked.

    Raises:
        OtherStateError: There is another state beside the code.
        BackendEditError: The backend cannot be changed automatically.
        FileError: The state cannot be written; nothing was changed.
    """
    stack, data = run.resolved.stack, await run.read_state()
    path = stack.folder / _STATE_FILE
    if data is not None:
        present = path.read_bytes() if path.exists() else None
        if present != data:
            _require_older(present, data)
            files.replace_file(path, data)
    changed = write_backend(stack.folder, "")
    return MovedState(
        resources=None if data is None else read_snapshot(data).resources,
        before=run.settings.store.label,
        now=str(path),
        changed=changed,
        kept=run.settings.store.label,
    )


def _find_leftover(folder: Path, stored: bytes | None) -> Path | None:
    """Return the file of a stack that was moved before, by a run that was killed before it put it aside."""
    path = folder / _STATE_FILE
    if stored is None or not path.is_file():
        return None
    try:
        left, now = read_snapshot(path.read_bytes()), read_snapshot(stored)
    except ValueError:
        return None
    return path if left.lineage == now.lineage and left.serial <= now.serial else None


def _require_older(present: bytes | None, new: bytes) -> None:
    """Refuse to replace a state that is not an earlier version of the new one."""
    if not present:
        return
    there, coming = read_snapshot(present), read_snapshot(new)
    if there.lineage != coming.lineage or there.serial > coming.serial:
        raise OtherStateError(
            f"The state there has lineage {there.lineage} and serial {there.serial}; this one has lineage "
            f"{coming.lineage} and serial {coming.serial}."
        )
