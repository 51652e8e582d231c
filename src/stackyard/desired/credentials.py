"""API tokens and passwords of a cluster: what no state may hold, so that they are made outside the engine."""

from __future__ import annotations

from stackyard.desired.secret import Secret
from stackyard.desired.values import Line, Many, Value

__all__ = ["ApiToken", "Credentials", "TokenGrant", "UserPassword"]


class ApiToken(Value):
    """A token of a user.

    Attributes:
        id: `USER@REALM!NAME`.
        comment: Says what it is for.
        expires: When it ends, in seconds since 1970; 0 is never.
        separates: Whether it has privileges of its own, and not those of its user.
        store: What the secrets of the site keep it as, below `api_tokens`.
    """

    id: Line
    comment: str = ""
    expires: int = 0
    separates: bool = True
    store: Line

    @property
    def user(self) -> str:
        """Whose it is."""
        return self.id.partition("!")[0]

    @property
    def name(self) -> str:
        """Its name among the tokens of its user."""
        return self.id.partition("!")[2]


class UserPassword(Value):
    """The password of a user.

    Attributes:
        user: Whose it is.
        name: The name of the secret. A `Secret` would become a variable of the engine, which plans save.
    """

    user: Line
    name: Line

    @property
    def secret(self) -> Secret:
        """The secret, to be revealed."""
        return Secret(secret=self.name)


class TokenGrant(Value):
    """A role of a token on a path."""

    token: Line
    path: Line
    role: Line
    propagate: bool = True


class Credentials(Value):
    """The tokens and passwords of a cluster, and the roles of its tokens."""

    tokens: Many[ApiToken] = ()
    passwords: Many[UserPassword] = ()
    grants: Many[TokenGrant] = ()
