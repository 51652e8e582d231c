"""What there is under `/access`, and the second factors, of which the lab has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["list_second_factors", "read_second_factor", "show_access"]


@route("GET /access")
def show_access(_call: Call) -> Any:
    """List the folders."""
    names = ("users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "password")
    return [{"subdir": name} for name in names]


@route("GET /access/tfa", "GET /access/tfa/{userid}")
def list_second_factors(_call: Call) -> Any:
    """List the second factors of users: nobody can add one here."""
    return []


@route("GET /access/tfa/{userid}/{id}")
def read_second_factor(call: Call) -> Any:
    """Refuse: there is none."""
    raise PveError(f"No such tfa entry '{call.params['id']}'", status=404)
