"""Passwords of users: `PUT /access/password`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError, bad_parameter, not_permitted
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT
from pvelab.world.access.tickets import hash_password, password_fits

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["change_password", "set_password"]


@route("PUT /access/password")
def change_password(call: Call) -> None:
    """Set a password; everyone but root confirms with their own."""
    userid = call.params["userid"]
    call.world.permissions.directory.user(userid)
    if call.authid != ROOT:
        if userid == ROOT:
            raise not_permitted()
        _confirm(call)
        if call.authid == userid:
            call.world.permissions.directory.require_enabled_user(userid)
        elif userid.endswith("@pam"):
            raise not_permitted()
    set_password(call, userid, call.params["password"])


def set_password(call: Call, userid: str, password: str) -> None:
    """Keep a new password, in the running transaction.

    Raises:
        PveError: The realm does not exist or keeps its passwords elsewhere, or the system has no such user.
    """
    name, _, realm = userid.rpartition("@")
    config = call.store.get("realms", realm)
    if config is None:
        raise PveError(f"auth domain '{realm}' does not exist")
    if config["type"] not in ("pam", "pve"):
        raise PveError(f"can't set password on auth type '{config['type']}'")
    if config["type"] == "pam" and call.store.get("shadow", userid) is None:
        # Proxmox passes this on to the operating system, which knows root and the users of the seed.
        raise PveError(f"change password failed: user '{name}' does not exist")
    call.store.put("shadow", userid, {"hash": hash_password(password)})
    if userid == ROOT:
        call.store.put("secrets", "root", {"password": password})


def _confirm(call: Call) -> None:
    given = call.params.get("confirmation-password")
    if given is None:
        raise bad_parameter("confirmation-password", "password is required to modify user")
    kept = call.store.get("shadow", call.authid)
    if kept is None:
        raise PveError("no password set")
    if not password_fits(given, kept["hash"]):
        raise PveError("invalid credentials")
