"""Where the secrets of tokens are kept: the secrets of a site, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackyard.secrets import SecretsKind, read_secrets
from stackyard.sources.site.connected_site import require_encrypted
from stackyard.sources.site.edit import put_api_token, remove_api_token
from stackyard.sources.site.secret_values import find_secrets_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["SiteTokens", "TokenStore"]


class TokenStore(Protocol):
    """Keeps tokens with their secrets, each under a name."""

    def read(self) -> Mapping[str, str]:
        """Return the tokens that are kept, by their names there."""
        ...

    def put(self, name: str, token: str) -> None:
        """Keep a token; it is kept for good when this returns."""
        ...

    def remove(self, name: str, token_id: str) -> None:
        """Keep a token no longer, if it is still this one."""
        ...

    def require_safe(self) -> None:
        """Refuse to keep tokens where they would not be encrypted."""
        ...

    def list_users(self, name: str) -> tuple[str, ...]:
        """Return the nodes of the site that use the token under a name."""
        ...


@dataclass(frozen=True, slots=True)
class SiteTokens:
    """The secrets of a site.

    Attributes:
        root: The folder of the site.
        nodes: What each node of the site calls its token.
    """

    root: Path
    nodes: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> Mapping[str, str]:
        """Return the tokens that are kept, by their names there.

        Raises:
            StackyardError: The secrets cannot be opened.
        """
        secrets = read_secrets(find_secrets_file(self.root))
        kept = secrets.data.get("api_tokens")
        return {str(name): str(text) for name, text in kept.items()} if isinstance(kept, dict) else {}

    def put(self, name: str, token: str) -> None:
        """Keep a token, encrypted as the file is.

        Raises:
            StackyardError: The secrets cannot be opened or written.
        """
        put_api_token(self.root, name, token)

    def remove(self, name: str, token_id: str) -> None:
        """Keep a token no longer, if it is still this one.

        Raises:
            StackyardError: The secrets cannot be opened or written.
        """
        if self.read().get(name, "").partition("=")[0] == token_id:
            remove_api_token(self.root, name)

    def require_safe(self) -> None:
        """Refuse to keep tokens where they would not be encrypted.

        Raises:
            PlainSecretsError: The secrets are not encrypted.
            FileError: They cannot be written.
        """
        path = find_secrets_file(self.root)
        require_encrypted(self.root, path, read_secrets(path).kind is SecretsKind.PLAIN)

    def list_users(self, name: str) -> tuple[str, ...]:
        """Return the nodes of the site that use the token under a name."""
        return tuple(sorted(node for node, used in self.nodes.items() if used == name))
