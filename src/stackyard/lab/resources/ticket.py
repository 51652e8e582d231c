"""Logging in, and asking what one may do: `/access/ticket`, `/access/permissions`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.access.directory import ROOT, split_token
from stackyard.lab.access.permissions import normalize_path
from stackyard.lab.access.tickets import password_fits
from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call

__all__ = ["create_ticket", "read_permissions", "ticket_page"]

_CAPABILITIES: Mapping[str, str] = {
    "vms": r"VM\.|Permissions\.Modify",
    "access": r"(?:User|Group)\.|Permissions\.Modify",
    "storage": r"Datastore\.|Permissions\.Modify",
    "nodes": r"Sys\.|Permissions\.Modify",
    "sdn": r"SDN\.|Permissions\.Modify",
    "dc": r"Sys\.Audit|Sys\.Modify|SDN\.",
    "mapping": r"Mapping\.|Permissions\.Modify",
}
_TOP_PATHS = ("/", "/nodes", "/access/groups", "/vms", "/storage", "/sdn", "/mapping")
_SHOWN_PATHS = ("/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")


@route("GET /access/ticket")
def ticket_page(_call: Call) -> Any:
    """Answer nothing: Proxmox keeps this for pages that log in by a form."""
    return None


@route("POST /access/ticket")
def create_ticket(call: Call) -> Any:
    """Log in with a password, or with a ticket that is still good; or only ask about a privilege."""
    params = call.params
    userid = params["username"]
    if params.get("realm"):
        userid = f"{userid}@{params['realm']}"
    asks = bool(params.get("path") and params.get("privs"))
    try:
        call.world.permissions.directory.enabled_user(userid)
        # root@pam can make tickets for others with its own.
        _authenticate(call, userid, params["password"], helpers=() if asks else (ROOT,))
        if asks:
            path = normalize_path(params["path"]) or ""
            call.world.permissions.check(userid, path, split_list(params["privs"]))
    except PveError as err:
        # Proxmox tells no reason, so that nobody learns which users there are.
        raise PveError("authentication failure", status=401) from err
    answer: dict[str, Any] = {"username": userid, "cap": _capabilities(call, userid)}
    if not asks:
        answer["ticket"] = call.world.tickets.issue(userid)
        answer["CSRFPreventionToken"] = call.world.tickets.csrf_token(userid)
    if len(call.world.cluster.nodes()) > 1 and call.world.permissions.has(userid, "/", ["Sys.Audit"]):
        answer["clustername"] = call.world.cluster.name
    return answer


@route("GET /access/permissions")
def read_permissions(call: Call) -> Any:
    """Answer the effective privileges of the caller, or of another user to who may see that."""
    userid = call.params.get("userid", call.authid)
    if call.authid not in (userid, split_token(userid)[0]):
        call.check("/access", "Sys.Audit")
    permissions = call.world.permissions
    if call.params.get("path"):
        return {call.params["path"]: dict(permissions.of(userid, call.params["path"]))}
    paths = {*_SHOWN_PATHS, *permissions.directory.acl_paths()}
    paths |= {path for _, path in permissions.directory.pools()}
    found = {path: dict(permissions.of(userid, path)) for path in sorted(paths)}
    return {path: granted for path, granted in found.items() if granted}


def _authenticate(call: Call, userid: str, password: str, helpers: tuple[str, ...]) -> None:
    if password.startswith("PVE:"):
        if call.world.tickets.user_of(password) not in (userid, *helpers):
            raise PveError("permission denied - invalid PVE ticket", status=401)
        return
    kept = call.store.get("shadow", userid)
    if kept is None or not password_fits(password, kept["hash"]):
        raise PveError("authentication failure", status=401)


def _capabilities(call: Call, userid: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {name: {} for name in _CAPABILITIES}
    permissions = call.world.permissions
    for path in dict.fromkeys((*_TOP_PATHS, *permissions.directory.acl_paths())):
        top = path.split("/")[1] or "dc"
        for privilege in permissions.of(userid, path):
            for name in ("vms", "storage") if top == "pool" else (top,):
                if name in found and re.match(_CAPABILITIES[name], privilege):
                    found[name][privilege] = 1
    return found
