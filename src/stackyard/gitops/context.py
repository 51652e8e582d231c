"""What work on pull requests needs from whoever starts it: a forge, git, the store, credentials."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackyard.base import events
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.base.files import read_text
from stackyard.gitops.model import Credentials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stackyard.base.events import Emit
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.checkout import Checkouts
    from stackyard.sources.store import ChosenStore

__all__ = [
    "CredentialFiles",
    "CredentialSource",
    "CredentialsFileError",
    "GitopsContext",
    "OwnEnvironment",
]

_LINE_COMMENT = "#"
# What only the machinery around needs.
_OURS = ("STACKYARD_FORGE_", "STACKYARD_GITOPS_")
# By these a job of a CI gets at its forge: no run of a target needs them.
_OF_FORGES = frozenset(
    "GITHUB_TOKEN GH_TOKEN GITEA_TOKEN FORGEJO_TOKEN CI_JOB_TOKEN GITLAB_TOKEN ACTIONS_RUNTIME_TOKEN "
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL".split()
)


class CredentialsFileError(InvalidInputError):
    """A file with credentials of targets cannot be used."""

    code = "E-GITOPS-CREDENTIALS"
    summary = "A file with credentials cannot be used"
    default_remedy = "Write one NAME=VALUE on each line, and keep the file from others: chmod 600 FILE."


class CredentialSource(Protocol):
    """Where the variables come from that a run of a target needs to log in."""

    def environment(self, target: str, which: Credentials) -> Mapping[str, str]:
        """Return the variables for a run of a target; none for those of forks."""
        ...


@dataclass(frozen=True, slots=True)
class OwnEnvironment:
    """The variables that we were started with, as a job of a CI is, but for the token of the forge."""

    def environment(self, target: str, which: Credentials) -> Mapping[str, str]:
        """Return ours, but those of the forge; nothing without credentials."""
        del target
        if which is Credentials.NONE:
            return {}
        return {
            name: value
            for name, value in os.environ.items()
            if name not in _OF_FORGES and not name.startswith(_OURS)
        }


@dataclass(frozen=True, slots=True)
class CredentialFiles:
    """A folder with files of `NAME=VALUE` lines: `plan.env` and `apply.env` for all, `KIND/NAME/plan.env`.

    The file of a target is in a folder of its kind and name (`stack/onprem/web/apply.env`), and wins.
    """

    folder: Path

    def environment(self, target: str, which: Credentials) -> Mapping[str, str]:
        """Return the variables for a run of a target.

        Raises:
            CredentialsFileError: A file is not one of these, or others can read it.
            FileError: A file cannot be read.
        """
        if which is Credentials.NONE:
            return {}
        own = self.folder.joinpath(*target.replace(":", "/").split("/"))
        found: dict[str, str] = {}
        for folder in (self.folder, own):
            path = folder / f"{which.value}.env"
            if path.is_file():
                found.update(_read(path))
        return found


def _read(path: Path) -> Iterator[tuple[str, str]]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    if mode & 0o077:
        raise CredentialsFileError(f"Other users can read {path}.", where=Location(str(path)))
    for number, line in enumerate(read_text(path).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(_LINE_COMMENT):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not name.isascii():
            raise CredentialsFileError(
                f"Line {number} of {path} is not NAME=VALUE.", where=Location(str(path), number)
            )
        yield name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsContext:
    """What work on the pull requests of one repository needs.

    Attributes:
        forge: The repository on its forge.
        checkouts: Its commits.
        store: Where runs keep their states, and where the records of pull requests are.
        credentials: What runs of targets log in with.
        emit: Told of what happens.
        at_once: How many runs are done at the same time.
        link: Where a person finds the whole of a plan, with `{number}`; empty where there is no page.
    """

    forge: Forge
    checkouts: Checkouts
    store: ChosenStore
    credentials: CredentialSource = field(default_factory=OwnEnvironment)
    emit: Emit = events.ignore
    at_once: int = 4
    link: str = ""
