"""Logging in, and asking what one may do: `/access/ticket`, `/access/permissions`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT, split_token
from pvelab.world.access.permissions import normalize_path
from pvelab.world.access.second_factors import challenge_for, verify
from pvelab.world.access.tickets import password_fits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

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
async def create_ticket(call: Call) -> Any:
    """Log in with a password, or with a ticket that is still good; or only ask about a privilege."""
    params = call.params
    userid = params["username"]
    if params.get("realm"):
        userid = f"{userid}@{params['realm']}"
    asks = bool(params.get("path") and params.get("privs"))
    try:
        call.world.permissions.directory.require_enabled_user(userid)
        challenge = _first_and_second(call, userid, asks=asks)
        if asks:
            path = normalize_path(params["path"]) or ""
            call.world.permissions.check(userid, path, split_list(params["privs"]))
    except PveError as err:
        # Proxmox tells no reason, so that no one learns which users there are.
        raise PveError("authentication failure", status=401) from err
    answer: dict[str, Any] = {"username": userid}
    if challenge is None:
        answer["cap"] = _capabilities(call, userid)
    if challenge is not None:
        answer["NeedTFA"] = 1
        answer["ticket"] = call.world.tickets.issue_challenge(userid, challenge)
        answer["CSRFPreventionToken"] = call.world.tickets.csrf_token(userid)
    elif not asks:
        answer["ticket"] = call.world.tickets.issue(userid)
        answer["CSRFPreventionToken"] = call.world.tickets.csrf_token(userid)
    if len(call.world.cluster.nodes()) > 1 and call.world.permissions.has(userid, "/", ["Sys.Audit"]):
        answer["clustername"] = call.world.cluster.name
    _log_login(call, userid)
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


def _first_and_second(call: Call, userid: str, *, asks: bool) -> str | None:
    """Check the password and, where there is one, the second factor; return the challenge if that is due."""
    params = call.params
    if params.get("tfa-challenge"):
        if params.get("otp") is not None:
            raise PveError("TFA response should be in 'password', not 'otp' when 'tfa-challenge' is set")
        if call.world.tickets.challenge_of(params["tfa-challenge"], userid) is None:
            raise PveError("permission denied - invalid PVE ticket", status=401)
        _answer_challenge(call, userid, params["password"])
        return None
    # root@pam can make tickets for others with its own.
    _authenticate(call, userid, params["password"], helpers=() if asks else (ROOT,))
    challenge = challenge_for(call.store, userid)
    if challenge is None or params["password"].startswith("PVE:"):
        return None
    if params.get("otp") is None:
        return json.dumps(challenge, separators=(",", ":"))
    _answer_challenge(call, userid, params["otp"])
    return None


def _answer_challenge(call: Call, userid: str, response: str) -> None:
    # A transaction of its own: that the answer was wrong counts, although the call is refused.
    with call.transaction():
        done = verify(call.store, userid, response, call.world.clock.now())
    if not done:
        raise PveError("failed 2nd factor", status=401)


def _log_login(call: Call, userid: str) -> None:
    message = f"successful auth for user '{userid}'"
    call.world.log.add(call.world.clock.now(), call.world.cluster.local(), message)


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
