"""Logins at identity providers: `/access/openid`. What needs such a provider is not in the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["list_openid"]


@route("GET /access/openid")
def list_openid(_call: Call) -> Any:
    """List what there is of it."""
    return [{"subdir": "auth-url"}, {"subdir": "login"}]
