"""Second factors of users: `/access/tfa`, and letting someone in again who was locked out."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError, bad_parameter, not_permitted
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT
from pvelab.world.access.second_factors import (
    COLLECTION,
    RECOVERY,
    Totp,
    entries_of,
    format_factor,
    new_recovery,
)
from pvelab.world.access.tickets import password_fits

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = [
    "add_factor",
    "delete_factor",
    "list_factors",
    "list_of_user",
    "read_factor",
    "unlock",
    "update_factor",
]

_SEEING = ("User.Modify", "Sys.Audit")


@route("GET /access/tfa")
def list_factors(call: Call) -> Any:
    """List the users that have second factors, with these."""
    directory = call.world.permissions.directory
    sees_all = call.may("/access/groups", *_SEEING, any_of=True)
    groups = [one for one in directory.groups() if call.may(f"/access/groups/{one}", *_SEEING, any_of=True)]
    seen = {call.authid, *(userid for group in groups for userid in directory.members_of(group))}
    rows = []
    for userid, document in call.store.items(COLLECTION).items():
        if not sees_all and userid not in seen:
            continue
        row: dict[str, Any] = {
            "userid": userid,
            "entries": [format_factor(one) for one in document["entries"]],
        }
        if document.get("totp_locked"):
            row["totp-locked"] = 1
        rows.append(row)
    return rows


@route("GET /access/tfa/{userid}")
def list_of_user(call: Call) -> Any:
    """List the second factors of a user."""
    return [format_factor(entry) for entry in entries_of(call.store, call.params["userid"])]


@route("GET /access/tfa/{userid}/{id}")
def read_factor(call: Call) -> Any:
    """Answer one second factor."""
    for entry in entries_of(call.store, call.params["userid"]):
        if entry["id"] == call.params["id"]:
            return format_factor(entry)
    raise PveError(f"No such tfa entry '{call.params['id']}'", status=404)


@route("POST /access/tfa/{userid}")
def add_factor(call: Call) -> Any:
    """Add a second factor: one-time passwords with a first right one, or recovery keys."""
    userid = _confirm_user(call)
    kind = str(call.params["type"])
    if kind == "totp":
        return _add_totp(call, userid)
    if kind == RECOVERY:
        return _add_recovery(call, userid)
    if kind == "yubico":
        raise PveError(f"no yubico otp configuration available for realm {userid.rpartition('@')[2]}")
    raise PveError(f"{kind} is not configured on this cluster")


@route("PUT /access/tfa/{userid}/{id}")
def update_factor(call: Call) -> Any:
    """Describe a second factor, or switch it off and on."""
    userid, ident = _confirm_user(call), str(call.params["id"])
    entries = entries_of(call.store, userid)
    found = next((entry for entry in entries if entry["id"] == ident), None)
    if found is None:
        raise PveError("no such entry", status=404)
    if "description" in call.params:
        if ident == RECOVERY:
            raise PveError("cannot set description on recovery tokens")
        found["description"] = call.params["description"]
    if "enable" in call.params:
        found["enable"] = call.params["enable"]
    _save(call, userid, entries)


@route("DELETE /access/tfa/{userid}/{id}")
def delete_factor(call: Call) -> Any:
    """Remove a second factor."""
    userid, ident = _confirm_user(call), str(call.params["id"])
    entries = entries_of(call.store, userid)
    left = [entry for entry in entries if entry["id"] != ident]
    if len(left) == len(entries):
        raise PveError("no such entry", status=404)
    _save(call, userid, left)


@route("PUT /access/users/{userid}/unlock-tfa")
def unlock(call: Call) -> Any:
    """Let a user in again who gave too many wrong passwords; return whether that was so."""
    userid = str(call.params["userid"])
    document = call.store.get(COLLECTION, userid)
    if document is None or not document.get("totp_locked"):
        return 0
    call.store.put(COLLECTION, userid, {**document, "totp_locked": 0, "failures": 0})
    return 1


def _add_totp(call: Call, userid: str) -> dict[str, Any]:
    params = call.params
    if params.get("challenge") is not None:
        raise PveError("'challenge' parameter is invalid for 'totp' entries")
    description = params.get("description")
    if description is None:
        raise PveError("'description' is required for new entries")
    if params.get("totp") is None or params.get("value") is None:
        raise PveError("'totp' type requires both 'totp' and 'value' parameters")
    counter = Totp.parse(params["totp"]).counter(params["value"], call.world.clock.now())
    if counter is None:
        raise PveError("failed to verify TOTP challenge")
    entry = {
        "id": str(uuid.uuid4()),
        "type": "totp",
        "description": description,
        "created": call.now(),
        "enable": 1,
        "uri": params["totp"],
    }
    _save(call, userid, [*entries_of(call.store, userid), entry])
    return {"id": entry["id"]}


def _add_recovery(call: Call, userid: str) -> dict[str, Any]:
    if any(call.params.get(name) is not None for name in ("totp", "value", "challenge", "description")):
        raise PveError("generating recovery tokens does not allow additional parameters")
    entries = entries_of(call.store, userid)
    if any(entry["id"] == RECOVERY for entry in entries):
        raise PveError("user already has recovery keys")
    entry, keys = new_recovery(call.now())
    _save(call, userid, [*entries, entry])
    return {"id": RECOVERY, "recovery": keys}


def _save(call: Call, userid: str, entries: list[dict[str, Any]]) -> None:
    """Write the second factors of a user, and at the user that there are some."""
    with call.world.cluster.lock_file("domain-tfa"):
        if entries:
            kept = call.store.get(COLLECTION, userid) or {}
            call.store.put(COLLECTION, userid, {**kept, "entries": entries})
        else:
            call.store.delete(COLLECTION, userid)
        user = call.world.permissions.directory.user(userid)
        marked = {key: value for key, value in user.items() if key != "keys"}
        call.store.put("users", userid, {**marked, "keys": "x"} if entries else marked)


def _confirm_user(call: Call) -> str:
    """Return whose second factors change; everyone but root confirms with the password."""
    userid = str(call.params["userid"])
    call.world.permissions.directory.user(userid)
    if call.authid == ROOT:
        return userid
    if userid == ROOT:
        raise not_permitted()
    given = call.params.get("password")
    if given is None:
        raise bad_parameter("password", "password is required to modify user")
    kept = call.store.get("shadow", call.authid)
    if kept is None or not password_fits(given, kept["hash"]):
        raise PveError("invalid credentials")
    return userid
