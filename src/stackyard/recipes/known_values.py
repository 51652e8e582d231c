"""Values of sensitive variables that need no question: what the user has, or what can be made."""

from __future__ import annotations

import secrets

from stackyard.clients.ssh.user_keys import user_public_keys
from stackyard.recipes.hcl_edit import quote

__all__ = ["is_given", "known_value"]

_PASSWORD_BYTES = 18
# The role of guests that name no other one.
_ROLE = "default_user"
_USER = "ops"
# Variables of the recipes that get the output of another stack, which stack.yaml names.
_GIVEN = frozenset(("kubernetes",))


def is_given(variable: str) -> bool:
    """Return whether another stack gives the value of a variable of the recipes."""
    return variable in _GIVEN


def known_value(variable: str, kind: str | None) -> str | None:
    """Return the value of a variable of the recipes, as HCL; None where only the user knows it.

    Args:
        variable: Its name.
        kind: Its type, as it is written: a stack of the user may have another one under that name.
    """
    if variable != "user_credentials" or "username = string" not in (kind or ""):
        return None
    keys = ", ".join(quote(text) for _, text in user_public_keys())
    fields = (
        ("username", quote(_USER)),
        ("password", quote(secrets.token_urlsafe(_PASSWORD_BYTES))),
        ("ssh_keys", f"[{keys}]"),
    )
    body = "\n".join(f"    {name} = {value}" for name, value in fields)
    return f"{{\n  {_ROLE} = {{\n{body}\n  }}\n}}"
