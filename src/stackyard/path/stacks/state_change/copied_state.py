"""A private copy of the state of a stack, and a run whose engine works on that copy and never on the state.

The verbs on the state take the copy by an option of the engine (`-state`), and so does the plan of a local
state. For any other backend the engine gets a work folder of its own whose record names a local file as the
backend. Before anything is changed, the engine has to show that it reads the copy: the copy has a lineage
that no other state has.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from stackyard.base import files
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.engine import statefile
from stackyard.engine.version import EngineBrokenError
from stackyard.path.stacks.backend import DEFAULT_WORKSPACE, Backend, BackendKind
from stackyard.path.stacks.state_change.content import read_plain
from stackyard.state.document import with_serial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.path.stacks.run import StackRun

__all__ = ["CopiedState", "open_copy"]

_PREFIX = "state-copy-"
_RECORD = "terraform.tfstate"
_EMPTY = {"version": 4, "terraform_version": "1.0.0", "serial": 0, "outputs": {}, "resources": []}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedState:
    """A copy of a state.

    Attributes:
        run: A run whose engine works on the copy.
        path: The copy.
        is_redirected: Whether the work folder of the engine leads to it.
        token: The lineage of the copy.
        lineage: The lineage of the state.
        serial: The serial of the state.
    """

    run: StackRun
    path: Path
    is_redirected: bool
    token: str
    lineage: str
    serial: int

    def write(self, data: bytes) -> None:
        """Put another content into the copy."""
        files.replace_file(self.path, with_serial(data, self.serial, self.token))

    def read(self) -> bytes:
        """Return the copy as the next version of the state.

        Raises:
            EngineBrokenError: The engine wrote something else.
        """
        data = self.path.read_bytes()
        if read_plain(data).lineage != self.token:
            raise EngineBrokenError("The engine wrote another state into the copy.")
        return with_serial(data, self.serial + 1, self.lineage)


@contextlib.asynccontextmanager
async def open_copy(run: StackRun, data: bytes | None) -> AsyncIterator[CopiedState]:
    """Copy a state for the length of the block.

    Args:
        run: The stack.
        data: Its state; None where there is none yet.

    Raises:
        EncryptedCopyError: The engine encrypts the state.
        EngineBrokenError: The engine does not use the copy.
        FileError: The copy cannot be written.
    """
    token = f"copy-{uuid.uuid4()}"
    if data is None:
        lineage, serial = str(uuid.uuid4()), 0
        data = orjson.dumps({**_EMPTY, "lineage": lineage})
    else:
        found = read_plain(data)
        lineage, serial = found.lineage, found.serial
    above = run.workdir.data_folder
    _remove_leftovers(above)
    # Beside the engine's own files, which hold secrets too: only their owner can read that folder.
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", dir=above) as folder:
        copy = _make_copy(run, Path(folder), token, lineage, serial)
        copy.write(data)
        if copy.is_redirected:
            pulled = await statefile.state_pull(copy.run.workdir)
            if pulled is None or pulled.lineage != token:
                raise EngineBrokenError(
                    "The engine does not read the copy of the state; nothing was changed."
                )
        yield copy


def _make_copy(run: StackRun, folder: Path, token: str, lineage: str, serial: int) -> CopiedState:
    resolved, workdir = run.resolved, run.workdir
    path, arguments = folder / "copy.tfstate", resolved.arguments
    is_redirected = resolved.backend.kind is not BackendKind.LOCAL
    if not is_redirected:
        arguments = replace(arguments, words=(*arguments.words, f"-state={path}"))
    else:
        data_dir = folder / "data"
        _redirect(workdir.data_folder, data_dir, path, folder / "workspaces")
        workdir = replace(workdir, data_dir=data_dir)
        if resolved.workspace != DEFAULT_WORKSPACE and resolved.backend.kind is BackendKind.OTHER:
            path = folder / "workspaces" / resolved.workspace / _RECORD
            path.parent.mkdir(parents=True)
    backend = Backend(kind=BackendKind.LOCAL, type="local", label="a copy of the state", path=path)
    copied = replace(resolved, backend=backend, arguments=arguments)
    own = replace(run, resolved=copied, workdir=workdir, lock=None)
    return CopiedState(
        run=own, path=path, is_redirected=is_redirected, token=token, lineage=lineage, serial=serial
    )


def _redirect(original: Path, data_dir: Path, path: Path, workspaces: Path) -> None:
    """Make a work folder with everything of the original, and a record that names a file as the backend."""
    try:
        record = parse_json((original / _RECORD).read_bytes())
        record["backend"] |= {
            "type": "local",
            "config": {"path": str(path), "workspace_dir": str(workspaces)},
        }
    except (OSError, JsonError, KeyError, TypeError) as err:
        raise EngineBrokenError(f"{original} has no record of the backend that is known here.") from err
    data_dir.mkdir()
    for one in original.iterdir():
        if one.name != _RECORD and not one.name.startswith(_PREFIX):
            (data_dir / one.name).symlink_to(one)
    files.replace_file(data_dir / _RECORD, orjson.dumps(record))


def _remove_leftovers(folder: Path) -> None:
    """Remove the copies of runs that were killed."""
    for one in folder.glob(f"{_PREFIX}*"):
        number = one.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdigit() and not Path("/proc", number).exists():
            shutil.rmtree(one, ignore_errors=True)
