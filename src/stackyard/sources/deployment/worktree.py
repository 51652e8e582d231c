"""The working tree beside the object: what must not be in it.

`deployment.json` never belongs in git: a copy there drifts from the object. `terraform.tfvars` and
`*.auto.tfvars` never belong beside the object: by their precedence they would silently override what it says.
In other folders, such as those of stacks and of a cluster, they belong to others.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.clients import git
from stackyard.clients.git.hook import upgrade_hook

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.sources.deployment.settings import ObjectLocation

__all__ = ["HOOK_CHECK", "TrackedObjectError", "VariablesFileError", "require_clean"]

_OBJECT_FILE = "deployment.json"
# What engines read from the folder that they work in, without being asked to.
_VARIABLES_FILES = ("terraform.tfvars", "terraform.tfvars.json", "*.auto.tfvars", "*.auto.tfvars.json")
# What git is to run before each commit.
HOOK_CHECK = "deployment hook"


class TrackedObjectError(InvalidInputError):
    """A `deployment.json` is tracked or staged in git, where it would drift from the object in the store."""

    code = "E-DEPLOYMENT-TRACKED"
    summary = "A deployment.json is in git"
    default_remedy = "Take it out: git rm --cached FILE; keep a deployment.json.example to show the shape."


class VariablesFileError(InvalidInputError):
    """A `terraform.tfvars` or `*.auto.tfvars` is beside the object; it would silently override the object."""

    code = "E-DEPLOYMENT-TFVARS"
    summary = "There is a file of variables beside the deployment object"
    default_remedy = "Put what is in it into the object, and delete it."


async def require_clean(place: ObjectLocation) -> None:
    """Refuse a working tree that holds what must not be in it.

    Raises:
        TrackedObjectError: A `deployment.json` is tracked or staged.
        VariablesFileError: A `terraform.tfvars` or `*.auto.tfvars` is beside the object.
        GitError: git cannot be asked.
    """
    _require_no_variables(place.root)
    repository = await git.find_repository(place.root)
    if repository is None:
        return
    upgrade_hook(repository)
    tracked = [entry.path for entry in await repository.index() if _name(entry.path) == _OBJECT_FILE]
    if tracked:
        raise TrackedObjectError(
            f"git tracks {', '.join(tracked)} in {repository.root}.",
            where=Location(str(repository.root / tracked[0])),
            remedy=f"Take it out: git rm --cached {shlex.join(tracked)}; keep a deployment.json.example.",
        )


def _require_no_variables(root: Path) -> None:
    found = sorted({path.name for pattern in _VARIABLES_FILES for path in root.glob(pattern)})
    if found:
        raise VariablesFileError(
            f"{', '.join(found)} is in {root}: by its precedence it would override the object.",
            where=Location(str(root / found[0])),
        )


def _name(path: str) -> str:
    return PurePosixPath(path).name
