"""Users: `/access/users`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.access.password import set_password
from pvelab.api.access.user_file import clean_text, drop_from_acl, lock_user_file
from pvelab.server.params.properties import parse
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT
from pvelab.world.access.second_factors import COLLECTION as SECOND_FACTORS
from pvelab.world.access.second_factors import entries_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["create_user", "delete_user", "list_users", "read_second_factor", "read_user", "update_user"]

_TEXTS = ("firstname", "lastname", "email", "comment", "keys")
_SEEING = ("User.Modify", "Sys.Audit")


@route("GET /access/users")
def list_users(call: Call) -> Any:
    """List the users that the caller may see, the caller always."""
    visible = _visible_users(call)
    wanted, full = call.params.get("enabled"), bool(call.params.get("full"))
    rows = []
    for userid, user in sorted(call.store.items("users").items()):
        hidden = visible is not None and userid not in visible
        if hidden or (wanted is not None and bool(user["enable"]) != bool(wanted)):
            continue
        row = {**_format_user(user), "userid": userid}
        realm = call.store.get("realms", userid.rpartition("@")[2])
        if realm is not None:
            row["realm-type"] = realm["type"]
        if full:
            tokens = user.get("tokens") or {}
            row["groups"] = ",".join(sorted(user.get("groups", ())))
            row["tokens"] = [{"tokenid": name, **tokens[name]} for name in sorted(tokens)] or None
        rows.append(row)
    return rows


@route("GET /access/users/{userid}")
def read_user(call: Call) -> Any:
    """Answer one user."""
    user = call.world.permissions.directory.user(call.params["userid"])
    return {
        **_format_user(user),
        "groups": sorted(user.get("groups", ())),
        "tokens": dict(user.get("tokens") or {}) or None,
    }


@route("POST /access/users")
def create_user(call: Call) -> None:
    """Add a user, with a password where its realm keeps passwords here."""
    params = call.params
    with lock_user_file(call, "create user failed"):
        userid = _find_user_name(call, params["userid"])
        if call.store.get("users", userid) is not None:
            raise PveError(f"user '{userid}' already exists")
        if "password" in params:
            set_password(call, userid, params["password"])
        user = {
            "userid": userid,
            "enable": params.get("enable", 1),
            "expire": params.get("expire", 0),
            "groups": _read_groups(call),
            "tokens": {},
        }
        call.store.put("users", userid, {**user, **_texts(params)})


@route("PUT /access/users/{userid}")
def update_user(call: Call) -> None:
    """Change a user; an empty text unsets one."""
    params = call.params
    with lock_user_file(call, "update user failed"):
        user = call.world.permissions.directory.user(params["userid"])
        changed = {**user, **{key: params[key] for key in ("enable", "expire") if key in params}}
        if "groups" in params:
            kept = user.get("groups", ()) if params.get("append") else ()
            changed["groups"] = list(dict.fromkeys((*kept, *_read_groups(call))))
        changed |= {key: clean_text(params[key]) for key in _TEXTS if key in params}
        call.store.put("users", params["userid"], {k: v for k, v in changed.items() if v != ""})


@route("DELETE /access/users/{userid}")
def delete_user(call: Call) -> None:
    """Remove a user with its tokens and ACL entries; that no one has the name is no error to root@pam."""
    userid, store = call.params["userid"], call.store
    with lock_user_file(call, "delete user failed"):
        user = store.get("users", userid) or {}
        for name in user.get("tokens") or {}:
            store.delete("token_secrets", f"{userid}!{name}")
        if not userid.endswith("@pam"):
            store.delete("shadow", userid)
        store.delete("users", userid)
        store.delete(SECOND_FACTORS, userid)
        if userid == ROOT:
            # There always is a root: Proxmox adds it to every file that lacks it.
            store.put("users", ROOT, {"userid": ROOT, "enable": 1, "expire": 0, "groups": [], "tokens": {}})
        drop_from_acl(store, "users", lambda ident: ident == userid)
        drop_from_acl(store, "tokens", lambda ident: ident.startswith(f"{userid}!"))


@route("GET /access/users/{userid}/tfa")
def read_second_factor(call: Call) -> Any:
    """Answer the second factor that the realm demands, and the kinds that the user has."""
    realm = call.params["userid"].rpartition("@")[2]
    config = call.store.get("realms", realm)
    if config is None:
        raise PveError(f"auth domain '{realm}' does not exist")
    kinds = list(dict.fromkeys(one["type"] for one in entries_of(call.store, call.params["userid"])))
    answer: dict[str, Any] = {"user": kinds} if call.params.get("multiple") else {}
    if config.get("tfa"):
        answer["realm"] = parse(PROPERTY_FORMATS["pve-tfa-config"], config["tfa"])["type"]
    return answer


def _visible_users(call: Call) -> set[str] | None:
    """Return whom the caller may see, None if that is everyone."""
    if call.may("/access/groups", *_SEEING, any_of=True):
        return None
    directory = call.world.permissions.directory
    groups = [
        group for group in directory.groups() if call.may(f"/access/groups/{group}", *_SEEING, any_of=True)
    ]
    return {call.authid, *(userid for group in groups for userid in directory.members_of(group))}


def _format_user(user: Document) -> dict[str, Any]:
    shown = {"enable": user["enable"], "expire": user.get("expire", 0)}
    shown |= {key: user[key] for key in _TEXTS if user.get(key)}
    # The fields of a user are in one line with colons between them, so an empty one before others is there.
    if "comment" in shown or "keys" in shown:
        shown.setdefault("email", "")
    return shown


def _texts(params: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: clean_text(params[key]) for key in _TEXTS if key in params}
    return {key: text for key, text in kept.items() if text}


def _find_user_name(call: Call, userid: str) -> str:
    """Return a user's name as it is known, in realms that do not tell small letters from capitals."""
    realm = call.store.get("realms", userid.rpartition("@")[2])
    if realm is not None and not realm.get("case-sensitive", 1):
        for known in call.store.items("users"):
            if known.lower() == userid.lower():
                return known
    return userid


def _read_groups(call: Call) -> list[str]:
    groups = list(dict.fromkeys(split_list(call.params.get("groups", ""))))
    for group in groups:
        if call.store.get("groups", group) is None:
            raise PveError(f"no such group '{group}'")
    return groups
