"""What there is under `/access`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["show_access"]


@route("GET /access")
def show_access(_call: Call) -> Any:
    """List the folders."""
    names = ("users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "password")
    return [{"subdir": name} for name in names]
