"""Where the state of a stack is: in our store, in a file beside its code, or with a backend of its own."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.engine import statefile
from stackyard.sources.stacks.backend_secrets import without_login
from stackyard.state import StateDeletedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.engine.workdir import Workdir
    from stackyard.sources.stacks.facts import StackFacts
    from stackyard.sources.stacks.model import Stack
    from stackyard.state import StateService

__all__ = ["DEFAULT_WORKSPACE", "Backend", "BackendKind", "WorkspaceError", "find_backend"]

DEFAULT_WORKSPACE = "default"
# Where it is set, an empty `backend "http" {}` is the user's own.
_OWN_HTTP = "TF_HTTP_ADDRESS"
_STATE_FILE = "terraform.tfstate"
_WORKSPACES_FOLDER = "terraform.tfstate.d"


class WorkspaceError(InvalidInputError):
    """A workspace is named, and the code of the stack would not see it."""

    code = "E-STACK-WORKSPACE"
    summary = "The stack cannot be used with a workspace"
    default_remedy = 'Declare `variable "workspace" {}` and use it in place of terraform.workspace.'


class BackendKind(enum.StrEnum):
    """Who keeps a state."""

    STORE = "store"
    LOCAL = "local"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Where the state of a stack is.

    Attributes:
        kind: Who keeps it.
        type: The type of the backend, as the code says it.
        label: Where it is, for a person.
        path: The file, for a local one.
    """

    kind: BackendKind
    type: str
    label: str
    path: Path | None = None

    async def read(self, states: StateService, state_name: str, workdir: Workdir) -> bytes | None:
        """Return the state as the engine wrote it; None where there is none yet.

        Raises:
            StoreError: The store cannot say.
            FileError: The file cannot be read.
            TofuError: The backend cannot be asked.
        """
        if self.kind is BackendKind.STORE:
            return self.read_store(states, state_name)
        if self.path is not None:
            return self.read_file()
        found = await statefile.state_pull(workdir)
        return None if found is None else found.data

    def read_store(self, states: StateService, state_name: str) -> bytes | None:
        """Return a state of our store; None where there is none yet.

        Raises:
            StoreError: The store cannot say.
        """
        try:
            content = states.contents.read(state_name)
        except StateDeletedError:
            return None
        return None if content is None else content.body.data

    def read_file(self) -> bytes | None:
        """Return a state beside the code; None where there is none yet.

        Raises:
            FileError: The file cannot be read.
        """
        return None if self.path is None else _read_file(self.path)


def find_backend(stack: Stack, facts: StackFacts, workspace: str, environment: Mapping[str, str]) -> Backend:
    """Return where the state of a stack is.

    Args:
        stack: The stack.
        facts: What its code says.
        workspace: The workspace.
        environment: The environment of the engine.
    """
    found = facts.backend
    if found is None or found.type == "local":
        settings = {} if found is None else dict(found.settings)
        path = _local_path(stack, settings, workspace)
        return Backend(kind=BackendKind.LOCAL, type="local", label=str(path), path=path)
    if found.type == "http" and not found.settings and not stack.settings.backend_config:
        if _OWN_HTTP not in environment:
            return Backend(kind=BackendKind.STORE, type="http", label="the store of stackyard")
        return Backend(kind=BackendKind.OTHER, type="http", label=without_login(environment[_OWN_HTTP]))
    words = [
        without_login(str(found.settings[name]))
        for name in ("bucket", "address", "key")
        if name in found.settings
    ]
    return Backend(kind=BackendKind.OTHER, type=found.type, label="/".join((found.type, *words)))


def _local_path(stack: Stack, settings: Mapping[str, str], workspace: str) -> Path:
    if workspace != DEFAULT_WORKSPACE:
        folder = settings.get("workspace_dir", _WORKSPACES_FOLDER)
        return Path(os.path.normpath(stack.folder / folder / workspace / _STATE_FILE))
    return Path(os.path.normpath(stack.folder / settings.get("path", _STATE_FILE)))


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes() or None
    except FileNotFoundError:
        return None
    except OSError as err:
        raise FileError.from_os_error(err, "read the state", path) from err


def refuse_unseen_workspace(stack: Stack, folders: tuple[Path, ...]) -> None:
    """Refuse a workspace in our store for code that asks for its name: that backend knows no workspaces.

    Args:
        stack: The stack.
        folders: Its own folder, and those of its local modules.

    Raises:
        WorkspaceError: The code would get `default`.
    """
    for folder in folders:
        for path in sorted((*folder.glob("*.tf"), *folder.glob("*.tofu"))):
            lines = path.read_text(errors="replace").splitlines()
            for number, line in enumerate(lines, 1):
                if "terraform.workspace" in line.partition("#")[0]:
                    raise WorkspaceError(
                        f"The http backend knows no workspaces, so that terraform.workspace is always "
                        f"`{DEFAULT_WORKSPACE}` in {stack.name}.",
                        where=Location(str(path), line=number),
                    )
