"""Roles: `/access/roles`. Those that Proxmox ships cannot be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.access.user_file import drop_role_from_acl, lock_user_file
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.access.roles import BUILTIN_ROLES, PRIVILEGES

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_role", "delete_role", "list_roles", "read_role", "update_role"]


@route("GET /access/roles")
def list_roles(call: Call) -> Any:
    """List all roles with their privileges."""
    shipped = [(name, privileges, 1) for name, privileges in BUILTIN_ROLES.items()]
    own = [(name, frozenset(role["privs"]), 0) for name, role in call.store.items("roles").items()]
    return [
        {"roleid": name, "privs": ",".join(sorted(privileges)), "special": special}
        for name, privileges, special in (*shipped, *own)
    ]


@route("GET /access/roles/{roleid}")
def read_role(call: Call) -> Any:
    """Answer the privileges of a role."""
    roleid = call.params["roleid"]
    privileges = call.world.permissions.directory.role(roleid)
    if privileges is None:
        raise PveError(f"role '{roleid}' does not exist")
    return dict.fromkeys(sorted(privileges), 1)


@route("POST /access/roles")
def create_role(call: Call) -> None:
    """Add a role."""
    roleid, privileges = call.params["roleid"], _read_privileges(call)
    if roleid.lower().startswith("pve"):
        text = "cannot use role ID starting with the (case-insensitive) 'PVE' namespace"
        raise bad_parameter("roleid", text)
    with lock_user_file(call, "create role failed"):
        if call.world.permissions.directory.role(roleid) is not None:
            raise PveError(f"role '{roleid}' already exists")
        call.store.put("roles", roleid, {"privs": sorted(privileges)})


@route("PUT /access/roles/{roleid}")
def update_role(call: Call) -> None:
    """Replace the privileges of a role, or add to them with `append`."""
    roleid, privileges = call.params["roleid"], _read_privileges(call)
    _refuse_shipped(roleid, "modified")
    with lock_user_file(call, "update role failed"):
        known = _require(call, roleid)
        kept = known if call.params.get("append") else set()
        call.store.put("roles", roleid, {"privs": sorted(kept | privileges)})


@route("DELETE /access/roles/{roleid}")
def delete_role(call: Call) -> None:
    """Remove a role, from ACLs too."""
    roleid = call.params["roleid"]
    _refuse_shipped(roleid, "deleted")
    with lock_user_file(call, "delete role failed"):
        _require(call, roleid)
        call.store.delete("roles", roleid)
        drop_role_from_acl(call.store, roleid)


def _read_privileges(call: Call) -> set[str]:
    privileges = set(split_list(call.params.get("privs", "")))
    for name in sorted(privileges - PRIVILEGES):
        raise bad_parameter("privs", f"invalid format - invalid privilege '{name}'\n")
    return privileges


def _refuse_shipped(roleid: str, done: str) -> None:
    if roleid in BUILTIN_ROLES:
        raise PveError(f"auto-generated role '{roleid}' cannot be {done}")


def _require(call: Call, roleid: str) -> set[str]:
    found = call.store.get("roles", roleid)
    if found is None:
        raise PveError(f"role '{roleid}' does not exist")
    return set(found["privs"])
