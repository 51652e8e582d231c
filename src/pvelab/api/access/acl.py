"""Who has which role on which path: `/access/acl`."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from pvelab.api.access.user_file import lock_user_file, require_group, save_acl
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter, bad_parameters
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT, split_token
from pvelab.world.access.permissions import normalize_path, privileges_to_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["list_acl", "update_acl"]

_KINDS: Mapping[str, str] = {"user": "users", "group": "groups", "token": "tokens"}
_NAME = r"[A-Za-z0-9.\-_]+"
_WORD = r"[A-Za-z0-9]+"
_PATHS = re.compile(
    "|".join(
        (
            "/",
            rf"/access(?:/(?:groups|realm)(?:/{_NAME})?)?",
            rf"/nodes(?:/{_NAME})?",
            rf"/pool(?:(?:/{_NAME}){{1,3}})?",
            r"/sdn",
            r"/sdn/controllers(?:/[A-Za-z0-9_\-]+)?",
            rf"/sdn/(?:dns|fabrics|ipams|prefix-lists|route-maps)(?:/{_WORD})?",
            rf"/sdn/zones(?:/{_NAME}(?:/{_NAME}(?:/[1-9][0-9]{{0,3}})?)?)?",
            rf"/storage(?:/{_NAME})?",
            r"/vms(?:/[1-9][0-9]{2,})?",
            rf"/mapping(?:/{_NAME}){{0,2}}",
        )
    )
)


@route("GET /access/acl")
def list_acl(call: Call) -> Any:
    """List the entries of the paths whose ACL the caller may change, or of all to an auditor."""
    audit = call.may("/access", "Sys.Audit")
    return [
        {"path": path, "type": kind, "ugid": ident, "roleid": role, "propagate": propagate}
        for path, entries in sorted(call.store.items("acl").items(), key=lambda item: item[0].split("/"))
        if audit or call.may(path, *privileges_to_share(path), any_of=True)
        for kind, plural in _KINDS.items()
        for ident, roles in entries.get(plural, {}).items()
        for role, propagate in roles.items()
    ]


@route("PUT /access/acl")
def update_acl(call: Call) -> None:
    """Give roles on a path to users, groups and tokens, or take them away."""
    params = call.params
    if not any(params.get(kind) for kind in _KINDS.values()):
        text = "either 'users', 'groups' or 'tokens' is required."
        raise bad_parameters(dict.fromkeys(_KINDS.values(), text))
    path = normalize_path(params["path"])
    if path is None or not (params.get("delete") or _PATHS.fullmatch(path)):
        raise bad_parameter("path", f"invalid ACL path '{params['path']}'")
    with lock_user_file(call, "ACL update failed"):
        entries = copy.deepcopy(dict(call.store.get("acl", path) or {}))
        for role in split_list(params["roles"]):
            if call.world.permissions.directory.role(role) is None:
                raise PveError(f"role '{role}' does not exist")
            _check_not_beyond_own(call, path, role)
            _change(call, entries, role)
        save_acl(call.store, path, entries)


def _change(call: Call, entries: dict[str, Any], role: str) -> None:
    params = call.params
    for kind in ("groups", "users", "tokens"):
        for ident in split_list(params.get(kind, "")):
            _check_exists(call, kind, ident)
            roles = entries.setdefault(kind, {}).setdefault(ident, {})
            if params.get("delete"):
                roles.pop(role, None)
            elif ident != ROOT:
                # root@pam has every privilege; an entry for it is not even written down.
                roles[role] = int(params.get("propagate", 1))


def _check_exists(call: Call, kind: str, ident: str) -> None:
    directory = call.world.permissions.directory
    if kind == "groups":
        require_group(call.store, ident)
    elif kind == "tokens":
        userid, token = split_token(ident)
        directory.token(userid, token or "")
    elif not directory.has_user(ident):
        raise PveError(f"user '{ident}' does not exist")


def _check_not_beyond_own(call: Call, path: str, role: str) -> None:
    """Refuse a role that has more than its giver, who may share by owning the object alone."""
    own = call.world.permissions.of(call.authid, path)
    if "Permissions.Modify" in own:
        return
    delete = bool(call.params.get("delete"))
    propagate = bool(call.params.get("propagate", 1))
    refusal = f"Cannot {'remove' if delete else 'add'} role '{role}'"
    for privilege in sorted(call.world.permissions.directory.role(role) or ()):
        if privilege not in own:
            text = f"{refusal} - requires 'Permissions.Modify' or superset of privileges."
            raise bad_parameter("role", text)
        if propagate and not own[privilege] and not delete:
            wanted = "'Permissions.Modify' or propagated superset of privileges."
            raise bad_parameter("role", f"{refusal} with propagation - requires {wanted}")
    if role == "NoAccess":
        raise bad_parameter("role", f"{refusal} - requires 'Permissions.Modify'")
