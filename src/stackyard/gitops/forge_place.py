"""Which repository on which forge is meant: what is said, else what the CI around says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.clients.forge.model import ForgeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TOKEN_VARIABLE", "ForgePlace", "find_place", "read_token"]

TOKEN_VARIABLE = "STACKYARD_FORGE_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgePlace:
    """A repository on a forge.

    Attributes:
        kind: Which forge it is.
        url: Its address.
        repository: `owner/name`.
    """

    kind: ForgeKind
    url: str
    repository: str


def find_place(
    kind: str | None, url: str | None, repository: str | None, session: Mapping[str, str] | None = None
) -> ForgePlace:
    """Return the repository that is meant.

    Args:
        kind: The kind of the forge, where it is said.
        url: Its address, where it is said.
        repository: The repository, where it is said.
        session: The variables of the environment; ours when absent.

    Raises:
        UsageError: Neither the options nor a CI say it.
    """
    around = _read_ci(os.environ if session is None else session)
    kind = kind or around.get("kind")
    url, repository = url or around.get("url"), repository or around.get("repository")
    if not kind or not url or not repository:
        missing = [
            name
            for name, said in (("--forge", kind), ("--url", url), ("--repository", repository))
            if not said
        ]
        raise UsageError(
            f"Which repository on which forge? Missing: {', '.join(missing)}.",
            remedy="Give --forge, --url and --repository, or run it in a job of the forge's CI.",
        )
    return ForgePlace(kind=ForgeKind(kind), url=url, repository=repository)


def _read_ci(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the variables of a job say; Gitea has those of GitHub too."""
    if variables.get("GITLAB_CI"):
        return {
            "kind": ForgeKind.GITLAB.value,
            "url": variables.get("CI_SERVER_URL", ""),
            "repository": variables.get("CI_PROJECT_PATH", ""),
        }
    if variables.get("GITHUB_ACTIONS"):
        is_gitea = any(variables.get(name) for name in ("GITEA_ACTIONS", "FORGEJO_ACTIONS"))
        return {
            "kind": (ForgeKind.GITEA if is_gitea else ForgeKind.GITHUB).value,
            "url": variables.get("GITHUB_SERVER_URL", ""),
            "repository": variables.get("GITHUB_REPOSITORY", ""),
        }
    return {}


def read_token(session: Mapping[str, str] | None = None) -> str:
    """Return the token of the forge, which is only ever in the environment.

    Raises:
        UsageError: There is none.
    """
    token = (os.environ if session is None else session).get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise UsageError(
            f"{TOKEN_VARIABLE} is not set.", remedy="Set it to the token of a user or a bot of the forge."
        )
    return token
