"""Opening a forge by its kind; only the adapter that is used is loaded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.clients.forge.failures import ForgeRefusedError
from stackyard.clients.forge.model import ForgeKind

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.forge.protocol import Forge
    from stackyard.clients.forge.transport import Patience

__all__ = ["open_forge"]

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"
_REPOSITORY = re.compile(rf"{_PART}(/{_PART})+")


def open_forge(
    kind: ForgeKind,
    url: str,
    repository: str,
    token: str,
    *,
    ca: Path | None = None,
    patience: Patience | None = None,
) -> Forge:
    """Return a repository on a forge, to be used in an `async with` block.

    Args:
        kind: Which forge it is.
        url: The address of the forge: `https://git.example.org`.
        repository: `owner/name`; on GitLab with all its groups.
        token: What the forge gave for a user or a bot.
        ca: A file with certificates that the forge may be signed by, besides those of the system.
        patience: How long to wait.

    Raises:
        ForgeRefusedError: The address or the name of the repository is none, or the token is empty.
    """
    is_deep = kind is ForgeKind.GITLAB
    if not _REPOSITORY.fullmatch(repository) or (repository.count("/") > 1 and not is_deep):
        raise ForgeRefusedError(
            "The name of the repository is none.", remedy="Write it as OWNER/NAME, without the address."
        )
    if not token.strip() or not token.isascii() or not token.isprintable():
        raise ForgeRefusedError(
            "The token of the forge is empty, or has characters that no token has.",
            remedy="Set the token again: one line, as the forge showed it.",
        )
    if kind is ForgeKind.GITEA:
        from stackyard.clients.forge.gitea.adapter import GiteaForge  # lazy: one forge is used

        return GiteaForge(url, repository, token, ca=ca, patience=patience)
    if kind is ForgeKind.GITHUB:
        from stackyard.clients.forge.github.adapter import GithubForge  # lazy: one forge is used

        return GithubForge(url, repository, token, ca=ca, patience=patience)
    from stackyard.clients.forge.gitlab.adapter import GitlabForge  # lazy: one forge is used

    return GitlabForge(url, repository, token, ca=ca, patience=patience)
