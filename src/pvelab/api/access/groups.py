"""Groups of users: `/access/groups`. Who belongs to one stands with the users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.access.user_file import clean_text, drop_from_acl, lock_user_file, require_group
from pvelab.server.problems import PveError
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_group", "delete_group", "list_groups", "read_group", "update_group"]

_SEEING = ("User.Modify", "Sys.Audit", "Group.Allocate")


@route("GET /access/groups")
def list_groups(call: Call) -> Any:
    """List the groups that the caller may see, each with its members as one text."""
    return [
        {"groupid": groupid, **group, "users": ",".join(_members(call, groupid))}
        for groupid, group in call.store.items("groups").items()
        if call.may(f"/access/groups/{groupid}", *_SEEING, any_of=True)
    ]


@route("GET /access/groups/{groupid}")
def read_group(call: Call) -> Any:
    """Answer one group."""
    groupid = call.params["groupid"]
    require_group(call.store, groupid)
    return {**(call.store.get("groups", groupid) or {}), "members": _members(call, groupid)}


@route("POST /access/groups")
def create_group(call: Call) -> None:
    """Add a group without members."""
    groupid = call.params["groupid"]
    with lock_user_file(call, "create group failed"):
        if call.store.get("groups", groupid) is not None:
            raise PveError(f"group '{groupid}' already exists")
        _save(call, call.params.get("comment"))


@route("PUT /access/groups/{groupid}")
def update_group(call: Call) -> None:
    """Change the comment of a group."""
    with lock_user_file(call, "update group failed"):
        require_group(call.store, call.params["groupid"])
        if "comment" in call.params:
            _save(call, call.params["comment"])


@route("DELETE /access/groups/{groupid}")
def delete_group(call: Call) -> None:
    """Remove a group, its memberships and its ACL entries."""
    groupid, store = call.params["groupid"], call.store
    with lock_user_file(call, "delete group failed"):
        require_group(store, groupid)
        for userid in _members(call, groupid):
            with store.edit("users", userid) as user:
                user["groups"].remove(groupid)
        store.delete("groups", groupid)
        drop_from_acl(store, "groups", lambda ident: ident == groupid)


def _members(call: Call, groupid: str) -> list[str]:
    return sorted(call.world.permissions.directory.members_of(groupid))


def _save(call: Call, given: str | None) -> None:
    comment = clean_text(given or "")
    call.store.put("groups", call.params["groupid"], {"comment": comment} if comment else {})
